//! Queues and workers as JSON.

use serde::Serialize;
use tenure_core::Timestamp;
use tenure_core::name::QueueName;
use tenure_store::record::QueueRecord;
use tenure_store::worker::WorkerRecord;
use utoipa::ToSchema;

use super::date;

/// One queue.
#[derive(Debug, Serialize, ToSchema)]
pub struct QueueLine {
    name: String,
    paused: bool,
    fair: bool,
    /// Null: none.
    quota: Option<u32>,
    lease_ttl_ms: u64,
    due: u64,
    scheduled: u64,
    /// Of these, those that wait for an opening.
    waiting: u64,
    /// Of those that are due or scheduled, those that are tried again.
    retryable: u64,
    running: u64,
    oldest_due: Option<String>,
}

/// One queue, and whether live workers serve it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServedQueueLine {
    #[serde(flatten)]
    queue: QueueLine,
    /// Slots of live workers that take jobs of this queue. 0: its due jobs wait until a worker starts that serves it.
    slots: u64,
}

/// One worker process.
#[derive(Debug, Serialize, ToSchema)]
pub struct WorkerLine {
    id: i32,
    name: String,
    state: &'static str,
    running: Option<u32>,
    reporting: Option<u32>,
    queues: Vec<SlotsLine>,
    version: Option<String>,
    host: Option<String>,
    pid: Option<u32>,
    registered_at: String,
    seen_at: Option<String>,
    /// What it is told to do: work, quiet or stop.
    order: &'static str,
}

/// A queue that a worker serves.
#[derive(Debug, Serialize, ToSchema)]
pub struct SlotsLine {
    queue: String,
    slots: u32,
}

impl From<&QueueRecord> for QueueLine {
    fn from(queue: &QueueRecord) -> Self {
        Self {
            name: queue.name.to_string(),
            paused: queue.paused,
            fair: queue.fair,
            quota: queue.quota,
            lease_ttl_ms: u64::try_from(queue.lease_ttl.as_millis()).unwrap_or(u64::MAX),
            due: queue.due,
            scheduled: queue.scheduled,
            waiting: queue.waiting,
            retryable: queue.retryable,
            running: queue.running,
            oldest_due: date(queue.oldest_due),
        }
    }
}

impl ServedQueueLine {
    /// `workers` are all that are registered; those that are gone count nothing.
    pub fn new(queue: &QueueRecord, workers: &[WorkerRecord], now: Timestamp) -> Self {
        let slots = workers.iter().map(|worker| worker.slots_of(&queue.name, now)).sum();
        Self { queue: queue.into(), slots }
    }
}

impl WorkerLine {
    /// `state` is what the worker said of itself, or that it is gone.
    pub fn new(worker: &WorkerRecord, state: &'static str) -> Self {
        let beat = worker.beat.as_ref();
        let slots = |(queue, slots): &(QueueName, u32)| SlotsLine { queue: queue.to_string(), slots: *slots };
        Self {
            id: worker.id.0,
            name: worker.name.to_string(),
            state,
            running: beat.map(|beat| beat.running),
            reporting: beat.map(|beat| beat.reporting),
            queues: beat.iter().flat_map(|beat| &beat.about.queues).map(slots).collect(),
            version: beat.map(|beat| beat.about.version.clone()),
            host: beat.map(|beat| beat.about.host.clone()),
            pid: beat.map(|beat| beat.about.pid),
            registered_at: worker.registered_at.to_string(),
            seen_at: date(worker.seen_at),
            order: worker.order.as_str(),
        }
    }
}
