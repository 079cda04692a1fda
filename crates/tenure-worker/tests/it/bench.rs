//! What every test needs: a store, a client, and a worker that runs until the test has seen enough.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::{JobId, State};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::journal::JournalPage;
use tenure_store::operate::SetQueue;
use tenure_store::record::{JobRecord, Sight};
use tenure_store::{AdminStore, IntoStore, JobStore, JournalStore, Store};
use tenure_worker::{Client, Job, Summary, Worker};

/// How long a test waits for what must happen; reaching it is a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// A job with a number.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) n: u64,
}

impl Job for Task {
    const KIND: &'static str = "task";
}

/// A store in memory, shared with whatever stands in front of it.
pub(crate) struct Bench {
    pub(crate) inner: SqliteStore,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) client: Client,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::behind(|store| store.into_store()).await
    }

    /// A store behind `front`, which may fail at will; the bench itself looks at the store directly.
    pub(crate) async fn behind(front: impl FnOnce(SqliteStore) -> Arc<dyn Store>) -> Self {
        let inner = SqliteStore::in_memory(SqliteOptions::default()).unwrap();
        inner.migrate().await.unwrap();
        let client = Client::new(&inner);
        Self { store: front(inner.clone()), inner, client }
    }

    pub(crate) async fn lease_ttl(&self, ttl: Duration) {
        self.inner.set_queue(SetQueue::new(Default::default(), ttl)).await.unwrap();
    }

    pub(crate) async fn enqueue(&self, n: u64) -> JobId {
        self.client.enqueue(Task { n }).await.unwrap().job()
    }

    pub(crate) async fn show(&self, job: JobId) -> JobRecord {
        self.inner.show_job(&Sight::All, job).await.unwrap()
    }

    /// Journal rows of refused reports, sealed or not.
    pub(crate) async fn refused_rows(&self) -> Vec<JournalRow> {
        let mut refused = Vec::new();
        let seals = self.inner.list_seals(0, 1_000).await.unwrap();
        for seal in seals.iter().map(|seal| Some(seal.no)).chain([None]) {
            let rows = self.inner.read_journal(JournalPage { seal, after: 0, limit: 1_000 }).await.unwrap();
            refused.extend(rows.into_iter().filter(|row| row.event == JournalEvent::Refused));
        }
        refused
    }

    /// Runs a worker until the job is in one of these states.
    pub(crate) async fn run_until_state(&self, worker: Worker, job: JobId, state: State) -> Summary {
        worker.run_until(self.until(job, state)).await.unwrap()
    }

    /// Watches a job until it is in this state.
    pub(crate) async fn until(&self, job: JobId, state: State) {
        watch(&format!("job {job} is {}", state.as_str()), async || self.show(job).await.summary.state == state).await;
    }
}

/// Looks again and again until it is so.
pub(crate) async fn watch(what: &str, is_so: impl AsyncFn() -> bool) {
    let look = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, look).await.is_ok(), "waited in vain until {what}");
}
