//! Your jobs under test: a store in memory, a clock that you move, a worker that runs when you say so. Nothing sleeps,
//! nothing is left behind, and tests run side by side.
//!
//! ```toml
//! [dev-dependencies]
//! tenure = { version = "0.1", features = ["testing"] }
//! ```
//!
//! ```
//! use std::time::Duration;
//!
//! use serde::{Deserialize, Serialize};
//! use tenure::testing::TestBed;
//! use tenure::{Ctx, Fail, Job, JobState};
//!
//! #[derive(Serialize, Deserialize, Job)]
//! #[job(kind = "invoice.send", backoff = "fixed 5m")]
//! struct SendInvoice { order: u64 }
//!
//! #[derive(Serialize, Deserialize, Job)]
//! #[job(kind = "invoice.remind")]
//! struct Remind { order: u64 }
//!
//! async fn send(job: SendInvoice, ctx: Ctx) -> Result<(), Fail> {
//!     if ctx.attempt() == 1 {
//!         return Err(Fail::transient("the mail server is away"));
//!     }
//!     ctx.client().enqueue(Remind { order: job.order }).delay(Duration::from_secs(14 * 86_400)).await?;
//!     Ok(())
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let bed = TestBed::new().worker(|worker| worker.handle(send));
//!
//! let job = bed.perform(SendInvoice { order: 42 }).await;            // enqueued and run, once
//! assert_eq!(job.summary.state, JobState::Retryable);
//! bed.assert_not_enqueued(&Remind { order: 42 });
//!
//! bed.advance(Duration::from_secs(5 * 60));                          // its second attempt is due
//! bed.run_until_idle().await;
//! assert_eq!(bed.state_of(job.summary.id), JobState::Succeeded);
//! bed.assert_enqueued(&Remind { order: 42 });
//! # });
//! ```
//!
//! # Layout
//! - [`TestBed`]: store, clock, clients and worker
//! - `enqueued`: its assertions

mod enqueued;

use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use tenure_core::{How, JobId, State as JobState, Timestamp};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::record::{JobRecord, Sight};
use tenure_store::{JobStore, StoreError};
use tenure_worker::{Builder, Client, Job, Summary, Worker};

/// A store in memory, a clock, and the worker under test. What goes wrong in it fails the test: its methods panic.
///
/// The clock begins at the present moment and stands still until [`advance`](Self::advance). Job ids carry the time, so
/// clients of the bed must be made by the bed: [`client`](Self::client), and `ctx.client()` in handlers.
pub struct TestBed {
    store: SqliteStore,
    clock: ManualClock,
    worker: Option<Arc<Worker>>,
}

impl TestBed {
    /// An empty store and no worker yet: enough to see what a program enqueues.
    #[must_use]
    pub fn new() -> Self {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let clock = ManualClock::new(Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX)));
        let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
        let store = must("open a store in memory", SqliteStore::in_memory(options));
        at_once("migrate", crate::migrate(&store));
        Self { store, clock, worker: None }
    }

    /// Puts the worker in: `.worker(|worker| worker.state(app).handle(send))`. It serves the queues of its handlers.
    #[must_use]
    #[track_caller]
    pub fn worker<S>(mut self, handlers: impl FnOnce(Builder) -> Builder<S>) -> Self
    where
        S: Clone + Send + Sync + 'static,
    {
        let builder = handlers(Worker::builder(&self.store).client(self.client()));
        self.worker = Some(Arc::new(must("build the worker", builder.build())));
        self
    }

    /// A client whose jobs wait until [`run_until_idle`](Self::run_until_idle).
    pub fn client(&self) -> Client {
        Client::new(&self.store).with_clock(Clock::Manual(self.clock.clone()))
    }

    /// A client whose jobs are run at once, until nothing is due, before its enqueue returns. Jobs that are stored
    /// `within` a transaction wait, as they must.
    #[track_caller]
    pub fn inline_client(&self) -> Client {
        let worker = Arc::clone(self.the_worker());
        self.client().with_inline(move || {
            let worker = Arc::clone(&worker);
            Box::pin(async move {
                must("run the jobs", worker.run_until_idle().await);
            })
        })
    }

    /// Runs every job that is due, and what those enqueue, one after the other. A retry or a delayed job waits for
    /// [`advance`](Self::advance).
    pub async fn run_until_idle(&self) -> Summary {
        must("run the jobs", self.the_worker().run_until_idle().await)
    }

    /// Enqueues a job, runs what is due, and answers what became of the job.
    pub async fn perform<J: Job>(&self, job: J) -> JobRecord {
        let stored = must("enqueue", self.client().enqueue(job).await);
        self.run_until_idle().await;
        let record = self.show(stored.job());
        let was_run = record.attempts.iter().any(|attempt| attempt.how != How::Released);
        assert!(was_run, "nobody in this bed handles {}: give its worker a handler with .handle(…)", J::KIND);
        record
    }

    /// The clock of the store and of every id made here.
    pub fn clock(&self) -> &ManualClock {
        &self.clock
    }

    /// Moves the clock on: delayed jobs and retries become due, and nothing runs yet.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Moves the clock to the moment when the next waiting job is due, and answers how far that was: `None`, and the
    /// clock stays, when nothing waits for its time. Backoffs have jitter; this finds the moment all the same.
    pub fn advance_to_next_due(&self) -> Option<Duration> {
        let now = self.clock.now();
        let waits = |state: JobState| matches!(state, JobState::Queued | JobState::Retryable);
        let waiting = self.summaries(None).into_iter().filter(|job| waits(job.state) && job.run_at > now);
        let next = waiting.map(|job| job.run_at).min()?;
        self.clock.set(next);
        Some(next.since(now))
    }

    /// Where a job stands.
    #[track_caller]
    pub fn state_of(&self, job: JobId) -> JobState {
        self.show(job).summary.state
    }

    /// A job in full, with its attempts, errors and results.
    #[track_caller]
    pub fn show(&self, job: JobId) -> JobRecord {
        at_once("show the job", self.store.show_job(&Sight::All, job))
    }

    /// The store: for a state that holds one, and for tables of your own (`store().transaction(…)`).
    pub fn store(&self) -> &SqliteStore {
        &self.store
    }

    #[track_caller]
    fn the_worker(&self) -> &Arc<Worker> {
        self.worker.as_ref().expect("this bed has no worker: TestBed::new().worker(|worker| worker.handle(…))")
    }
}

impl Default for TestBed {
    fn default() -> Self {
        Self::new()
    }
}

/// A store in memory works on its caller's thread, so its answer is there at once: what only looks needs no `.await`, and
/// a failed assertion can name the line of the test.
#[track_caller]
fn at_once<T>(what: &str, answer: impl Future<Output = Result<T, StoreError>>) -> T {
    // A task that has done much is told to yield, which looks like waiting.
    let answer = pin!(tokio::task::coop::unconstrained(answer));
    match answer.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => must(what, answer),
        Poll::Pending => panic!("cannot {what}: the store in memory did not answer at once"),
    }
}

#[track_caller]
fn must<T, E: std::fmt::Display>(what: &str, answer: Result<T, E>) -> T {
    answer.unwrap_or_else(|error| panic!("cannot {what}: {error}"))
}
