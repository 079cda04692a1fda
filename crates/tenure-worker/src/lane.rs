//! A lane: one queue's slots in this process, and the jobs that wait for them.
//!
//! ```text
//!   claim ──► waiting ──► a runner's handler ──► report on its way ──► gone
//!             └─────── unended ───────┘          └── reporting ──┘
//! ```
//!
//! A runner is a task that takes one waiting job after the other; there are never more than slots, so that many handlers
//! run at once. A report on its way keeps no handler waiting: the next job runs while the store is told of the one
//! before. What is not answered yet is bounded by the lane's capacity, so a slow store slows the claims down by itself
//! and nothing piles up.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::QueueName;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ctx::Ctx;
use crate::flight::{CLAIMS_MAX, Flights};
use crate::options::Options;

/// A claim waits for a fourth of the places to be free, but no longer than this.
const CLAIM_PART: u32 = 4;
const GATHER: Duration = Duration::from_millis(2);
/// So many turns of everybody else without a place becoming free, and nothing more is about to end in this moment.
const SILENT_YIELDS: u32 = 8;

/// One queue's slots.
pub(crate) struct Lane {
    pub(crate) queue: QueueName,
    pub(crate) desk: Arc<Desk>,
    /// Claims made, for [`ClaimJobs::turn`](tenure_store::lease::ClaimJobs::turn).
    pub(crate) turn: u64,
    /// The last claim found nothing: only time or a wake-up brings more.
    pub(crate) dry: bool,
    /// When the store was last told that somebody waits here.
    pub(crate) pushed: Option<Instant>,
    pub(crate) flights: Flights,
}

/// What the loop and the runners of a lane share.
pub(crate) struct Desk {
    /// Handlers that may run at once.
    slots: u32,
    /// Jobs that may be unended: the slots, and what is claimed ahead of them.
    capacity: u32,
    /// Jobs that one claim takes at most.
    lease_jobs: u32,
    waiting: Mutex<Waiting>,
    unended: AtomicU32,
    reporting: AtomicU32,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Held>,
    runners: u32,
}

/// A claimed job with its place.
pub(crate) struct Held {
    pub(crate) ctx: Ctx,
    pub(crate) place: Place,
}

/// A claimed job's place in its lane; free again when dropped, whatever happens to its task.
pub(crate) struct Place {
    desk: Arc<Desk>,
    reporting: bool,
}

/// A runner's right to run; given back when dropped.
pub(crate) struct Runner(Option<Arc<Desk>>);

impl Lane {
    pub(crate) fn new(queue: QueueName, slots: u32, options: &Options) -> Self {
        let desk = Desk {
            slots,
            capacity: slots.saturating_add(options.prefetch),
            lease_jobs: options.lease_jobs,
            waiting: Mutex::default(),
            unended: AtomicU32::new(0),
            reporting: AtomicU32::new(0),
        };
        Self { queue, desk: Arc::new(desk), turn: 0, dry: false, pushed: None, flights: Flights::default() }
    }

    /// How many jobs the next claim may take: never more than what is free.
    pub(crate) fn free(&self) -> u32 {
        self.room().min(self.desk.lease_jobs)
    }

    fn room(&self) -> u32 {
        self.desk.room().saturating_sub(self.flights.jobs())
    }

    /// What the next claim may take, if one is to be sent: a second or third only for a whole lease, and only where the
    /// last one found something.
    pub(crate) fn next_claim(&self) -> Option<u32> {
        match (self.flights.count(), self.room()) {
            (0, room) if room > 0 => Some(room.min(self.desk.lease_jobs)),
            (1..CLAIMS_MAX, room) if !self.dry && room >= self.desk.lease_jobs => Some(self.desk.lease_jobs),
            _ => None,
        }
    }

    /// Whether a claim now is worth its round trip: nothing is left to run here, nobody knows of more, or a good part is
    /// free.
    fn is_worth_a_claim(&self) -> bool {
        let free = self.room();
        free > 0 && (self.dry || free >= self.desk.good_part() || self.desk.unended.load(Ordering::Acquire) == 0)
    }

