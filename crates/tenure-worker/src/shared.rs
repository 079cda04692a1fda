//! What the parts of one worker process share.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tenure_core::{QueueName, WorkerId, worker_loop};
use tenure_store::Store;
use tenure_store::lease::Claimed;
use tenure_store::worker::{About, Beat, Order};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::client::Client;
use crate::ctx::{Ctx, Place};
use crate::flag::Flag;
use crate::held::{self, Held, Taken};
use crate::measure;
use crate::minute::Minute;
use crate::options::Options;
use crate::route::Routes;
use crate::trouble::{GivenBack, Trouble, Unknown};

pub(crate) struct Shared {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) client: Client,
    pub(crate) routes: Routes,
    pub(crate) options: Options,
    pub(crate) about: About,
    /// This process start's number, once the store has given it.
    pub(crate) worker: OnceLock<WorkerId>,
    pub(crate) held: Held,
    pub(crate) gauge: Gauge,
    /// What the log is told next.
    pub(crate) minute: Minute,
    pub(crate) trouble: Trouble,
    pub(crate) unknown: Unknown,
    pub(crate) given_back: GivenBack,
    /// The process was told to stop.
    pub(crate) stopping: Arc<Flag>,
    /// The worker was told to claim nothing.
    pub(crate) quiet: AtomicBool,
    /// A slot became free.
    pub(crate) freed: Notify,
    /// A job has said something to its run.
    pub(crate) spoken: Notify,
}

/// What a worker does, in numbers that anybody may read at any time.
#[derive(Default)]
pub(crate) struct Gauge {
    state: AtomicU8,
    /// Claimed, and not ended yet: running, or about to.
    pub(crate) unended: AtomicU32,
    pub(crate) processing: AtomicU32,
    pub(crate) reporting: AtomicU32,
    pub(crate) claimed: AtomicU64,
    pub(crate) succeeded: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) fenced: AtomicU64,
    pub(crate) released: AtomicU64,
    pub(crate) unknown_kinds: AtomicU64,
}

/// What a worker did from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Jobs taken under a lease.
    pub claimed: u64,
    /// Endings the store accepted as succeeded.
    pub succeeded: u64,
    /// Other endings it accepted: retries, failures, dead, canceled, snoozed.
    pub failed: u64,
    /// Given back, uncharged.
    pub released: u64,
    /// Reports that came too late and changed nothing.
    pub refused: u64,
    /// Attempts stopped at the local deadline of their lease.
    pub fenced: u64,
    /// Jobs of kinds this worker has no handler for.
    pub unknown_kinds: u64,
}

impl Summary {
    /// What was done since `before`.
    pub(crate) fn since(&self, before: &Self) -> Self {
        Self {
            claimed: self.claimed - before.claimed,
            succeeded: self.succeeded - before.succeeded,
            failed: self.failed - before.failed,
            released: self.released - before.released,
            refused: self.refused - before.refused,
            fenced: self.fenced - before.fenced,
            unknown_kinds: self.unknown_kinds - before.unknown_kinds,
        }
    }
}

impl Gauge {
    pub(crate) fn set_state(&self, state: worker_loop::State) {
        let at = worker_loop::State::ALL.iter().position(|s| *s == state).unwrap_or(0);
        self.state.store(u8::try_from(at).unwrap_or(0), Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> worker_loop::State {
        let at = usize::from(self.state.load(Ordering::Relaxed));
        worker_loop::State::ALL.get(at).copied().unwrap_or(worker_loop::State::Startup)
    }

    /// So many jobs were claimed.
    pub(crate) fn claim(&self, jobs: usize) {
        self.unended.fetch_add(u32::try_from(jobs).unwrap_or(u32::MAX), Ordering::AcqRel);
        self.claimed.fetch_add(jobs as u64, Ordering::Relaxed);
    }

    pub(crate) fn summary(&self) -> Summary {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Summary {
            claimed: read(&self.claimed),
            succeeded: read(&self.succeeded),
            failed: read(&self.failed),
            released: read(&self.released),
            refused: read(&self.refused),
            fenced: read(&self.fenced),
            unknown_kinds: read(&self.unknown_kinds),
        }
    }
}

/// One more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Shared {
    /// Takes what was claimed into hand: the keeper renews it from now on, and each job has its context.
    pub(crate) fn take(&self, claimed: Claimed, queue: &QueueName, worker: WorkerId, sent: Instant) -> Vec<Ctx> {
        let Claimed { lease, ttl, jobs, .. } = claimed;
        let deadline = held::deadline(sent, ttl);
        let contexts: Vec<Ctx> = jobs
            .into_iter()
            .map(|job| {
                let client = self.client.clone().for_tenant(job.tenant.clone());
                let place = Place { queue: queue.clone(), worker, lease, deadline };
                Ctx::new(job, place, client, Arc::clone(&self.stopping))
            })
            .collect();
        let renew_every = held::renew_every(self.options.renew_every, ttl);
        self.held.take(&Taken { lease, ttl, renew_every, sent }, &contexts);
        self.gauge.claim(contexts.len());
        measure::jobs_claimed(queue, contexts.len(), self.gauge.unended.load(Ordering::Relaxed));
        self.minute.claimed(contexts.len());
        tracing::debug!(batch_claimed_count = contexts.len(), lease.no = %lease, queue = %queue, "claimed");
        contexts
    }

    /// Does what an operator told this worker.
    pub(crate) fn obey(&self, order: Order) {
        let quiet = order != Order::Work;
        if self.quiet.swap(quiet, Ordering::AcqRel) != quiet {
            tracing::info!(order = order.as_str(), "an operator has given an order");
        }
        if order == Order::Stop {
            self.stopping.raise();
        }
    }

    /// What the registry is told now.
    pub(crate) fn beat(&self, worker: WorkerId) -> Beat {
        Beat {
            worker,
            state: self.gauge.state(),
            running: self.gauge.processing.load(Ordering::Relaxed),
            reporting: self.gauge.reporting.load(Ordering::Relaxed),
            about: self.about.clone(),
        }
    }

    /// Jobs that are in a slot, running or being reported.
    pub(crate) fn in_flight(&self) -> u32 {
        self.gauge.processing.load(Ordering::Acquire) + self.gauge.reporting.load(Ordering::Acquire)
    }
}
