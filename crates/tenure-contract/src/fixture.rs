//! What a case gets: a fresh store, a clock that it moves, and ids that are the same on every run.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::name::{QueueName, WorkerName};
use tenure_core::{JobId, Json, KindName, LeaseNo, NewJob, Timestamp, WorkerId};
use tenure_store::Store;
use tenure_store::clock::ManualClock;
use tenure_store::enqueue::Enqueued;
use tenure_store::journal::JournalPage;
use tenure_store::lease::{ClaimJobs, Claimed, EndJob, EndJobs, Ended, Ending};
use tenure_store::operate::{CancelJob, RequeueJob, Word};
use tenure_store::record::{JobRecord, Sight};

/// 2026-01-01T00:00:00Z, where every case begins.
pub const START: Timestamp = Timestamp::from_micros(1_767_225_600_000_000);

/// A store for one case. Clones share everything.
#[derive(Clone)]
pub struct Fixture {
    /// Empty and migrated.
    pub store: Arc<dyn Store>,
    /// The time of `store`; nothing else moves it.
    pub clock: ManualClock,
    /// Which store this is, for messages.
    pub name: Arc<str>,
    ids: Arc<AtomicU64>,
    _kept: Option<Arc<dyn Any + Send + Sync>>,
}

impl Fixture {
    /// A fixture around a fresh store that reads `clock`.
    pub fn new(name: &str, store: Arc<dyn Store>, clock: ManualClock) -> Self {
        Self { store, clock, name: name.into(), ids: Arc::default(), _kept: None }
    }

    /// Keeps something alive until the case is over: a temporary directory, a database to drop.
    #[must_use]
    pub fn keeping(self, what: impl Any + Send + Sync) -> Self {
        Self { _kept: Some(Arc::new(what)), ..self }
    }

    /// The same through another handle of the store.
    #[must_use]
    pub fn through(&self, store: Arc<dyn Store>) -> Self {
        Self { store, ..self.clone() }
    }

    /// A new job id from the clock and a counter.
    pub fn new_id(&self) -> JobId {
        let mut random = [0; 10];
        random[2..].copy_from_slice(&self.ids.fetch_add(1, Ordering::SeqCst).to_be_bytes());
        JobId::from_parts(self.clock.now(), random)
    }

    /// A job of kind `noop` with every default.
    pub fn new_job(&self) -> NewJob {
        NewJob::new(self.new_id(), KindName::new("noop").expect("a name"), Json::null())
    }

    /// Stores a job with every default.
    pub async fn enqueue(&self) -> JobId {
        let stored = self.store.enqueue_jobs(vec![self.new_job()]).await.expect("enqueue");
        assert!(matches!(stored[..], [Enqueued::Created(_)]), "{stored:?}");
        stored[0].job()
    }

    /// Enters a worker into the registry.
    pub async fn worker(&self, name: &str) -> WorkerId {
        self.store.register_worker(&WorkerName::new(name).expect("a name")).await.expect("register a worker")
    }

    /// Claims from the default queue.
    pub async fn claim(&self, worker: WorkerId, limit: u32) -> Option<Claimed> {
        let request = ClaimJobs::new(worker, QueueName::default(), limit);
        self.store.claim_jobs(request).await.expect("claim")
    }

    /// Claims one job that must be there.
    pub async fn claim_one(&self, worker: WorkerId) -> (LeaseNo, JobId) {
        let claimed = self.claim(worker, 1).await.expect("a job is due");
        assert_eq!(claimed.jobs.len(), 1, "{claimed:?}");
        (claimed.lease, claimed.jobs[0].id)
    }

    /// Reports how one job ended, as often as the store says that it is busy.
    pub async fn end(&self, worker: WorkerId, lease: LeaseNo, job: JobId, ending: Ending) -> Ended {
        loop {
            let request = EndJobs { worker, lease, jobs: vec![EndJob::new(job, ending.clone())] };
            let answers = self.store.end_jobs(request).await.expect("end");
            assert_eq!(answers.len(), 1, "{answers:?}");
            if answers[0] != Ended::Busy {
                return answers[0];
            }
        }
    }

    /// One job as an operator sees it.
    pub async fn show(&self, job: JobId) -> JobRecord {
        self.store.show_job(&Sight::All, job).await.expect("show")
    }

    /// Moves the clock.
    pub fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    /// Every journal row, sealed and not, in the order of their ids.
    pub async fn journal(&self) -> Vec<tenure_core::journal::JournalRow> {
        let seals = self.store.list_seals(0, 1_000).await.expect("list seals");
        let mut rows = Vec::new();
        for seal in seals.into_iter().map(|seal| Some(seal.no)).chain([None]) {
            let page = JournalPage { seal, after: 0, limit: 10_000 };
            rows.extend(self.store.read_journal(page).await.expect("read the journal"));
        }
        rows.sort_by_key(|row| row.id);
        rows
    }
}

/// A success without a result.
pub fn success() -> Ending {
    Ending::Succeeded { result: None, usage: None }
}

/// A cancel by an operator who says nothing.
pub fn cancel(job: JobId, force: bool) -> CancelJob {
    CancelJob { sight: Sight::All, job, force, word: Word::default() }
}

/// A requeue by an operator who says nothing.
pub fn requeue(job: JobId) -> RequeueJob {
    RequeueJob { sight: Sight::All, job, word: Word::default() }
}
