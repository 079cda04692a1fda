//! What programs read: the JSON of `--json`. Members are added, never renamed.

pub(crate) mod run;
pub(crate) mod schedule;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tenure_core::gate::{Admit, Breaker, GateRule, Pattern};
use tenure_core::journal::JournalRow;
use tenure_core::name::QueueName;
use tenure_core::{Json, Timestamp};
use tenure_store::enqueue::Enqueued;
use tenure_store::gate::GateRecord;
use tenure_store::record::{AttemptRecord, JobRecord, JobSummary, Migration, QueueRecord};
use tenure_store::worker::WorkerRecord;

/// One job of a list.
#[derive(Serialize)]
pub(crate) struct JobLine {
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
    error: Option<Box<RawValue>>,
}

/// One job in full.
#[derive(Serialize)]
pub(crate) struct JobDocument {
    #[serde(flatten)]
    line: JobLine,
    payload: Option<Box<RawValue>>,
    max_losses: u16,
    backoff: String,
    losses: u16,
    /// Why its gate does not let it through, while it waits.
    waits_for: Option<WaitLine>,
    trace: Option<String>,
    lease: Option<i64>,
    lease_expires_at: Option<String>,
    heartbeat_at: Option<String>,
    cancel_requested: bool,
    attempts: Vec<AttemptLine>,
}

/// One ended attempt.
#[derive(Serialize)]
struct AttemptLine {
    lease: i64,
    attempt: u16,
    how: &'static str,
    worker: Option<String>,
    started_at: Option<String>,
    ended_at: String,
    error: Option<Box<RawValue>>,
    result: Option<Box<RawValue>>,
    usage: Option<Box<RawValue>>,
}

/// The answer to one enqueue.
#[derive(Serialize)]
pub(crate) struct EnqueuedLine {
    id: String,
    answer: &'static str,
    /// Null when the job found was pruned and only its key is left.
    state: Option<&'static str>,
}

/// One queue.
#[derive(Serialize)]
pub(crate) struct QueueLine {
    name: String,
    paused: bool,
    fair: bool,
    /// Null: none.
    quota: Option<u32>,
    lease_ttl_ms: u64,
    due: u64,
    scheduled: u64,
    running: u64,
    oldest_due: Option<String>,
}

/// Why a gate lets nothing through, and until when.
#[derive(Serialize)]
pub(crate) struct WaitLine {
    why: &'static str,
    until: Option<String>,
}

/// One gate.
#[derive(Serialize)]
pub(crate) struct GateLine {
    name: String,
    /// Null while it is open.
    closed: Option<WaitLine>,
    /// Jobs it lets through now; null when there is no limit.
    lets_through: Option<u32>,
    inside: u32,
    streak: u32,
    tokens: Option<u32>,
    last_success_at: Option<String>,
    last_failure_at: Option<String>,
    open_until: Option<String>,
    paused_until: Option<String>,
    held_until: Option<String>,
    pause_reason: Option<String>,
    trip_reason: Option<String>,
    rule: Option<RuleLine>,
}

/// What a rule allows.
#[derive(Serialize)]
pub(crate) struct RuleLine {
    pattern: String,
    rate: Option<String>,
    burst: Option<u32>,
    cost: Option<u32>,
    concurrency: Option<u32>,
    breaker_failures: Option<u32>,
    breaker_cooldown_ms: Option<u64>,
    weight: u32,
}

/// One worker process.
#[derive(Serialize)]
pub(crate) struct WorkerLine {
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
}

/// A queue that a worker serves.
#[derive(Serialize)]
struct SlotsLine {
    queue: String,
    slots: u32,
}

/// One row of the journal.
#[derive(Serialize)]
pub(crate) struct JournalLine {
    id: i64,
    at: String,
    event: &'static str,
    worker: Option<i32>,
    actor: Option<String>,
    lease: Option<i64>,
    jobs: Vec<String>,
    reason: Option<String>,
    details: Option<Box<RawValue>>,
}

