//! [`Ctx`]: what a handler knows of the attempt it is, and how it is told to stop.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tenure_core::{
    Invalid, JobId, Json, KindName, LeaseNo, Part, QueueName, TenantName, Timestamp, Traceparent, WorkerId,
};
use tenure_store::lease::{ClaimedJob, GateWord};
use tenure_store::user_tx::CompleteJob;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::client::Client;
use crate::fail::Fail;
use crate::flag::Flag;
use crate::gate::GatePass;

/// The attempt a handler is. Cheap to clone; clones may go to tasks of the handler's own.
#[derive(Clone)]
pub struct Ctx(pub(crate) Arc<Attempted>);

/// Everything about one attempt.
pub(crate) struct Attempted {
    pub(crate) job: ClaimedJob,
    pub(crate) queue: QueueName,
    pub(crate) worker: WorkerId,
    pub(crate) lease: LeaseNo,
    pub(crate) client: Client,
    stop: AtomicU8,
    told: Notify,
    usage: Mutex<Option<Json>>,
    said_of_gate: Mutex<GateWord>,
    /// Rows of a full page, once it is known that it is this page's turn.
    page_limit: OnceLock<u32>,
    /// Up when the process was told to stop.
    draining: Arc<Flag>,
    /// When the right to act ends, unless the lease is renewed; moved by the keeper.
    deadline: Mutex<Instant>,
}

/// Why a handler should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// The worker process goes down: what is not done will be given back, uncharged.
    Shutdown = 1,
    /// Somebody asked to cancel the job: answer [`Fail::canceled`].
    Canceled = 2,
    /// It ran longer than its kind may.
    Timeout = 3,
    /// The lease ended, or a report was refused: somebody else has the job, and nothing said here counts any more.
    LeaseLost = 4,
}

impl Ctx {
    pub(crate) fn new(job: ClaimedJob, at: Place, client: Client, draining: Arc<Flag>) -> Self {
        let Place { queue, worker, lease, deadline } = at;
        let (stop, told) = (AtomicU8::new(0), Notify::new());
        let (usage, said_of_gate, deadline) = (Mutex::new(None), Mutex::default(), Mutex::new(deadline));
        let page_limit = OnceLock::new();
        let attempted = Attempted {
            job,
            queue,
            worker,
            lease,
            client,
            stop,
            told,
            usage,
            said_of_gate,
            page_limit,
            draining,
            deadline,
        };
        Self(Arc::new(attempted))
    }

    /// The job's id: the same in every attempt, good as an idempotency key towards others.
    pub fn job_id(&self) -> JobId {
        self.0.job.id
    }

    /// The lease number: larger in every later attempt of this job. Send it along with effects outside of the database,
    /// so that the receiver can refuse an older one.
    pub fn fence(&self) -> LeaseNo {
        self.0.lease
    }

    /// 1 is the first attempt.
    pub fn attempt(&self) -> u16 {
        self.0.job.attempt
    }

    /// Whether a transient error now would be final.
    pub fn is_last_attempt(&self) -> bool {
        self.0.job.attempt >= self.0.job.rules.max_attempts
    }

    /// What the job asks for.
    pub fn kind(&self) -> &KindName {
        &self.0.job.kind
    }

    /// Where it waited.
    pub fn queue(&self) -> &QueueName {
        &self.0.queue
    }

    /// Whose it is.
    pub fn tenant(&self) -> &TenantName {
        &self.0.job.tenant
    }

    /// The producer's trace context, as it was said. For calls to others see [`traceparent`](Self::traceparent).
    pub fn trace(&self) -> Option<&str> {
        self.0.job.trace.as_deref()
    }

    /// The W3C `traceparent` for calls that this attempt makes: of the current span where traces are recorded, else the
    /// producer's, where that is one.
    pub fn traceparent(&self) -> Option<String> {
        let own = self.trace().and_then(Traceparent::parse);
        crate::trace::current().or(own).map(|trace| trace.to_string())
    }

    /// What it is of a run, if it is part of one.
    pub fn part(&self) -> Option<&Part> {
        self.0.job.part.as_ref()
    }

    /// When it was enqueued.
    pub fn created_at(&self) -> Timestamp {
        self.0.job.created_at
    }

    /// When it was due.
    pub fn run_at(&self) -> Timestamp {
        self.0.job.run_at
    }

    /// A client for the job's own tenant, to enqueue more.
    pub fn client(&self) -> &Client {
        &self.0.client
    }

