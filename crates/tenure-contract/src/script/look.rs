//! What can be seen: show, list, queues, journal, seal.

use tenure_core::name::{KindName, QueueName};
use tenure_core::{State, Timestamp, duration};
use tenure_store::record::{JobFilter, JobRecord, QueueRecord};

use super::line::{Line, compared};
use super::operate::sight;
use super::{Outcome, Run, error_words};

/// `show J1 state=… attempt=… losses=… run_at=+10s lease=L1 holder=W1 … [sight=…] [-> not_found]`
///
/// Every option is a value to compare; `none` is its absence. Moments are counted from now.
pub(super) async fn show(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let label = line.word("a job")?;
    let (job, sight) = (run.names.job(run.t, &label)?, sight(line)?);
    let wanted = line.options();
    let expected = line.expectation();
    let record = match run.t.store.show_job(&sight, job).await {
        Ok(record) => record,
        Err(error) => {
            let expected = expected.unwrap_or_else(|| vec!["found".into()]);
            return Ok(Outcome { expected, got: error_words(&run.names, &error) });
        }
    };
    let mut outcome = match expected {
        Some(expected) => Outcome { expected, got: vec!["found".into()] },
        None => Outcome { expected: Vec::new(), got: Vec::new() },
    };
    for (key, value) in wanted {
        outcome.got.push(format!("{key}={}", value_of(run, &record, &key)?));
        outcome.expected.push(compared(&key, &value));
    }
    Ok(outcome)
}

fn value_of(run: &Run<'_>, record: &JobRecord, key: &str) -> Result<String, String> {
    let none = || "none".to_string();
    let since = |at: Timestamp| from_now(run.t.clock.now(), at);
    let job = &record.summary;
    let last = record.attempts.last();
    Ok(match key {
        "state" => job.state.as_str().into(),
        "attempt" => job.attempt.to_string(),
        "losses" => record.losses.to_string(),
        "max_attempts" => job.max_attempts.to_string(),
        "max_losses" => record.rules.max_losses.to_string(),
        "backoff" => record.rules.backoff.to_string(),
        "priority" => job.priority.get().to_string(),
        "tenant" => job.tenant.to_string(),
        "queue" => job.queue.to_string(),
        "kind" => job.kind.to_string(),
        "payload" => record.payload.to_string(),
        "trace" => record.trace.clone().unwrap_or_else(none),
        "run_at" => since(job.run_at),
        "created_at" => since(job.created_at),
        "finished_at" => job.finished_at.map_or_else(none, since),
        "expires_at" => record.lease_expires_at.map_or_else(none, since),
        "heartbeat_at" => record.heartbeat_at.map_or_else(none, since),
        "lease" => record.lease.map_or_else(none, |lease| run.names.lease_label(lease)),
        "holder" => job.locked_by.clone().unwrap_or_else(none),
        "cancel_requested" => record.cancel_requested.to_string(),
        "error" => job.error.as_ref().map_or_else(none, |error| message(error.as_str())),
        "attempts" if record.attempts.is_empty() => none(),
        "attempts" => record.attempts.iter().map(|attempt| attempt.how.as_str()).collect::<Vec<_>>().join(","),
        "numbers" => record.attempts.iter().map(|a| a.attempt.to_string()).collect::<Vec<_>>().join(","),
        "result" => last.and_then(|last| last.result.as_ref()).map_or_else(none, |json| compact(json.as_str())),
        "usage" => last.and_then(|last| last.usage.as_ref()).map_or_else(none, |json| compact(json.as_str())),
        "worker" => last.and_then(|last| last.worker.clone()).unwrap_or_else(none),
        "started_at" => last.and_then(|last| last.started_at).map_or_else(none, since),
        "ended_at" => last.map_or_else(none, |last| since(last.ended_at)),
        "gate" => job.gate.as_ref().map_or_else(none, ToString::to_string),
        other => return Err(format!("show has no option {other}")),
    })
}