/// One migration.
#[derive(Serialize)]
pub(crate) struct MigrationLine {
    version: i32,
    name: String,
    applied: bool,
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
    pub(crate) fn new(job: &JobRecord, gate: Option<&GateRecord>) -> Self {
        Self {
            line: JobLine::from(&job.summary),
            payload: raw(Some(&job.payload)),
            max_losses: job.rules.max_losses,
            backoff: job.rules.backoff.to_string(),
            losses: job.losses,
            waits_for: gate.and_then(WaitLine::of),
            trace: job.trace.clone(),
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
            running: queue.running,
            oldest_due: date(queue.oldest_due),
        }
    }
}

impl WaitLine {
    fn of(gate: &GateRecord) -> Option<Self> {
        match gate.admit {
            Admit::Closed { why, until } => Some(Self { why: why.as_str(), until: date(until) }),
            Admit::Open(_) => None,
        }
    }
}

impl From<&GateRecord> for GateLine {
    fn from(record: &GateRecord) -> Self {
        let gate = &record.gate;
        Self {
            name: record.name.to_string(),
            closed: WaitLine::of(record),
            lets_through: match record.admit {
                Admit::Open(u32::MAX) => None,
                Admit::Open(jobs) => Some(jobs),
                Admit::Closed { .. } => Some(0),
            },
            inside: gate.in_use,
            streak: gate.streak,
            tokens: record.rule.rate.map(|rate| rate.tokens(gate.full_at, record.now)),
            last_success_at: date(gate.succeeded_at),
            last_failure_at: date(gate.failed_at),
            open_until: date(gate.open_until),
            paused_until: date(gate.paused_until),
            held_until: date(gate.held_until),
            pause_reason: record.pause_reason.clone(),
            trip_reason: record.trip_reason.clone(),
            rule: record.pattern.clone().map(|pattern| RuleLine::from(&(pattern, record.rule.clone()))),
        }
    }
}

impl From<&(Pattern, GateRule)> for RuleLine {
    fn from((pattern, rule): &(Pattern, GateRule)) -> Self {
        let rate = rule.rate.as_ref();
        let cooldown = |breaker: Breaker| u64::try_from(breaker.cooldown.as_millis()).unwrap_or(u64::MAX);
        Self {
            pattern: pattern.to_string(),
            rate: rate.map(ToString::to_string),
            burst: rate.map(|rate| rate.burst),
            cost: rate.map(|rate| rate.cost),
            concurrency: rule.concurrency,
            breaker_failures: rule.breaker.map(|breaker| breaker.failures),
            breaker_cooldown_ms: rule.breaker.map(cooldown),
            weight: rule.weight,
        }
    }
}

impl WorkerLine {
    /// `state` is what the worker said of itself, or that it is gone.
    pub(crate) fn new(worker: &WorkerRecord, state: &'static str) -> Self {
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
        }
    }
}

impl From<&JournalRow> for JournalLine {
    fn from(row: &JournalRow) -> Self {
        Self {
            id: row.id,
            at: row.at.to_string(),
            event: row.event.as_str(),
            worker: row.worker.map(|worker| worker.0),
            actor: row.actor.clone(),
            lease: row.lease.map(|lease| lease.0),
            jobs: row.jobs.iter().map(ToString::to_string).collect(),
            reason: row.reason.clone(),
            details: raw(row.details.as_ref()),
        }
    }
}

impl From<&Migration> for MigrationLine {
    fn from(migration: &Migration) -> Self {
        Self { version: migration.version, name: migration.name.clone(), applied: migration.applied }
    }
}

fn date(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

/// Stored JSON goes out as it is: a tree in between would round large numbers.
fn raw(json: Option<&Json>) -> Option<Box<RawValue>> {
    let json = json?;
    // What the store holds was checked on its way in; something else is shown as text rather than hidden.
    RawValue::from_string(json.as_str().to_owned()).or_else(|_| to_raw_value(json.as_str())).ok()
}