    /// The shared resource this job passes: to call it again, and to say how it did.
    pub fn gate(&self) -> GatePass<'_> {
        GatePass::new(self)
    }

    /// Why it should stop, if it should.
    pub fn stop(&self) -> Option<Stop> {
        match self.0.stop.load(Ordering::Acquire) {
            1 => Some(Stop::Shutdown),
            2 => Some(Stop::Canceled),
            3 => Some(Stop::Timeout),
            4 => Some(Stop::LeaseLost),
            _ => None,
        }
    }

    /// Waits until the handler should stop. Long handlers put it beside their work:
    /// `select! { _ = ctx.stopped() => …, page = fetch() => … }`.
    pub async fn stopped(&self) -> Stop {
        self.stopped_beyond(None).await
    }

    /// For loops: `ctx.check()?` between two steps ends the handler when it should stop.
    pub fn check(&self) -> Result<(), Fail> {
        match self.stop() {
            None => Ok(()),
            Some(Stop::Canceled) => Err(Fail::canceled()),
            Some(Stop::Timeout) => Err(Fail::timeout("stopped after its timeout")),
            Some(Stop::Shutdown) => Err(Fail::release()),
            Some(Stop::LeaseLost) => Err(Fail::lease_lost()),
        }
    }

    /// Whether the worker process was told to stop: it claims nothing any more, and what runs has the grace period to
    /// finish. A long handler may take the occasion to end at a good point, say with [`Fail::snooze`].
    pub fn is_draining(&self) -> bool {
        self.0.draining.is_up()
    }

    /// How long this attempt may still act if the lease is not renewed again. Zero: it is over.
    pub fn lease_remaining(&self) -> Duration {
        self.deadline().saturating_duration_since(Instant::now())
    }

    /// Keeps what the attempt used (tokens, bytes, money): any JSON object of at most 16 KiB, whose members that are
    /// numbers, 0 to 1e15, are summed by name. The last call counts, and the record is stored with a success; call it
    /// before a completion inside a transaction.
    pub fn set_usage(&self, usage: &impl Serialize) -> Result<(), Invalid> {
        let usage = crate::job::to_json("usage", usage)?;
        tenure_store::usage::check_usage(&usage)?;
        *self.0.usage.lock().unwrap_or_else(PoisonError::into_inner) = Some(usage);
        Ok(())
    }

    pub(crate) fn take_usage(&self) -> Option<Json> {
        self.0.usage.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What a transaction of the handler's own is told of the job's end. It may be rolled back and done again.
    pub(crate) fn completion(&self) -> CompleteJob {
        let usage = self.0.usage.lock().unwrap_or_else(PoisonError::into_inner).clone();
        CompleteJob { usage, gate: self.gate_word(), ..CompleteJob::new(self.0.worker, self.fence(), self.job_id()) }
    }

    pub(crate) fn page_limit(&self) -> Option<u32> {
        self.0.page_limit.get().copied()
    }

    /// It is this page's turn, and a full one has so many rows.
    pub(crate) fn set_page_limit(&self, limit: u32) {
        let _asked_once = self.0.page_limit.set(limit);
    }

    /// What the handler said of its gate.
    pub(crate) fn gate_word(&self) -> GateWord {
        *self.0.said_of_gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn say_of_gate(&self, say: impl FnOnce(&mut GateWord)) {
        say(&mut self.0.said_of_gate.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Tells the handler to stop. A graver reason replaces a lesser one, never the other way round.
    pub(crate) fn tell(&self, why: Stop) {
        if self.0.stop.fetch_max(why as u8, Ordering::AcqRel) < why as u8 {
            self.0.told.notify_waiters();
        }
    }

    /// Waits for a reason graver than `known`.
    pub(crate) async fn stopped_beyond(&self, known: Option<Stop>) -> Stop {
        loop {
            // Listen before looking: a word between the two would otherwise be missed.
            let told = self.0.told.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            match self.stop() {
                Some(why) if Some(why) > known => return why,
                _ => told.await,
            }
        }
    }

    pub(crate) fn deadline(&self) -> Instant {
        *self.0.deadline.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_deadline(&self, deadline: Instant) {
        *self.0.deadline.lock().unwrap_or_else(PoisonError::into_inner) = deadline;
    }
}

/// Where an attempt happens.
pub(crate) struct Place {
    pub(crate) queue: QueueName,
    pub(crate) worker: WorkerId,
    pub(crate) lease: LeaseNo,
    pub(crate) deadline: Instant,
}

impl fmt::Debug for Ctx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Attempted { job, lease, .. } = &*self.0;
        write!(f, "Ctx({} {}, attempt {}, lease {lease})", job.kind, job.id, job.attempt)
    }
}
