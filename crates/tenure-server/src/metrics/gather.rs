//! What the store holds. Each question is one bounded list.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::gate::{Admit, Why};
use tenure_core::{State, Timestamp, worker_loop};
use tenure_store::gate::{GateFilter, GateRecord};
use tenure_store::journal::JournalPage;
use tenure_store::operate::BATCH_MAX;
use tenure_store::record::{JobFilter, QueueRecord, Sight};
use tenure_store::webhook::EndpointFilter;
use tenure_store::worker::{Order, Standing, WorkerRecord};
use tenure_store::{Store, StoreError};
use tokio::time::Instant;

use super::catalogue as is;
use super::text::{Families, bounded};
use super::{endings, pages};

/// A worker that went silent is told of for so long.
const GONE_FOR: Duration = Duration::from_secs(3_600);

/// Asks the store for everything.
pub(super) async fn gather(store: &dyn Store) -> Result<Families, StoreError> {
    let began = Instant::now();
    let now = store.now().await?;
    let mut families = Families::new(is::OF_STORE);
    families.put(&is::UP, &[], 1.0);
    queues(&mut families, store.list_queues().await?, now);
    workers(&mut families, &store.list_workers(BATCH_MAX).await?, now);
    let dead = JobFilter { state: Some(State::Dead), limit: BATCH_MAX, ..JobFilter::default() };
    families.put(&is::DEAD, &[], count(&store.list_jobs(&dead).await?));
    let all = GateFilter { limit: BATCH_MAX, ..GateFilter::default() };
    gates(&mut families, store.list_gates(&all).await?);
    pages::gather(&mut families, store, now).await?;
    endpoints(&mut families, store).await?;
    let tail = store.read_journal(JournalPage { seal: None, after: 0, limit: 1 }).await?;
    families.put(&is::UNSEALED, &[], tail.first().map_or(0.0, |row| now.since(row.at).as_secs_f64()));
    endings::gather(&mut families, store).await?;
    families.put(&is::GATHER_SECONDS, &[], began.elapsed().as_secs_f64());
    Ok(families)
}

pub(super) fn count<T>(list: &[T]) -> f64 {
    list.len() as f64
}

fn queues(families: &mut Families, queues: Vec<QueueRecord>, now: Timestamp) {
    let all = queues.into_iter().map(|queue| (queue.name.to_string(), queue));
    let join = |others: &mut QueueRecord, one: QueueRecord| {
        others.due += one.due;
        others.scheduled += one.scheduled;
        others.running += one.running;
        others.paused |= one.paused;
        others.oldest_due = others.oldest_due.into_iter().chain(one.oldest_due).min();
    };
    for (name, queue) in bounded(all, join) {
        for (state, jobs) in [("due", queue.due), ("scheduled", queue.scheduled), ("running", queue.running)] {
            families.put(&is::QUEUE_JOBS, &[("queue", &name), ("state", state)], jobs as f64);
        }
        let oldest = queue.oldest_due.map_or(0.0, |due| now.since(due).as_secs_f64());
        families.put(&is::QUEUE_OLDEST, &[("queue", &name)], oldest);
        families.put(&is::QUEUE_PAUSED, &[("queue", &name)], f64::from(u8::from(queue.paused)));
    }
}

fn workers(families: &mut Families, workers: &[WorkerRecord], now: Timestamp) {
    let (mut states, mut slots) = ([("working", 0.0), ("quiet", 0.0), ("gone", 0.0)], BTreeMap::new());
    for worker in workers {
        let standing = Standing::of(worker, now);
        let is_quiet = worker.order != Order::Work || standing == Standing::There(worker_loop::State::Draining);
        let silent_for = now.since(worker.seen_at.unwrap_or(worker.registered_at));
        match standing {
            Standing::There(_) | Standing::New => states[usize::from(is_quiet)].1 += 1.0,
            Standing::Gone if silent_for < GONE_FOR => states[2].1 += 1.0,
            Standing::Gone | Standing::Stopped => {}
        }
        if standing.is_there() && !is_quiet {
            for (queue, count) in worker.beat.iter().flat_map(|beat| &beat.about.queues) {
                *slots.entry(queue.to_string()).or_insert(0.0) += f64::from(*count);
            }
        }
    }
    for (state, count) in states {
        families.put(&is::WORKERS, &[("state", state)], count);
    }
    for (queue, slots) in bounded(slots, |others, one| *others += one) {
        families.put(&is::QUEUE_SLOTS, &[("queue", &queue)], slots);
    }
}

fn gates(families: &mut Families, gates: Vec<GateRecord>) {
    let of = |gate: GateRecord| {
        let why = match gate.admit {
            Admit::Closed { why, .. } => Some(why),
            Admit::Open(_) => None,
        };
        let is_open = matches!(why, Some(Why::Open | Why::Probing)) || gate.gate.open_until.is_some();
        (gate.name.to_string(), (is_open, why == Some(Why::Paused), f64::from(gate.gate.in_use)))
    };
    let join = |others: &mut (bool, bool, f64), one: (bool, bool, f64)| {
        *others = (others.0 | one.0, others.1 | one.1, others.2 + one.2);
    };
    for (name, (is_open, is_paused, inside)) in bounded(gates.into_iter().map(of), join) {
        families.put(&is::GATE_OPEN, &[("gate", &name)], f64::from(u8::from(is_open)));
        families.put(&is::GATE_PAUSED, &[("gate", &name)], f64::from(u8::from(is_paused)));
        families.put(&is::GATE_PERMITS, &[("gate", &name)], inside);
    }
}

async fn endpoints(families: &mut Families, store: &dyn Store) -> Result<(), StoreError> {
    let filter = EndpointFilter { sight: Sight::All, after: None, limit: BATCH_MAX };
    let endpoints = store.list_endpoints(&filter).await?;
    let failing = endpoints.iter().filter(|endpoint| endpoint.failing_since.is_some()).count();
    let disabled = endpoints.iter().filter(|endpoint| endpoint.disabled.is_some()).count();
    families.put(&is::ENDPOINTS, &[], count(&endpoints));
    families.put(&is::ENDPOINTS_FAILING, &[], failing as f64);
    families.put(&is::ENDPOINTS_DISABLED, &[], disabled as f64);
    Ok(())
}
