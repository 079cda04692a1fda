//! A worker without a process: what schedules ask for, and every due job, one after the other, on the caller's own task.
//! For tests and scripts.

use std::sync::Arc;

use tenure_core::WorkerId;
use tenure_store::StoreError;
use tenure_store::lease::ClaimJobs;
use tokio::time::Instant;

use crate::duty::{Scheduler, counter};
use crate::lane::Lane;
use crate::reporter::Reporter;
use crate::shared::{Shared, Summary};
use crate::slot;

/// Jobs that enqueue themselves without end are a mistake in the test, not a reason to hang.
const RUNS_MAX: u64 = 100_000;

pub(crate) async fn run_until_idle(shared: &Arc<Shared>) -> Result<Summary, StoreError> {
    let worker = register(shared).await?;
    let reporter = Reporter::start(Arc::clone(shared));
    let before = shared.gauge.summary();
    Scheduler::new(Arc::clone(shared)).run_once().await?;
    loop {
        let mut found = false;
        for (queue, _) in &shared.about.queues {
            let sent = Instant::now();
            let request = ClaimJobs::new(worker, queue.clone(), shared.options.lease_jobs);
            let Some(claimed) = shared.store.claim_jobs(request).await? else { continue };
            found = true;
            let lane = Lane::new(queue.clone(), 1, &shared.options);
            for mut runner in lane.put(shared.take(claimed, queue, worker, sent)) {
                while let Some(held) = runner.next() {
                    slot::run(shared, &reporter, held).await;
                    answered(shared).await;
                }
            }
        }
        // What they said of their runs may open more.
        found |= counter::run_once(shared).await?;
        let now = shared.gauge.summary();
        if !found {
            shared.store.drop_leases(worker, shared.held.take_emptied()).await?;
            return Ok(now.since(&before));
        }
        if now.claimed - before.claimed > RUNS_MAX {
            return Err(StoreError::Conflict(format!(
                "more than {RUNS_MAX} jobs ran and there are still more: do they enqueue themselves?"
            )));
        }
    }
}

/// Waits until the report on its way is answered.
async fn answered(shared: &Shared) {
    loop {
        let freed = shared.freed.notified();
        tokio::pin!(freed);
        freed.as_mut().enable();
        if shared.in_flight() == 0 {
            return;
        }
        freed.await;
    }
}

async fn register(shared: &Shared) -> Result<WorkerId, StoreError> {
    if let (None, Some(name)) = (shared.worker.get(), &shared.options.name) {
        let worker = shared.store.register_worker(name).await?;
        let _first = shared.worker.set(worker);
    }
    shared.worker.get().copied().ok_or_else(|| StoreError::Corrupt("a worker without a name was built".into()))
}
