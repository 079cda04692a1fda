//! The lease keeper: renews what this process holds, and lets go of what it may no longer hold.
//!
//! It has a thread, a runtime and a connection of its own, so that handlers that block every thread of the worker's
//! runtime cannot starve it. Two loops run side by side there:
//!
//! - the **watch** never waits for the store: at a lease's local deadline it tells the handlers and drops the lease;
//! - the **rounds** talk to the store: renew by number, hear cancel requests, delete emptied leases, tell the registry,
//!   and report handlers that outran their time and block their thread.
//!
//! A renewal that is not answered, or not for every number, is neither good nor bad news: it is repeated every second or
//! so, and the deadline stays where the last accepted one put it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::{JobId, LeaseNo, WorkerId, worker_loop};
use tenure_store::lease::{EndJob, EndJobs, Ended, RenewLeases};
use tenure_store::operate::BATCH_MAX;
use tenure_store::worker::Beat;
use tenure_store::{Store, StoreError};
use tokio::time::Instant;

use crate::ctx::{Ctx, Stop};
use crate::flag::Flag;
use crate::judge;
use crate::options::KeeperPlace;
use crate::random;
use crate::run::WIND_UP;
use crate::shared::{Shared, count};

/// How often the keeper looks around.
const ROUND: Duration = Duration::from_millis(200);
/// A handler that has not stopped so long after it was dropped blocks its thread.
const BLOCKED_FOR: Duration = Duration::from_secs(1);
/// How soon an unanswered renewal is repeated.
const RENEW_AGAIN: Duration = Duration::from_secs(1);
/// How often cancel requests of held jobs are asked for.
const CANCELS_EVERY: Duration = Duration::from_secs(1);
/// How often the registry hears what changed, and how often that nothing did.
const BEAT_CHANGED: Duration = Duration::from_secs(1);
const BEAT_SAME: Duration = Duration::from_secs(10);
/// How often the log hears of leases that were let go of.
const LOST_EVERY: Duration = Duration::from_secs(1);
/// How long a parting word may take.
const FAREWELL: Duration = Duration::from_millis(300);

/// A running keeper; stops when told or dropped.
pub(crate) struct Keeper {
    closing: Arc<Flag>,
    ended: tokio::sync::oneshot::Receiver<()>,
}

impl Keeper {
    /// Starts it. An error means that this machine gives no thread.
    pub(crate) fn start(shared: Arc<Shared>) -> std::io::Result<Self> {
        let closing = Arc::new(Flag::default());
        let is_closing = Arc::clone(&closing);
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        match shared.options.keeper {
            KeeperPlace::Task => {
                let machine = Arc::clone(&shared);
                machine.spawn(async move {
                    keep(&shared, &is_closing).await;
                    drop(end);
                });
            }
            KeeperPlace::Thread => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
                std::thread::Builder::new().name("tenure-keeper".into()).spawn(move || {
                    runtime.block_on(keep(&shared, &is_closing));
                    // A connection that hangs must not keep the process.
                    runtime.shutdown_timeout(Duration::from_millis(50));
                    drop(end);
                })?;
            }
        }
        Ok(Self { closing, ended })
    }

    /// Waits until it has ended by itself: the process was told to stop, and has not stopped in its time.
    pub(crate) async fn ended(&mut self) {
        // An error is what is waited for: the other end is dropped when it has ended.
        let _ = (&mut self.ended).await;
    }

    /// Gives back what is left, says a last word to the registry and ends.
    pub(crate) async fn stop(mut self) {
        self.closing.raise();
        self.ended().await;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // A worker whose future was dropped must not renew for ever.
        self.closing.raise();
    }
}

async fn keep(shared: &Shared, closing: &Flag) {
    let mut rounds = Rounds { shared, store: None, told: None, cancels_at: Instant::now(), overdue: BTreeMap::new() };
    tokio::select! {
        biased;
        () = closing.raised() => {}
        () = watch_deadlines(shared) => {}
        () = rounds.run() => {}
        () = time_is_up(shared) => {}
    }
    if tokio::time::timeout(FAREWELL, rounds.part()).await.is_err() && !shared.held.is_empty() {
        tracing::warn!("the store did not answer in time: what was not given back waits for the end of its lease");
    }
}

