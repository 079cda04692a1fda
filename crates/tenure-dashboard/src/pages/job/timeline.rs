//! Every transition of a job, as the journal has it; beside each ending what its attempt said.

use std::time::Duration;

use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::{LeaseNo, State, Timestamp};
use tenure_server::moment;
use tenure_store::record::{AttemptRecord, JobRecord};

use crate::bits;

/// One line of the timeline.
pub(super) struct Entry {
    pub(super) at: Timestamp,
    /// The word that gives it its colour.
    pub(super) word: &'static str,
    pub(super) what: String,
    pub(super) detail: Vec<String>,
    pub(super) error: Option<String>,
}

/// Oldest first. `names` tells whether operators may be named.
pub(super) fn of(job: &JobRecord, rows: &[JournalRow], names: bool) -> Vec<Entry> {
    let mut entries = vec![entry(job.summary.created_at, "enqueued", "Stored")];
    if job.summary.run_at > job.summary.created_at && job.attempts.is_empty() && job.summary.state == State::Queued {
        entries[0].detail.push(format!("due at {}", bits::moment_text(&job.summary.run_at)));
    }
    entries.extend(rows.iter().map(|row| of_row(job, row, names)));
    // What the journal has dropped by now is still known from the attempts.
    let told = |lease: LeaseNo| rows.iter().any(|row| row.lease == Some(lease));
    entries.extend(job.attempts.iter().filter(|attempt| !told(attempt.lease)).map(|attempt| {
        let mut told = entry(
            attempt.ended_at,
            attempt.how.as_str(),
            format!("Attempt {}: {}", attempt.attempt, attempt.how.as_str()),
        );
        describe(&mut told, attempt);
        told
    }));
    entries.sort_by_key(|entry| entry.at);
    entries
}

fn of_row(job: &JobRecord, row: &JournalRow, names: bool) -> Entry {
    let attempt = row.lease.and_then(|lease| job.attempts.iter().find(|attempt| attempt.lease == lease));
    let mut told = entry(row.at, row.event.as_str(), what(row.event, attempt));
    match (row.event, attempt) {
        (JournalEvent::Ended(_), Some(attempt)) => describe(&mut told, attempt),
        (JournalEvent::Claimed, _) => {
            let holder = attempt.map(|attempt| attempt.worker.clone()).unwrap_or(job.summary.locked_by.clone());
            told.detail.extend(holder.map(|worker| format!("by {worker}")));
        }
        _ => {}
    }
    if let Some(lease) = row.lease.filter(|_| !matches!(row.event, JournalEvent::Ended(_))) {
        told.detail.push(format!("lease {lease}"));
    }
    told.detail.extend(row.actor.iter().filter(|_| names).map(|actor| format!("by {actor}")));
    told.detail.extend(row.reason.iter().filter(|_| names).map(|reason| format!("“{reason}”")));
    told
}

fn what(event: JournalEvent, attempt: Option<&AttemptRecord>) -> String {
    match (event, attempt) {
        (JournalEvent::Claimed, _) => "Claimed".to_owned(),
        (JournalEvent::Ended(how), Some(attempt)) if attempt.started_at.is_some() => {
            format!("Attempt {}: {}", attempt.attempt, how.as_str())
        }
        (JournalEvent::Requeued, _) => "Requeued".to_owned(),
        (JournalEvent::Opened, _) => "Opened".to_owned(),
        (JournalEvent::CancelRequested, _) => "Asked to stop".to_owned(),
        (JournalEvent::Refused, _) => "A late report was refused".to_owned(),
        (event, _) => bits::sentence(event.as_str()),
    }
}

fn describe(entry: &mut Entry, attempt: &AttemptRecord) {
    entry.detail.push(format!("lease {}", attempt.lease));
    if let Some(worker) = &attempt.worker {
        entry.detail.push(format!("by {worker}"));
    }
    if let Some(started) = attempt.started_at {
        let took: Duration = attempt.ended_at.since(started);
        entry.detail.push(format!("took {}", moment::span(took)));
    }
    if let Some(usage) = &attempt.usage {
        entry.detail.push(format!("used {}", usage.as_str()));
    }
    entry.error = attempt.error.as_ref().map(bits::error);
}

fn entry(at: Timestamp, word: &'static str, what: impl Into<String>) -> Entry {
    Entry { at, word, what: what.into(), detail: Vec::new(), error: None }
}
