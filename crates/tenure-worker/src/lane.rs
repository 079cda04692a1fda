//! A lane: one queue's slots in this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenure_core::QueueName;
use tenure_store::lease::LEASE_JOBS_MAX;
use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

/// A claim waits for a fourth of the places to be free, but no longer than this.
const CLAIM_PART: u32 = 4;
const GATHER: Duration = Duration::from_millis(2);

/// One queue's slots.
pub(crate) struct Lane {
    pub(crate) queue: QueueName,
    /// Jobs that may be held: the slots, and what is claimed ahead of them.
    capacity: u32,
    held: Arc<AtomicU32>,
    /// Handlers that may run.
    pub(crate) running: Arc<Semaphore>,
    /// Claims made, for [`ClaimJobs::turn`](tenure_store::lease::ClaimJobs::turn).
    pub(crate) turn: u64,
    /// The last claim found nothing: only time or a wake-up brings more.
    pub(crate) dry: bool,
    /// When the store was last told that somebody waits here.
    pub(crate) pushed: Option<Instant>,
}

/// A held job's place in its lane; free again when dropped, whatever happens to its task.
pub(crate) struct Place<F: Fn()> {
    held: Arc<AtomicU32>,
    freed: F,
}

impl Lane {
    pub(crate) fn new(queue: QueueName, slots: u32, prefetch: u32) -> Self {
        Self {
            queue,
            capacity: slots.saturating_add(prefetch),
            held: Arc::default(),
            running: Arc::new(Semaphore::new(slots as usize)),
            turn: 0,
            dry: false,
            pushed: None,
        }
    }

    /// How many jobs the next claim may take: never more than what is free.
    pub(crate) fn free(&self) -> u32 {
        self.capacity.saturating_sub(self.held.load(Ordering::Acquire)).min(LEASE_JOBS_MAX)
    }

    /// Whether a claim now is worth its round trip: nothing is held here, nobody knows of more, or a good part is free.
    fn is_worth_a_claim(&self) -> bool {
        let (held, free) = (self.held.load(Ordering::Acquire), self.free());
        free > 0 && (held == 0 || self.dry || free >= (self.capacity / CLAIM_PART).min(LEASE_JOBS_MAX / 2))
    }

    /// Takes one place.
    pub(crate) fn take<F: Fn()>(&self, freed: F) -> Place<F> {
        self.held.fetch_add(1, Ordering::AcqRel);
        Place { held: Arc::clone(&self.held), freed }
    }
}

impl<F: Fn()> Drop for Place<F> {
    fn drop(&mut self) {
        self.held.fetch_sub(1, Ordering::AcqRel);
        (self.freed)();
    }
}

/// Waits until some lane has a free place, and a moment longer where more are about to be: slots that are refilled one
/// by one make a lease, a report and two transactions for every single job.
pub(crate) async fn some_free(lanes: &[Lane], freed: &Notify) {
    until(lanes, freed, |lane| lane.free() > 0).await;
    let _enough_or_time = tokio::time::timeout(GATHER, until(lanes, freed, Lane::is_worth_a_claim)).await;
}

async fn until(lanes: &[Lane], freed: &Notify, is_so: impl Fn(&Lane) -> bool) {
    loop {
        // Listen before looking: a slot freed between the two would otherwise be missed.
        let bell = freed.notified();
        tokio::pin!(bell);
        bell.as_mut().enable();
        if lanes.iter().any(&is_so) {
            return;
        }
        bell.await;
    }
}