/// Over when the process was told to stop and has had all its time.
async fn time_is_up(shared: &Shared) {
    shared.stopping.raised().await;
    tokio::time::sleep(shared.options.grace + WIND_UP).await;
}

/// Tells handlers at the local deadline of their lease, whatever the store does.
async fn watch_deadlines(shared: &Shared) {
    let mut lost = Lost::default();
    loop {
        lost.tell();
        let Some(deadline) = shared.held.next_deadline() else {
            tokio::select! {
                biased;
                () = shared.held.changed.notified() => {}
                () = lost.due() => {}
            }
            continue;
        };
        // No lease is shorter than a second, so a new one is seen in time without being waited for.
        tokio::time::sleep_until(deadline.min(Instant::now() + ROUND / 2)).await;
        let fenced = shared.held.fence();
        for ctx in &fenced {
            count(&shared.gauge.fenced);
            tracing::debug!(job.id = %ctx.job_id(), lease.no = %ctx.fence(), "fenced");
        }
        lost.jobs.extend(fenced);
    }
}

/// Attempts that were stopped and not told of yet. One line a second, however many: this is what an outage of the store
/// looks like in every process at once.
#[derive(Default)]
struct Lost {
    jobs: Vec<Ctx>,
    told: Option<Instant>,
}

impl Lost {
    fn tell(&mut self) {
        if self.jobs.is_empty() || self.told.is_some_and(|told| told.elapsed() < LOST_EVERY) {
            return;
        }
        self.told = Some(Instant::now());
        let jobs = std::mem::take(&mut self.jobs);
        if let Some(first) = jobs.first() {
            tracing::warn!(jobs = jobs.len(), job.id = %first.job_id(), lease.no = %first.fence(), "no renewal was accepted in time: handlers are stopped and their results dropped");
        }
    }

    /// Waits until there is something to tell.
    async fn due(&self) {
        match self.told {
            Some(told) if !self.jobs.is_empty() => tokio::time::sleep_until(told + LOST_EVERY).await,
            _ => std::future::pending().await,
        }
    }
}

/// The part that talks to the store.
struct Rounds<'s> {
    shared: &'s Shared,
    store: Option<Arc<dyn Store>>,
    told: Option<(Beat, Instant)>,
    cancels_at: Instant,
    /// Handlers that are beyond their time, and for how many rounds.
    overdue: BTreeMap<(LeaseNo, JobId), u32>,
}

