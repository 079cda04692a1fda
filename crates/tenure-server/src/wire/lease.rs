//! What a worker that comes over HTTP gets: docs/WORKER-PROTOCOL.md.

use serde::Serialize;
use serde_json::value::RawValue;
use tenure_core::name::QueueName;
use tenure_store::lease::{Claimed, ClaimedJob};
use utoipa::ToSchema;

use super::raw;

/// Jobs of one queue under one lease.
#[derive(Debug, Serialize, ToSchema)]
pub struct LeaseLine {
    /// The fence: it stands in the path of whatever is said about its jobs
    lease: i64,
    queue: String,
    /// How long it lasts, from the moment the claim was sent plus `waited_ms`
    ttl_ms: u64,
    jobs: Vec<LeasedJob>,
}

/// One job in a worker's hands.
#[derive(Debug, Serialize, ToSchema)]
pub struct LeasedJob {
    id: String,
    tenant: String,
    kind: String,
    #[schema(value_type = Option<Value>)]
    payload: Option<Box<RawValue>>,
    priority: u8,
    /// 1 is the first
    attempt: u16,
    max_attempts: u16,
    losses: u16,
    trace: Option<String>,
    gate: Option<String>,
    /// What it is of a run
    part: Option<String>,
    run_at: String,
    created_at: String,
}

impl LeaseLine {
    /// What was claimed from a queue.
    pub fn new(queue: &QueueName, claimed: &Claimed) -> Self {
        Self {
            lease: claimed.lease.0,
            queue: queue.to_string(),
            ttl_ms: u64::try_from(claimed.ttl.as_millis()).unwrap_or(u64::MAX),
            jobs: claimed.jobs.iter().map(LeasedJob::from).collect(),
        }
    }
}

impl From<&ClaimedJob> for LeasedJob {
    fn from(job: &ClaimedJob) -> Self {
        Self {
            id: job.id.to_string(),
            tenant: job.tenant.to_string(),
            kind: job.kind.to_string(),
            payload: raw(Some(&job.payload)),
            priority: job.priority.get(),
            attempt: job.attempt,
            max_attempts: job.rules.max_attempts,
            losses: job.losses,
            trace: job.trace.clone(),
            gate: job.gate.as_ref().map(ToString::to_string),
            part: job.part.as_ref().map(ToString::to_string),
            run_at: job.run_at.to_string(),
            created_at: job.created_at.to_string(),
        }
    }
}
