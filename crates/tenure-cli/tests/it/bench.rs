//! A worker that works on a place's store while the binary looks at it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::name::{KindName, QueueName, WorkerName};
use tenure_core::{JobId, Json, NewJob, Timestamp, WorkerId};
use tenure_postgres::{PgOptions, PgStore};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::Store;
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::lease::{ClaimJobs, Claimed, EndJob, EndJobs, Ended, Ending};

use crate::place::Place;

/// A worker called `ops`. On a file its clock is ten minutes behind: what it holds has been silent for that long.
pub(crate) struct Bench {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) worker: WorkerId,
    clock: ManualClock,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    /// Works on a file in the place, which the place's commands use as well.
    pub(crate) fn new(place: &Place) -> Self {
        place.write("tenure.toml", "database = \"jobs.db\"");
        let clock = ManualClock::new(now().minus(Duration::from_secs(600)));
        let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
        let store = SqliteStore::open(place.path("jobs.db"), options).unwrap();
        Self::with(runtime(), Arc::new(store), clock)
    }

    /// Works on a Postgres database, by its clock.
    pub(crate) fn on_server(url: &str) -> Self {
        let runtime = runtime();
        let store = runtime.block_on(PgStore::connect(url, PgOptions::default())).unwrap();
        Self::with(runtime, Arc::new(store), ManualClock::new(now()))
    }

    fn with(runtime: tokio::runtime::Runtime, store: Arc<dyn Store>, clock: ManualClock) -> Self {
        let worker = runtime.block_on(async {
            store.migrate().await.unwrap();
            store.register_worker(&WorkerName::new("ops").unwrap()).await.unwrap()
        });
        Self { store, worker, clock, runtime }
    }

    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }

    pub(crate) fn enqueue(&self, n: u8) -> JobId {
        self.enqueue_kind(n, "mail.send")
    }

    /// Stores a job; larger numbers are newer.
    pub(crate) fn enqueue_kind(&self, n: u8, kind: &str) -> JobId {
        let id = JobId::from_parts(self.clock.now(), [n; 10]);
        let job = NewJob::new(id, KindName::new(kind).unwrap(), Json::null());
        self.wait(self.store.enqueue_jobs(vec![job])).unwrap();
        id
    }

    pub(crate) fn claim(&self) -> Claimed {
        let request = ClaimJobs::new(self.worker, QueueName::default(), 100);
        self.wait(self.store.claim_jobs(request)).unwrap().expect("a job is due")
    }

    pub(crate) fn end(&self, claimed: &Claimed, job: JobId, ending: Ending) -> Ended {
        let report = EndJobs { worker: self.worker, lease: claimed.lease, jobs: vec![EndJob::new(job, ending)] };
        self.wait(self.store.end_jobs(report)).unwrap()[0]
    }

    /// Stores jobs of these kinds, and each dies of its error. Answers their ids in this order.
    pub(crate) fn bury(&self, deaths: &[(&str, Value)]) -> Vec<JobId> {
        let ids: Vec<JobId> = (1..).zip(deaths).map(|(n, (kind, _))| self.enqueue_kind(n, kind)).collect();
        let claimed = self.claim();
        for (id, (_, error)) in ids.iter().zip(deaths) {
            let error = Json::parse("error", error.to_string()).unwrap();
            self.end(&claimed, *id, Ending::Dead { error });
        }
        ids
    }
}

pub(crate) fn error(text: &str) -> Json {
    Json::parse("error", json!({ "message": text }).to_string()).unwrap()
}

fn now() -> Timestamp {
    Timestamp::EPOCH.plus(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
