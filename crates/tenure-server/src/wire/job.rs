//! Jobs as JSON.

use serde::Serialize;
use serde_json::value::RawValue;
use tenure_store::enqueue::Enqueued;
use tenure_store::gate::GateRecord;
use tenure_store::record::{AttemptRecord, JobRecord, JobSummary};
use utoipa::ToSchema;

use super::gate::WaitLine;
use super::{date, raw};

/// One job of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobLine {
    id: String,
    tenant: String,
    queue: String,
    kind: String,
    priority: u8,
    gate: Option<String>,
    state: &'static str,
    attempt: u16,
    max_attempts: u16,
    run_at: String,
    created_at: String,
    finished_at: Option<String>,
    locked_by: Option<String>,
    #[schema(value_type = Option<Value>)]
    error: Option<Box<RawValue>>,
}

/// One job in full.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobDocument {
    #[serde(flatten)]
    line: JobLine,
    #[schema(value_type = Option<Value>)]
    payload: Option<Box<RawValue>>,
    max_losses: u16,
    backoff: String,
    losses: u16,
    /// Why its gate does not let it through, while it waits.
    waits_for: Option<WaitLine>,
    trace: Option<String>,
    /// Where its producer wants to be told how it ended.
    callback_url: Option<String>,
    /// The run that it is a part of.
    run: Option<String>,
    lease: Option<i64>,
    lease_expires_at: Option<String>,
    heartbeat_at: Option<String>,
    cancel_requested: bool,
    attempts: Vec<AttemptLine>,
}

/// One ended attempt.
#[derive(Debug, Serialize, ToSchema)]
pub struct AttemptLine {
    lease: i64,
    attempt: u16,
    how: &'static str,
    worker: Option<String>,
    started_at: Option<String>,
    ended_at: String,
    #[schema(value_type = Option<Value>)]
    error: Option<Box<RawValue>>,
    #[schema(value_type = Option<Value>)]
    result: Option<Box<RawValue>>,
    #[schema(value_type = Option<Value>)]
    usage: Option<Box<RawValue>>,
}

/// The answer to one enqueue.
#[derive(Debug, Serialize, ToSchema)]
pub struct EnqueuedLine {
    id: String,
    answer: &'static str,
    /// Null when the job found was pruned and only its key is left.
    state: Option<&'static str>,
}

impl From<&JobSummary> for JobLine {
    fn from(job: &JobSummary) -> Self {
        Self {
            id: job.id.to_string(),
            tenant: job.tenant.to_string(),
            queue: job.queue.to_string(),
            kind: job.kind.to_string(),
            priority: job.priority.get(),
            gate: job.gate.as_ref().map(ToString::to_string),
            state: job.state.as_str(),
            attempt: job.attempt,
            max_attempts: job.max_attempts,
            run_at: job.run_at.to_string(),
            created_at: job.created_at.to_string(),
            finished_at: date(job.finished_at),
            locked_by: job.locked_by.clone(),
            error: raw(job.error.as_ref()),
        }
    }
}

impl JobDocument {
    /// A job, and its gate while it waits for it.
    pub fn new(job: &JobRecord, gate: Option<&GateRecord>) -> Self {
        Self {
            line: JobLine::from(&job.summary),
            payload: raw(Some(&job.payload)),
            max_losses: job.rules.max_losses,
            backoff: job.rules.backoff.to_string(),
            losses: job.losses,
            waits_for: gate.and_then(WaitLine::of),
            trace: job.trace.clone(),
            callback_url: job.callback_url.clone(),
            run: job.part.as_ref().map(|part| part.run().to_string()),
            lease: job.lease.map(|lease| lease.0),
            lease_expires_at: date(job.lease_expires_at),
            heartbeat_at: date(job.heartbeat_at),
            cancel_requested: job.cancel_requested,
            attempts: job.attempts.iter().map(AttemptLine::from).collect(),
        }
    }
}

impl From<&AttemptRecord> for AttemptLine {
    fn from(attempt: &AttemptRecord) -> Self {
        Self {
            lease: attempt.lease.0,
            attempt: attempt.attempt,
            how: attempt.how.as_str(),
            worker: attempt.worker.clone(),
            started_at: date(attempt.started_at),
            ended_at: attempt.ended_at.to_string(),
            error: raw(attempt.error.as_ref()),
            result: raw(attempt.result.as_ref()),
            usage: raw(attempt.usage.as_ref()),
        }
    }
}

impl From<&Enqueued> for EnqueuedLine {
    fn from(enqueued: &Enqueued) -> Self {
        let (answer, state) = match enqueued {
            Enqueued::Created(_) => ("created", Some("queued")),
            Enqueued::Found { state, .. } => ("found", state.map(|state| state.as_str())),
        };
        Self { id: enqueued.job().to_string(), answer, state }
    }
}
