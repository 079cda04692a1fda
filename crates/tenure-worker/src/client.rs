//! [`Client`]: how a program puts jobs into a store.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tenure_core::{GateRule, JobId, NewJob, TenantName};
use tenure_store::clock::Clock;
use tenure_store::enqueue::Enqueued;
use tenure_store::gate::SetRule;
use tenure_store::operate::{CancelJob, Canceled, RequeueJob, Word};
use tenure_store::record::{JobRecord, Sight};
use tenure_store::{IntoStore, Store, StoreError, Waker};
use tracing::Instrument;

use crate::enqueue::{Enqueue, EnqueueMany};
use crate::job::Job;
use crate::{random, trace};

/// Puts jobs into a store. Cheap to clone; clones share the store.
///
/// ```
/// # use std::time::Duration;
/// # use tenure_worker::{Client, Job};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct SendInvoice { order: u64 }
/// # impl Job for SendInvoice { const KIND: &'static str = "invoice.send"; }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = tenure_sqlite::SqliteStore::in_memory(Default::default())?;
/// # tenure_store::AdminStore::migrate(&store).await?;
/// let client = Client::new(&store);
/// client.enqueue(SendInvoice { order: 42 }).delay(Duration::from_secs(60)).unique("invoice:42").await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    store: Arc<dyn Store>,
    tenant: TenantName,
    clock: Clock,
    stored: Option<Stored>,
    waker: Option<Arc<dyn Waker>>,
}

/// Called after jobs were stored: a test that runs them at once.
type Stored = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

impl Client {
    /// A client of this store, for tenant `default`.
    pub fn new(store: impl IntoStore) -> Self {
        Self {
            store: store.into_store(),
            tenant: TenantName::default(),
            clock: Clock::Store,
            stored: None,
            waker: None,
        }
    }

    /// The same for another tenant.
    #[must_use]
    pub fn for_tenant(mut self, tenant: TenantName) -> Self {
        self.tenant = tenant;
        self
    }

    /// Makes ids by a test's clock instead of the machine's.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Calls `run` after every enqueue through this client (not `within` a transaction): a test that wants jobs done at
    /// once runs a worker until it is idle.
    #[must_use]
    pub fn with_inline(
        mut self,
        run: impl Fn() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync + 'static,
    ) -> Self {
        self.stored = Some(Arc::new(run));
        self
    }

    /// Publishes the id of every job that this client stores, once it is committed, so that whoever listens there looks
    /// for it at once. A job put `within` a transaction is not: nobody here hears of its commit.
    #[must_use]
    pub fn with_waker(mut self, waker: Arc<dyn Waker>) -> Self {
        self.waker = Some(waker);
        self
    }

    /// Stores a job when awaited, or `within` a transaction; see [`Enqueue`] for all that can be said about it.
    #[expect(clippy::needless_pass_by_value, reason = "a job is given away: `enqueue(SendInvoice { order: 42 })`")]
    pub fn enqueue<J: Job>(&self, job: J) -> Enqueue<'_> {
        Enqueue::new(self, crate::job::to_new_job(self.new_id(), &job))
    }

    /// Stores jobs of one type, all or none.
    pub fn enqueue_many<J: Job>(&self, jobs: impl IntoIterator<Item = J>) -> EnqueueMany<'_> {
        let jobs: Result<Vec<NewJob>, _> =
            jobs.into_iter().map(|job| crate::job::to_new_job(self.new_id(), &job)).collect();
        EnqueueMany::new(self, jobs)
    }

    /// One job with its attempts. `NotFound` for an unknown id and for another tenant's job alike.
    pub async fn show(&self, job: JobId) -> Result<JobRecord, StoreError> {
        self.store.show_job(&self.sight(), job).await
    }

    /// Ends a job nobody holds, asks the holder of a running one.
    pub async fn cancel(&self, job: JobId) -> Result<Canceled, StoreError> {
        let request = CancelJob { sight: self.sight(), job, force: false, word: Word::default() };
        self.store.cancel_job(request).await
    }

    /// Revives a failed, dead or canceled job: attempts and losses start again.
    pub async fn requeue(&self, job: JobId) -> Result<(), StoreError> {
        self.store.requeue_job(RequeueJob { sight: self.sight(), job, word: Word::default() }).await
    }

    /// Sets the whole rule of a gate, or of all whose name begins alike: `client.set_gate("domain:*", GateRule::domain())`.
    pub async fn set_gate(&self, gate: &str, rule: GateRule) -> Result<(), StoreError> {
        let request = SetRule { pattern: gate.parse()?, rule: Some(rule), word: Word::default() };
        self.store.set_rule(request).await
    }

    /// The store, for everything else.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn tenant(&self) -> &TenantName {
        &self.tenant
    }

    pub(crate) async fn store_jobs(&self, mut jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError> {
        let span = trace::enqueue_span(&mut jobs, None);
        let stored = self.store.enqueue_jobs(jobs).instrument(span).await?;
        if let Some(waker) = &self.waker {
            stored.iter().filter_map(Enqueued::created).for_each(|job| waker.publish(job));
        }
        if let Some(run) = &self.stored {
            run().await;
        }
        Ok(stored)
    }

    fn new_id(&self) -> JobId {
        random::job_id(&self.clock)
    }

    pub(crate) fn sight(&self) -> Sight {
        Sight::Tenant(self.tenant.clone())
    }
}
