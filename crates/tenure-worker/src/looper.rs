//! The loop of a worker process: drives core's table, one state a function.
//!
//! One loop serves all queues in turn and never claims more than its free slots. The claim *is* the look: a reply with
//! jobs is Find, then Claim when slots have them; an empty one is Miss.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tenure_core::worker_loop::{Event, State, next};
use tenure_core::{QueueName, WorkerId};
use tenure_store::lease::{ClaimJobs, Claimed};
use tenure_store::waker::woken;
use tenure_store::{StoreError, Waker};
use tokio::time::Instant;

use crate::duty::{Reclaimer, Sweeper};
use crate::flight::Landed;
use crate::lane::{self, Lane};
use crate::reporter::Reporter;
use crate::runner::{Lines, run_jobs};
use crate::shared::Shared;
use crate::{idle, random};

/// An idle worker asks to be woken at most so often; the request lasts a little longer.
const PUSH_EVERY: Duration = Duration::from_secs(1);
/// How long a call on its way is waited for once the worker is told to stop.
const LAST_CALL: Duration = Duration::from_millis(500);

pub(crate) struct Loop {
    shared: Arc<Shared>,
    reporter: Reporter,
    reclaimer: Arc<Reclaimer>,
    sweeper: Sweeper,
    lanes: Vec<Lane>,
    state: State,
    /// Looks in a row that found nothing.
    misses: u32,
    /// The next look comes at once.
    looks_again: bool,
    /// The lane to begin with, so that no queue is always last.
    first: usize,
    found: Option<Found>,
    waiting: Option<Waiting>,
    /// Made before the first look and kept: what is said between two rests ends the next one.
    waker: Option<Box<dyn Waker>>,
}

/// A claim's reply, on its way to the slots.
struct Found {
    lane: usize,
    claimed: Claimed,
    sent: Instant,
}

/// A wait for work that outlives one rest, so that nothing said between two rests is missed.
struct Waiting {
    queues: Vec<QueueName>,
    work: Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>,
}

impl Loop {
    pub(crate) fn new(shared: Arc<Shared>, reporter: Reporter, reclaimer: Arc<Reclaimer>) -> Self {
        let lanes = shared
            .about
            .queues
            .iter()
            .map(|(queue, slots)| Lane::new(queue.clone(), *slots, &shared.options))
            .collect();
        let waker = shared.options.waker.as_ref().map(|waker| waker.waiter());
        Self {
            sweeper: Sweeper::new(Arc::clone(&shared)),
            shared,
            reporter,
            reclaimer,
            lanes,
            state: State::Startup,
            misses: 0,
            looks_again: false,
            first: 0,
            found: None,
            waiting: None,
            waker,
        }
    }

    /// The jobs in line.
    pub(crate) fn lines(&self) -> Lines {
        let desks = self.lanes.iter().map(|lane| Arc::clone(&lane.desk)).collect();
        Lines::new(Arc::clone(&self.shared), self.reporter.clone(), desks)
    }

    /// Runs until told to stop; returns in Draining. What is on its way to the store then is heard to its end, unless
    /// that takes long: a claim that nobody hears of leaves a lease behind, and is given back by the keeper's
    /// last word.
    pub(crate) async fn run(&mut self) {
        let shared = Arc::clone(&self.shared);
        while self.state != State::Draining {
            let patience = async {
                shared.stopping.raised().await;
                tokio::time::sleep(LAST_CALL).await;
            };
            let event = match shared.stopping.is_up() {
                // What was claimed goes to its slots first, which give it back: nobody else knows of it.
                true if self.state == State::Claiming => self.hand_out(),
                true => Event::Drain,
                false => tokio::select! {
                    biased;
                    event = self.act() => event,
                    () = patience => Event::Drain,
                },
            };
            self.step(event);
        }
        self.hear_out().await;
    }

    async fn act(&mut self) -> Event {
        match self.state {
            State::Startup => Event::Start,
            State::Connecting => self.connect().await,
            State::Recovery => self.recover().await,
            State::Polling => self.poll().await,
            State::Claiming => self.hand_out(),
            State::Backoff => self.back_off().await,
            State::Idle => self.rest().await,
            State::ErrorWait => self.wait(random::jitter(self.shared.options.error_wait), Event::Retry).await,
            State::Draining | State::Stopped => Event::Drain,
        }
    }

    fn step(&mut self, event: Event) {
        let Some(to) = next(self.state, event) else {
            debug_assert!(false, "a loop in {} cannot {event:?}", self.state.as_str());
            return;
        };
        tracing::trace!(from = self.state.as_str(), to = to.as_str(), "loop");
        self.shared.gauge.set_state(to);
        self.state = to;
    }