/// A moment as it is written in scripts: `+10s` from now, or `-10s`.
pub(super) fn from_now(now: Timestamp, at: Timestamp) -> String {
    match at >= now {
        true => format!("+{}", duration::format(at.since(now))),
        false => format!("-{}", duration::format(now.since(at))),
    }
}

/// Stores may write JSON with other white space.
fn compact(json: &str) -> String {
    json.split_whitespace().collect()
}

/// The message inside an error that [`super::report`] wrote.
pub(super) fn message(error: &str) -> String {
    let text = error.split_once("\"message\"").map_or(error, |(_, rest)| rest);
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, ':' | '{' | '}' | '"')).into()
}

/// `list [state=…] [queue=…] [kind=…] [sight=…] [before=J3] [stuck=5m] [limit=…] -> J2 J1 | nothing`
pub(super) async fn list(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let before = line.option("before").map(|label| run.names.job(run.t, &label)).transpose()?;
    let state = |word: String| State::parse(&word).ok_or_else(|| format!("{word} is no state"));
    let filter = JobFilter {
        sight: sight(line)?,
        state: line.option("state").map(state).transpose()?,
        queue: line.parsed::<QueueName>("queue")?,
        kind: line.parsed::<KindName>("kind")?,
        before,
        stuck_for: line.duration("stuck")?,
        limit: line.parsed("limit")?.unwrap_or(100),
        ..JobFilter::default()
    };
    let expected = line.expectation().ok_or("list needs the jobs after ->")?;
    let got = match run.t.store.list_jobs(&filter).await {
        Ok(jobs) if jobs.is_empty() => vec!["nothing".into()],
        Ok(jobs) => jobs.iter().map(|job| run.names.job_label(job.id)).collect(),
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected, got })
}

/// `queues mail paused=false ttl=60s due=1 scheduled=0 running=2`
pub(super) async fn queues(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let name = line.word("a queue")?;
    let queues = run.t.store.list_queues().await.map_err(|why| why.to_string())?;
    let mut outcome = Outcome { expected: Vec::new(), got: Vec::new() };
    let Some(queue) = queues.iter().find(|queue| queue.name.as_str() == name) else {
        return Ok(Outcome { expected: vec![name], got: queues.iter().map(|queue| queue.name.to_string()).collect() });
    };
    for (key, value) in line.options() {
        outcome.expected.push(compared(&key, &value));
        outcome.got.push(format!("{key}={}", queue_value(queue, &key)?));
    }
    Ok(outcome)
}

fn queue_value(queue: &QueueRecord, key: &str) -> Result<String, String> {
    Ok(match key {
        "paused" => queue.paused.to_string(),
        "fair" => queue.fair.to_string(),
        "quota" => queue.quota.map_or_else(|| "none".to_owned(), |quota| quota.to_string()),
        "ttl" => duration::format(queue.lease_ttl),
        "due" => queue.due.to_string(),
        "scheduled" => queue.scheduled.to_string(),
        "running" => queue.running.to_string(),
        other => return Err(format!("queues has no option {other}")),
    })
}

/// `journal J1 claimed:L1 lost:L1 claimed:L2 succeeded:L2`: everything the record says about a job, in order.
pub(super) async fn journal(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let label = line.word("a job")?;
    let job = run.names.job(run.t, &label)?;
    let expected = line.words();
    let rows = run.t.journal().await;
    let word = |row: &tenure_core::journal::JournalRow| match row.lease {
        Some(lease) => format!("{}:{}", row.event.as_str(), run.names.lease_label(lease)),
        None => row.event.as_str().into(),
    };
    Ok(Outcome { expected, got: rows.iter().filter(|row| row.jobs.contains(&job)).map(word).collect() })
}

/// `seal -> sealed | nothing`
pub(super) async fn seal(run: &mut Run<'_>, line: &mut Line) -> Result<Outcome, String> {
    let got = match run.t.store.seal_journal().await {
        Ok(Some(_)) => vec!["sealed".into()],
        Ok(None) => vec!["nothing".into()],
        Err(error) => error_words(&run.names, &error),
    };
    Ok(Outcome { expected: line.expected_or("sealed"), got })
}
