//! Why a job is not running yet, in one sentence: the first thing that stands in its way.

use tenure_core::State;
use tenure_server::gate_words::closed_text;
use tenure_server::moment;
use tenure_server::problem::Problem;
use tenure_store::StoreError;
use tenure_store::record::{JobRecord, QueueRecord};
use tenure_store::worker::{Standing, WorkerRecord};

use crate::bits::{count, many};
use crate::desk::Desk;
use crate::frame::Visit;

/// Workers that are looked at.
const WORKERS_MAX: u32 = 1_000;

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
    let queue = desk.queues().await?.into_iter().find(|queue| queue.name == summary.queue);
    if queue.as_ref().is_some_and(|queue| queue.paused) {
        return Ok(Some(format!(
            "Queue {} is paused: nothing of it is handed out until somebody resumes it.",
            summary.queue
        )));
    }
    if let Some(gate) = gate {
        return Ok(Some(format!("It waits for {gate}.")));
    }
    let workers = desk.store().list_workers(WORKERS_MAX).await?;
    Ok(Some(of_workers(job, queue.as_ref(), &workers, visit)))
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
    let there = workers.iter().filter(|worker| Standing::of(worker, visit.now).is_there());
    let (mut serving, mut slots) = (0_u64, 0_u64);
    for worker in there {
        let about = worker.beat.iter().flat_map(|beat| &beat.about.queues);
        let own: u64 = about.filter(|(served, _)| served == name).map(|(_, slots)| u64::from(*slots)).sum();
        if own > 0 {
            (serving, slots) = (serving + 1, slots + own);
        }
    }
    let Some(queue) = queue else { return "It is due, and waits for a worker.".to_owned() };
    match serving {
        0 => format!("No worker serves queue {name}. Start one that does."),
        _ if queue.running >= slots => format!(
            "All {} of {} are busy, and {} are due before or with it.",
            many(slots, "slot"),
            many(serving, "worker"),
            count(queue.due)
        ),
        _ => format!("It is due, and the next free worker takes it; {} serve its queue.", many(serving, "worker")),
    }
}