    /// A worker without a number gets one; that the store answers is known by the next verb.
    async fn connect(&mut self) -> Event {
        if self.shared.worker.get().is_some() {
            return Event::Connect;
        }
        let Some(name) = &self.shared.options.name else { return Event::Break };
        match self.shared.store.register_worker(name).await {
            Ok(worker) => {
                self.shared.trouble.over();
                let _first = self.shared.worker.set(worker);
                tracing::info!(worker.name = %name, worker.id = %worker, "registered");
                Event::Connect
            }
            Err(error) => self.broken("registering", &error),
        }
    }

    async fn recover(&mut self) -> Event {
        if let Err(error) = self.reclaimer.run_if_due().await {
            return self.broken("reclaiming", &error);
        }
        if let Err(error) = self.sweep().await {
            return self.broken("releasing unknown leases", &error);
        }
        Event::Recover
    }

    /// Gives back what lost claims took, unless one is on its way: what that takes is not known yet.
    async fn sweep(&mut self) -> Result<(), StoreError> {
        match self.is_claiming() {
            true => Ok(()),
            false => self.sweeper.run_if_unsure().await,
        }
    }

    fn is_claiming(&self) -> bool {
        self.lanes.iter().any(|lane| lane.flights.count() > 0)
    }

    /// Looks into each queue that has free slots, or from which something is on its way.
    async fn poll(&mut self) -> Event {
        let stopping = Arc::clone(&self.shared.stopping);
        while !self.is_claiming() {
            if let Err(error) = self.sweep().await {
                return self.broken("releasing unknown leases", &error);
            }
            tokio::select! {
                biased;
                () = stopping.raised() => return Event::Drain,
                () = lane::some_free(&self.lanes, &self.shared.freed) => break,
                // Slots may stay taken for hours: what was lost must not wait for one.
                () = self.sweeper.due() => {}
            }
        }
        let Some(worker) = self.shared.worker.get().copied() else { return Event::Break };
        self.first = (self.first + 1) % self.lanes.len().max(1);
        for offset in 0..self.lanes.len() {
            let lane = (self.first + offset) % self.lanes.len();
            if self.lanes[lane].free() == 0 && self.lanes[lane].flights.count() == 0 {
                self.lanes[lane].dry = false;
                continue;
            }
            match self.claim(worker, lane).await {
                Ok(Some(found)) => {
                    self.lanes[lane].dry = false;
                    self.found = Some(found);
                    return Event::Find;
                }
                Ok(None) => self.lanes[lane].dry = true,
                Err(error) => return self.broken("claiming", &error),
            }
        }
        Event::Miss
    }

    /// Claims what there is room for, and answers what lands first; nothing when all have landed with nothing. A
    /// connection that broke under one is worth a second try before the whole loop waits.
    async fn claim(&mut self, worker: WorkerId, at: usize) -> Result<Option<Found>, StoreError> {
        for again in [true, false] {
            self.send_claims(worker, at);
            let mut failed = None;
            while let Some(Landed { sent, answer }) = self.lanes[at].flights.land().await {
                match answer {
                    Ok(Some(claimed)) => {
                        self.shared.trouble.over();
                        return Ok(Some(Found { lane: at, claimed, sent }));
                    }
                    Ok(None) => {}
                    Err(error) => {
                        // It may have been committed: what it took is given back when it shows up.
                        self.sweeper.set_unsure();
                        failed = Some(error);
                    }
                }
            }
            let Some(error) = failed else {
                self.shared.trouble.over();
                return Ok(None);
            };
            if !again || !error.is_passing() || self.shared.stopping.is_up() {
                return Err(error);
            }
        }
        unreachable!("the second try returns")
    }

    /// Sends as many claims as there is room for; none when something has to be swept first, or nothing shall be claimed.
    fn send_claims(&mut self, worker: WorkerId, at: usize) {
        if self.shared.quiet.load(Ordering::Acquire) {
            return;
        }
        let lane = &mut self.lanes[at];
        while let Some(limit) = lane.next_claim()
            && (lane.flights.count() == 0 || !self.sweeper.is_due())
        {
            let request = ClaimJobs::turn(worker, lane.queue.clone(), limit, lane.turn);
            lane.turn += 1;
            lane.flights.add(&self.shared, request);
        }
    }

    /// What is on its way when the worker drains is waited for, but not long, and goes to slots, which give it back.
    async fn hear_out(&mut self) {
        let _left_to_the_keeper = tokio::time::timeout(LAST_CALL, async {
            for at in 0..self.lanes.len() {
                while let Some(Landed { sent, answer }) = self.lanes[at].flights.land().await {
                    if let Ok(Some(claimed)) = answer {
                        self.found = Some(Found { lane: at, claimed, sent });
                        self.hand_out();
                    }
                }
            }
        })
        .await;
    }