    /// Puts claimed jobs in line. Answers the runners to start for them.
    pub(crate) fn put(&self, contexts: Vec<Ctx>) -> Vec<Runner> {
        let desk = &self.desk;
        desk.unended.fetch_add(u32::try_from(contexts.len()).unwrap_or(u32::MAX), Ordering::AcqRel);
        let mut waiting = desk.lock();
        let place = || Place { desk: Arc::clone(desk), reporting: false };
        waiting.jobs.extend(contexts.into_iter().map(|ctx| Held { ctx, place: place() }));
        let wanted = u32::try_from(waiting.jobs.len()).unwrap_or(u32::MAX);
        let more = wanted.min(desk.slots.saturating_sub(waiting.runners));
        waiting.runners += more;
        drop(waiting);
        (0..more).map(|_| Runner(Some(Arc::clone(desk)))).collect()
    }
}

impl Desk {
    fn room(&self) -> u32 {
        let (unended, reporting) = (self.unended.load(Ordering::Acquire), self.reporting.load(Ordering::Acquire));
        let unanswered = (2 * self.capacity).saturating_sub(unended + reporting);
        self.capacity.saturating_sub(unended).min(unanswered)
    }

    fn good_part(&self) -> u32 {
        (self.capacity / CLAIM_PART).clamp(1, 2 * self.lease_jobs)
    }

    /// Takes out what must not wait for a runner: all of it, or those that were told to stop.
    pub(crate) fn take_waiting(&self, is_wanted: impl Fn(&Ctx) -> bool) -> Vec<Held> {
        let mut waiting = self.lock();
        let (taken, left) = waiting.jobs.drain(..).partition(|held| is_wanted(&held.ctx));
        waiting.jobs = left;
        Vec::from(taken)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runner {
    /// The next job in line. When there is none the right to run is given back, in the same moment: a job that comes
    /// after that finds a runner missing and gets one.
    pub(crate) fn next(&mut self) -> Option<Held> {
        let mut waiting = self.0.as_ref()?.lock();
        let next = waiting.jobs.pop_front();
        if next.is_none() {
            waiting.runners -= 1;
            drop(waiting);
            self.0 = None;
        }
        next
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        if let Some(desk) = &self.0 {
            desk.lock().runners -= 1;
        }
    }
}

impl Place {
    /// Its handler has ended, and the store is to be told. Answers whether the loop should look: not for every place,
    /// since it looks at all of them.
    pub(crate) fn end(&mut self) -> bool {
        if std::mem::replace(&mut self.reporting, true) {
            return false;
        }
        self.desk.reporting.fetch_add(1, Ordering::AcqRel);
        let left = self.desk.unended.fetch_sub(1, Ordering::AcqRel) - 1;
        let free = self.desk.capacity.saturating_sub(left);
        left == 0 || free == 1 || free == self.desk.good_part()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let count = if self.reporting { &self.desk.reporting } else { &self.desk.unended };
        count.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Waits until some lane has a free place, and a moment longer where more are about to be: slots that are refilled one
/// by one make a lease, a report and two transactions for every single job.
pub(crate) async fn some_free(lanes: &[Lane], freed: &Notify) {
    until(lanes, freed, |lane| lane.free() > 0).await;
    look_around(lanes).await;
    let _enough_or_time = tokio::time::timeout(GATHER, until(lanes, freed, Lane::is_worth_a_claim)).await;
}

/// Waits for those that end in this very moment, without any timer, until the next claims could take no more.
async fn look_around(lanes: &[Lane]) {
    let unended = || lanes.iter().map(|lane| lane.desk.unended.load(Ordering::Acquire)).sum::<u32>();
    let is_full = |lane: &Lane| lane.desk.room() >= lane.desk.capacity.min(2 * lane.desk.lease_jobs);
    let (mut left, mut silent) = (unended(), 0);
    while silent < SILENT_YIELDS && !lanes.iter().any(is_full) {
        tokio::task::yield_now().await;
        let now = unended();
        silent = if now == left { silent + 1 } else { 0 };
        left = now;
    }
}

async fn until(lanes: &[Lane], freed: &Notify, is_so: impl Fn(&Lane) -> bool) {
    loop {
        // Listen before looking: a place freed between the two would otherwise be missed.
        let bell = freed.notified();
        tokio::pin!(bell);
        bell.as_mut().enable();
        if lanes.iter().any(&is_so) {
            return;
        }
        bell.await;
    }
}
