//! A store with a clock that stands still, and short words for the verbs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tenure_core::name::{QueueName, WorkerName};
use tenure_core::{JobId, Json, KindName, LeaseNo, NewJob, State, Timestamp, WorkerId};
use tenure_sqlite::{Mutation, SqliteOptions, SqliteStore};
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::enqueue::Enqueued;
use tenure_store::lease::{ClaimJobs, Claimed, EndJob, EndJobs, Ended, Ending};
use tenure_store::operate::{PruneJobs, Word};
use tenure_store::record::Sight;
use tenure_store::{AdminStore, JobStore, LeaseStore};

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_763_197_200_000_000);

static NEXT: AtomicU64 = AtomicU64::new(1);

/// A directory that goes with the test.
pub(crate) struct Directory(PathBuf);

impl Directory {
    pub(crate) fn new() -> Self {
        let name = format!("tenure-sqlite-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(name);
        // A process of this number may have been killed before it could clean up.
        let _ = std::fs::remove_dir_all(&dir);
        Self(dir)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.0.join("data").join("tenure.db")
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(crate) struct Fixture {
    pub(crate) store: SqliteStore,
    pub(crate) clock: ManualClock,
    pub(crate) worker: WorkerId,
    pub(crate) directory: Option<Directory>,
}

impl Fixture {
    pub(crate) async fn memory() -> Self {
        let clock = ManualClock::new(NOW);
        let store = SqliteStore::in_memory(options(&clock)).unwrap();
        Self::ready(store, clock, None).await
    }

    /// Every statement changed so.
    pub(crate) async fn mutated(mutation: Mutation) -> Self {
        let clock = ManualClock::new(NOW);
        let options = SqliteOptions { mutation: Some(mutation), ..options(&clock) };
        Self::ready(SqliteStore::in_memory(options).unwrap(), clock, None).await
    }

    pub(crate) async fn file() -> Self {
        let (clock, directory) = (ManualClock::new(NOW), Directory::new());
        let store = SqliteStore::open(directory.file(), options(&clock)).unwrap();
        Self::ready(store, clock, Some(directory)).await
    }

    async fn ready(store: SqliteStore, clock: ManualClock, directory: Option<Directory>) -> Self {
        store.migrate().await.unwrap();
        let worker = store.register_worker(&WorkerName::new("w1").unwrap()).await.unwrap();
        Self { store, clock, worker, directory }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.as_ref().unwrap().file()
    }

    /// Enqueues plain jobs.
    pub(crate) async fn enqueue(&self, count: usize) -> Vec<JobId> {
        let jobs = (0..count).map(|_| new_job(self.clock.now())).collect();
        self.store.enqueue_jobs(jobs).await.unwrap().iter().map(Enqueued::job).collect()
    }

    pub(crate) async fn claim(&self, limit: u32) -> Option<Claimed> {
        let request = ClaimJobs::new(self.worker, QueueName::default(), limit);
        self.store.claim_jobs(request).await.unwrap()
    }

    pub(crate) async fn end(&self, lease: LeaseNo, job: JobId, ending: Ending) -> Ended {
        self.end_as(self.worker, lease, job, ending).await
    }

    pub(crate) async fn end_as(&self, worker: WorkerId, lease: LeaseNo, job: JobId, ending: Ending) -> Ended {
        let request = EndJobs { worker, lease, jobs: vec![EndJob::new(job, ending)] };
        self.store.end_jobs(request).await.unwrap()[0]
    }

    pub(crate) async fn state(&self, job: JobId) -> State {
        self.store.show_job(&Sight::All, job).await.unwrap().summary.state
    }

    pub(crate) async fn prune(&self) -> u64 {
        let request = PruneJobs { older_than: Duration::ZERO, dead_too: false, limit: 100 };
        self.store.prune_jobs(request).await.unwrap()
    }

    pub(crate) async fn assert_sound(&self) {
        assert_eq!(self.store.find_violations(10).await.unwrap(), []);
    }
}

pub(crate) fn options(clock: &ManualClock) -> SqliteOptions {
    SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() }
}

pub(crate) fn new_job(now: Timestamp) -> NewJob {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    let payload = Json::parse("payload", r#"{"order":42}"#).unwrap();
    NewJob::new(JobId::from_parts(now, random), KindName::new("noop").unwrap(), payload)
}

pub(crate) fn succeeded() -> Ending {
    Ending::Succeeded { result: None, usage: None }
}

pub(crate) fn failed() -> Ending {
    Ending::Failed { error: error() }
}

pub(crate) fn error() -> Json {
    Json::parse("error", r#"{"code":"test","message":"broken"}"#).unwrap()
}

pub(crate) fn word() -> Word {
    Word { actor: Some("ops".into()), reason: Some("test".into()) }
}