    /// Gives the claimed jobs to slots.
    fn hand_out(&mut self) -> Event {
        let Some(worker) = self.shared.worker.get().copied() else { return Event::Yield };
        let Some(Found { lane, claimed, sent }) = self.found.take() else { return Event::Yield };
        self.misses = 0;
        for job in &claimed.canceled {
            tracing::info!(job.id = %job, "canceled before it ran");
        }
        if claimed.jobs.is_empty() {
            return Event::Yield;
        }
        let lane = &self.lanes[lane];
        let contexts = self.shared.take(claimed, &lane.queue, worker, sent);
        for runner in lane.put(contexts) {
            self.shared.spawn(run_jobs(Arc::clone(&self.shared), self.reporter.clone(), runner));
        }
        Event::Claim
    }

    /// Tells the store that somebody waits, and chooses how long.
    async fn back_off(&mut self) -> Event {
        match self.ask_for_wake_ups().await {
            // What came before the store knew that somebody waits woke nobody: look once more, and rest as long as ever then.
            Ok(true) => self.looks_again = true,
            Ok(false) => self.misses = self.misses.saturating_add(1),
            Err(error) => return self.broken("asking for wake-ups", &error),
        }
        Event::Rest
    }

    /// Tells the store where somebody waits, unless it was told lately; answers whether it was told now.
    async fn ask_for_wake_ups(&mut self) -> Result<bool, StoreError> {
        let mut asked = false;
        for lane in self.lanes.iter_mut().filter(|lane| lane.dry) {
            if lane.pushed.is_some_and(|at| at.elapsed() < PUSH_EVERY) {
                continue;
            }
            self.shared.store.push_idle(&lane.queue).await?;
            lane.pushed = Some(Instant::now());
            asked = true;
        }
        Ok(asked)
    }

    async fn rest(&mut self) -> Event {
        let rest = match self.misses {
            _ if std::mem::take(&mut self.looks_again) => Duration::ZERO,
            0 => Duration::ZERO,
            misses => random::jitter(idle::rest(self.shared.options.poll_every, misses)),
        };
        let queues: Vec<QueueName> =
            self.lanes.iter().filter(|lane| lane.free() > 0).map(|lane| lane.queue.clone()).collect();
        // A gate that was found closed may open sooner.
        let opens = queues.iter().filter_map(|queue| self.shared.store.opens_in(queue)).min();
        let rest = opens.map_or(rest, |opens| opens.min(rest));
        let some_full = self.lanes.iter().any(|lane| !lane.dry);
        let waiting = match self.waiting.take() {
            Some(waiting) if waiting.queues == queues => waiting,
            _ => Waiting { queues: queues.clone(), work: self.wait_for(queues) },
        };
        let Waiting { queues, mut work } = waiting;
        let stopping = Arc::clone(&self.shared.stopping);
        let rest = tokio::time::sleep(rest);
        tokio::pin!(rest);
        let mut deaf = false;
        loop {
            tokio::select! {
                biased;
                () = stopping.raised() => return Event::Drain,
                heard = &mut work, if !deaf => match heard {
                    Ok(()) => return Event::Wake,
                    // A lost connection: nobody wakes us, so this is a rest like any other.
                    Err(error) => {
                        tracing::debug!(error = %error, "waiting for work failed");
                        deaf = true;
                    }
                },
                () = woken(self.waker.as_deref()) => break,
                () = self.shared.freed.notified(), if some_full => break,
                () = &mut rest => break,
                // The request to be woken lasts little longer than this, and the rest may be long.
                () = tokio::time::sleep(PUSH_EVERY), if !deaf => {
                    if let Err(error) = self.ask_for_wake_ups().await {
                        return self.broken("asking for wake-ups", &error);
                    }
                }
            }
        }
        if !deaf {
            self.waiting = Some(Waiting { queues, work });
        }
        Event::Wake
    }

    fn wait_for(&self, queues: Vec<QueueName>) -> Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>> {
        let store = Arc::clone(&self.shared.store);
        Box::pin(async move { store.wait_for_work(&queues).await })
    }

    /// Waits, unless told to stop.
    async fn wait(&mut self, duration: Duration, then: Event) -> Event {
        let stopping = Arc::clone(&self.shared.stopping);
        tokio::select! {
            biased;
            () = stopping.raised() => Event::Drain,
            () = tokio::time::sleep(duration) => then,
        }
    }

    fn broken(&self, what: &str, error: &StoreError) -> Event {
        match error.is_passing() {
            true => self.shared.trouble.failed(what, error),
            false => tracing::error!(error = %error, "{what} failed"),
        }
        Event::Break
    }
}
