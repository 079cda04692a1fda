//! The three answers as people read them: tables with a line for each job or source, `-` where nothing is to be said.

use std::fmt::Write;
use std::time::Duration;

use tenure::Timestamp;
use tenure::core::failure::cut;

use crate::monitor::{Health, Seen};

/// How much of an error fits a line.
const ERROR_BYTES_MAX: usize = 100;

/// What happened lately.
pub fn jobs(jobs: &[Seen]) -> String {
    let heads = ["id", "status", "attempt", "locked_by", "heartbeat_at", "created_at", "completed_at", "error_message"];
    let line = |job: &Seen| {
        [
            job.id.to_string(),
            job.status.as_str().to_owned(),
            job.attempt.to_string(),
            job.locked_by.clone().unwrap_or_default(),
            time(job.heartbeat_at),
            time(Some(job.created_at)),
            time(job.completed_at),
            job.error_message.as_deref().map(|message| cut(message, ERROR_BYTES_MAX)).unwrap_or_default(),
        ]
    };
    table(heads, jobs.iter().map(line))
}

/// What is stuck.
pub fn stuck(jobs: &[Seen]) -> String {
    let heads = ["id", "status", "locked_by", "heartbeat_at", "time_since_heartbeat"];
    let line = |job: &Seen| {
        let since = job.silent_for.map(|silent| format!("{} s", silent.as_secs())).unwrap_or_default();
        let by = job.locked_by.clone().unwrap_or_default();
        [job.id.to_string(), job.status.as_str().to_owned(), by, time(job.heartbeat_at), since]
    };
    table(heads, jobs.iter().map(line))
}

/// How the sources do.
pub fn sources(sources: &[Health]) -> String {
    let heads = ["name", "enabled", "failure_streak", "last_success_at", "last_failure_at", "paused_until", "closed"];
    let line = |source: &Health| {
        [
            source.name.clone(),
            source.enabled.to_string(),
            source.failure_streak.to_string(),
            time(source.last_success_at),
            time(source.last_failure_at),
            time(source.paused_until),
            source.closed.map(|why| why.as_str().to_owned()).unwrap_or_default(),
        ]
    };
    table(heads, sources.iter().map(line))
}

/// To the second.
fn time(at: Option<Timestamp>) -> String {
    let whole = |at: Timestamp| at.minus(Duration::from_micros(at.as_micros().rem_euclid(1_000_000).unsigned_abs()));
    at.map(|at| whole(at).to_string()).unwrap_or_default()
}

fn table<const N: usize>(heads: [&str; N], lines: impl Iterator<Item = [String; N]>) -> String {
    let filled = |cell: String| if cell.is_empty() { "-".to_owned() } else { cell };
    let lines: Vec<[String; N]> =
        std::iter::once(heads.map(str::to_owned)).chain(lines).map(|line| line.map(filled)).collect();
    let widths: [usize; N] =
        std::array::from_fn(|at| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or_default());
    let mut text = String::new();
    for line in lines {
        let cells: Vec<String> = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        // Writing to a text cannot fail.
        let _written = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_what_is_known_and_dashes() {
        let at = Timestamp::parse("at", "2026-11-02T10:00:00.25Z").unwrap();
        let source = Health {
            name: "hammer".into(),
            enabled: false,
            failure_streak: 2,
            last_success_at: Some(at),
            last_failure_at: None,
            paused_until: None,
            closed: Some(tenure::core::gate::Why::Paused),
        };
        let text = sources(&[source]);
        let line: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(line, ["hammer", "false", "2", "2026-11-02T10:00:00Z", "-", "-", "paused"]);
    }
}