impl Rounds<'_> {
    async fn run(&mut self) {
        let mut tick = tokio::time::interval(ROUND);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tick.tick().await;
            if let Err(error) = self.round().await {
                self.shared.trouble.failed("keeping leases", &error);
            }
        }
    }

    async fn round(&mut self) -> Result<(), StoreError> {
        let shared = self.shared;
        let Some(worker) = shared.worker.get().copied() else { return Ok(()) };
        let store = self.store().await?;
        let leases = shared.held.to_renew(RENEW_AGAIN);
        if !leases.is_empty() {
            let sent = Instant::now();
            let renewed = store.renew_leases(RenewLeases { worker, leases }).await?;
            shared.held.renewed(&renewed.leases, sent);
            shared.held.cancel(&renewed.cancel_requested);
            shared.trouble.over();
        }
        // The rest matters less than renewing, and none of it keeps the others from being done.
        let done = [
            self.hear_cancels(&*store).await,
            self.give_up_overdue(&*store).await,
            self.drop_emptied(&*store, worker).await,
            self.beat(&*store, false).await,
        ];
        done.into_iter().collect()
    }

    async fn hear_cancels(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let held = &self.shared.held;
        if self.cancels_at > Instant::now() || held.is_empty() {
            return Ok(());
        }
        self.cancels_at = Instant::now() + CANCELS_EVERY;
        let jobs: Vec<JobId> = held.attempts().iter().map(Ctx::job_id).collect();
        for jobs in jobs.chunks(BATCH_MAX as usize) {
            held.cancel(&store.find_cancel_requests(jobs.to_vec()).await?);
        }
        Ok(())
    }

    async fn drop_emptied(&self, store: &dyn Store, worker: WorkerId) -> Result<(), StoreError> {
        let emptied = self.shared.held.take_emptied();
        if emptied.is_empty() {
            return Ok(());
        }
        let dropped = store.drop_leases(worker, emptied.clone()).await;
        if dropped.is_err() {
            self.shared.held.put_back_emptied(emptied);
        }
        dropped.map(drop)
    }

    /// Reports handlers that block their thread beyond their time: nobody else can, if they block all of them. Their slot
    /// has the time it needs to stop them first, counted in rounds: a process that stood still, all of it, has not got
    /// round to that yet, whatever the clock says.
    async fn give_up_overdue(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        let overdue = self.shared.held.overdue();
        let before = std::mem::take(&mut self.overdue);
        for ctx in &overdue {
            let name = (ctx.fence(), ctx.job_id());
            self.overdue.insert(name, before.get(&name).map_or(1, |rounds| rounds + 1));
        }
        let patience = self.shared.options.cancel_grace + BLOCKED_FOR;
        let is_blocked =
            |ctx: &Ctx| self.overdue.get(&(ctx.fence(), ctx.job_id())).is_some_and(|n| ROUND * *n > patience);
        for ctx in overdue.iter().filter(|ctx| is_blocked(ctx)) {
            let Some(route) = self.shared.routes.get(ctx.kind()) else { continue };
            let rules = route.rules.as_ref().unwrap_or(&self.shared.options.rules);
            let ending = judge::timed_out(ctx, route.timeout.unwrap_or_default(), rules, random::roll());
            let (worker, lease, job) = (ctx.0.worker, ctx.fence(), ctx.job_id());
            let jobs = vec![EndJob { gate: ctx.gate_word(), ..EndJob::new(job, ending) }];
            let answers = store.end_jobs(EndJobs { worker, lease, jobs }).await?;
            match answers.first() {
                // Its own transaction is about to end it: the next round knows more.
                None | Some(Ended::Busy) => continue,
                Some(Ended::LeaseLost { .. }) => {}
                Some(Ended::Now(_) | Ended::Before(_)) => count(&self.shared.gauge.failed),
            }
            tracing::error!(job.id = %job, job.kind = %ctx.kind(), lease.no = %lease, "the handler blocks its thread beyond its timeout: the job is given up, the slot stays taken until it returns");
            ctx.tell(Stop::LeaseLost);
            self.shared.held.settle(lease, &[job], 1);
        }
        Ok(())
    }

    async fn beat(&mut self, store: &dyn Store, now: bool) -> Result<(), StoreError> {
        let Some(worker) = self.shared.worker.get().copied() else { return Ok(()) };
        let beat = self.shared.beat(worker);
        let due = match &self.told {
            None => true,
            Some((told, at)) => at.elapsed() >= if *told == beat { BEAT_SAME } else { BEAT_CHANGED },
        };
        if due || now {
            let order = store.beat_worker(beat.clone()).await?;
            self.shared.obey(order);
            self.told = Some((beat, Instant::now()));
        }
        Ok(())
    }

    /// The last words: what is left, and that this worker is gone. Left is what blocks its thread, what a claim took that
    /// nobody heard of, and emptied leases; nothing is known any more, so it is one call.
    async fn part(&mut self) {
        self.shared.gauge.set_state(worker_loop::State::Stopped);
        // Told before anything is given back, and whatever the store says: nobody watches their deadlines any more.
        self.shared.held.attempts().iter().for_each(|ctx| ctx.tell(Stop::LeaseLost));
        let (Ok(store), Some(worker)) = (self.store().await, self.shared.worker.get().copied()) else { return };
        match store.release_unknown(worker, Vec::new(), LeaseNo::MAX).await {
            Ok(released) => released.iter().for_each(|_| count(&self.shared.gauge.released)),
            Err(error) => tracing::warn!(error = %error, "not given back: leases will run out"),
        }
        let _seen_by_its_silence = self.beat(&*store, true).await;
    }

    async fn store(&mut self) -> Result<Arc<dyn Store>, StoreError> {
        if let Some(store) = &self.store {
            return Ok(Arc::clone(store));
        }
        let store = self.shared.store.separate().await?;
        Ok(Arc::clone(self.store.insert(store)))
    }
}
