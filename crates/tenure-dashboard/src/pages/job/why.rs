//! Why a job is not running yet, in one sentence: the first thing that stands in its way.

use std::collections::BTreeSet;
use std::time::Duration;

use tenure_core::{How, State};
use tenure_server::gate_words::closed_text;
use tenure_server::moment;
use tenure_server::problem::Problem;
use tenure_store::StoreError;
use tenure_store::record::{JobRecord, QueueRecord};
use tenure_store::worker::WorkerRecord;

use crate::bits::{count, many};
use crate::desk::Desk;
use crate::frame::Visit;

/// Workers that are looked at.
const WORKERS_MAX: u32 = 1_000;
/// A job that is due again so long after it was given back was given back for its kind: the shortest such wait is 15 s.
const GIVEN_BACK_FOR: Duration = Duration::from_secs(10);

/// `None` for a job that runs or has ended.
pub(super) async fn not_running(desk: &Desk, visit: &Visit, job: &JobRecord) -> Result<Option<String>, Problem> {
    let summary = &job.summary;
    match summary.state {
        State::Waiting if job.part.is_some() => {
            return Ok(Some("It waits until the other jobs of its run have ended.".to_owned()));
        }
        State::Waiting => return Ok(Some("It waits until somebody opens it.".to_owned())),
        State::Queued | State::Retryable => {}
        _ => return Ok(None),
    }
    // How busy the others are is not a tenant's to know.
    let is_operator = visit.person.caller.tenant.is_none();
    let gate = if is_operator { closed_gate(desk, job).await? } else { None };
    let queues = if is_operator { desk.queues().await? } else { Vec::new() };
    let queue = queues.iter().find(|queue| queue.name == summary.queue);
    let is_paused = queue.is_some_and(|queue| queue.paused);
    if let Some(given_back) = GivenBack::of(job).filter(|_| !is_paused) {
        let workers = if is_operator { desk.store().list_workers(WORKERS_MAX).await? } else { Vec::new() };
        return Ok(Some(given_back.text(job, &workers, visit)));
    }
    if summary.run_at > visit.now {
        let when =
            format!("{} ({})", moment::relative(summary.run_at, visit.now), crate::bits::moment_text(&summary.run_at));
        let due = match summary.state {
            State::Retryable => format!("Its last attempt failed, and it is tried again {when}."),
            _ => format!("It is due {when}."),
        };
        return Ok(Some(gate.map_or(due.clone(), |gate| format!("{due} It could not start now: {gate}."))));
    }
    if !is_operator {
        return Ok(Some("It is due, and waits for a worker.".to_owned()));
    }
    if is_paused {
        return Ok(Some(format!(
            "Queue {} is paused: nothing of it is handed out until somebody resumes it.",
            summary.queue
        )));
    }
    if let Some(gate) = gate {
        return Ok(Some(format!("It waits for {gate}.")));
    }
    let workers = desk.store().list_workers(WORKERS_MAX).await?;
    Ok(Some(of_workers(job, queue, &workers, visit)))
}

/// The last attempts of a job that workers gave back without running it, because they have no handler for its kind.
struct GivenBack<'j> {
    times: usize,
    workers: BTreeSet<&'j str>,
}

impl<'j> GivenBack<'j> {
    /// `None` when the last attempt was not given back with a delay. A worker that stops gives its jobs back without one.
    fn of(job: &'j JobRecord) -> Option<Self> {
        let last = job.attempts.last()?;
        let has_delay = job.summary.run_at.since(last.ended_at) >= GIVEN_BACK_FOR;
        let given_back = job.attempts.iter().rev().take_while(|attempt| attempt.how == How::Released);
        let (times, workers) = (given_back.clone().count(), given_back.filter_map(|attempt| attempt.worker.as_deref()));
        (has_delay && times > 0).then(|| Self { times, workers: workers.collect() })
    }

    fn text(&self, job: &JobRecord, workers: &[WorkerRecord], visit: &Visit) -> String {
        let summary = &job.summary;
        let (kind, queue) = (&summary.kind, &summary.queue);
        let serving = workers.iter().filter(|worker| worker.slots_of(queue, visit.now) > 0);
        let serving: BTreeSet<&str> = serving.map(|worker| worker.name.as_str()).collect();
        let times = many(self.times, "time");
        let is_operator = visit.person.caller.tenant.is_none();
        let what = match (is_operator, serving.difference(&self.workers).count()) {
            (true, 0) => format!("No live worker handles kind {kind}: the job was given back {times}."),
            // Other workers serve its queue and have not taken it yet.
            (true, others) => format!(
                "No worker that took it handles kind {kind}: it was given back {times}. {} of queue {queue} may handle it.",
                many(others, "other worker")
            ),
            (false, _) => format!("No worker that took it handles kind {kind}: it was given back {times}."),
        };
        let when = match summary.run_at > visit.now {
            true => format!("offered to workers again {}", moment::relative(summary.run_at, visit.now)),
            false => "offered to workers now".to_owned(),
        };
        format!("{what} It is {when}. Start a worker that handles {kind}; Run now offers it at once.")
    }
}

/// Its gate and why that is closed.
async fn closed_gate(desk: &Desk, job: &JobRecord) -> Result<Option<String>, Problem> {
    let Some(name) = &job.summary.gate else { return Ok(None) };
    match desk.store().show_gate(name).await {
        Err(StoreError::NotFound(_)) => Ok(None),
        gate => Ok(closed_text(&gate?).map(|why| format!("gate {name}: {why}"))),
    }
}

fn of_workers(job: &JobRecord, queue: Option<&QueueRecord>, workers: &[WorkerRecord], visit: &Visit) -> String {
    let name = &job.summary.queue;
    let (mut serving, mut slots) = (0_u64, 0_u64);
    for worker in workers {
        let own = worker.slots_of(name, visit.now);
        if own > 0 {
            (serving, slots) = (serving + 1, slots + own);
        }
    }
    let Some(queue) = queue else { return "It is due, and waits for a worker.".to_owned() };
    match serving {
        0 => format!("No live worker serves queue {name}. Start one that does."),
        _ if queue.running >= slots => format!(
            "All {} of {} are busy, and {} are due before or with it.",
            many(slots, "slot"),
            many(serving, "worker"),
            count(queue.due)
        ),
        _ => format!("It is due, and the next free worker takes it; {} serve its queue.", many(serving, "worker")),
    }
}
