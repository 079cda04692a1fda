//! The store's handle, and every verb of the port handed to its file.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::gate::{GateRule, Pattern};
use tenure_core::journal::JournalRow;
use tenure_core::name::{GateName, QueueName};
use tenure_core::seal::Seal;
use tenure_core::{How, JobId, LeaseNo, NewJob, WorkerId};
use tenure_store::cache::{Cached, PutCached, check_key};
use tenure_store::clock::Clock;
use tenure_store::enqueue::Enqueued;
use tenure_store::gate::{AcquireTokens, Acquired, GateFilter, GateRecord, OperateGate, PatchRule, SetRule};
use tenure_store::journal::{JournalFilter, JournalFound, JournalPage, JournalTraces};
use tenure_store::lease::{ClaimJobs, Claimed, EndJobs, Ended, Reclaimed, RenewLeases, Renewed, check_listed};
use tenure_store::operate::{CancelJob, Canceled, HastenJob, OpenJob, RequeueJob};
use tenure_store::record::{JobFilter, JobRecord, JobSummary, JobsFound, Sight, check_search};
use tenure_store::sink::Value;
use tenure_store::table::Record;
use tenure_store::{
    CacheStore, GateStore, IntoStore, JobStore, JournalStore, LeaseStore, Store, StoreError, WakeStore,
};

use crate::engine::Engine;
use crate::fault;
use crate::lane::Urgency;
use crate::transaction::Transaction;
use crate::tx::Tx;
use crate::{
    cache, cancel, claim, end, enqueue, gate, gate_rule, journal, list, migrate, reclaim, renew, requeue, show, wake,
};

/// Jobs from which on an enqueue lets everybody else go first.
const BULK_JOBS: usize = 100;

/// Tenure on SQLite. Clones are handles of the same store; the last one to go closes it.
///
/// A verb that was sent is run, also when its caller stops waiting: dropping the future only loses the reply. Verbs that
/// wait together share one commit. When it fails, each of them is `Unavailable`, and nobody is answered before it.
#[derive(Clone)]
pub struct SqliteStore {
    pub(crate) engine: Arc<Engine>,
}

/// How to open a store.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// Whose time it is; [`Clock::Store`] is this machine's clock.
    pub clock: Clock,
    /// How long a verb waits for another process that writes, before it is `Unavailable`.
    pub busy_timeout: Duration,
    /// A change of every statement's text, for tests of tests.
    #[cfg(feature = "mutants")]
    pub mutation: Option<crate::Mutation>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            clock: Clock::Store,
            busy_timeout: Duration::from_secs(5),
            #[cfg(feature = "mutants")]
            mutation: None,
        }
    }
}

impl SqliteStore {
    /// Opens a file; it and its directory are created when missing. The schema is not touched: until
    /// [`migrate`](tenure_store::AdminStore::migrate) every verb fails with [`StoreError::Schema`].
    pub fn open(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, StoreError> {
        Ok(Self { engine: Arc::new(Engine::file(path.as_ref(), options)?) })
    }

    /// Opens an empty store in memory. It runs on the caller's thread and is gone with its last handle.
    pub fn in_memory(options: SqliteOptions) -> Result<Self, StoreError> {
        Ok(Self { engine: Arc::new(Engine::memory(options)?) })
    }

    /// Runs `work` in one transaction, together with rows of the user's own: all of it is kept when `work` answers
    /// `Ok`, nothing when it answers `Err` or panics (the panic goes on in the caller).
    ///
    /// `work` runs on the writer thread and everybody else waits for it: it must not block on anything else, and on no
    /// other verb of this store.
    pub async fn transaction<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Transaction<'_, '_>) -> Result<T, E> + Send + 'static,
    {
        let shared = Arc::clone(&self.engine.shared);
        let verb = move |tx: &Tx<'_>| {
            migrate::check(tx, &shared)?;
            work(&Transaction::new(tx))
        };
        self.engine.write(Urgency::Verb, true, verb).await
    }

    /// Runs a statement of the user's own that only reads, beside whoever writes; see [`Transaction::query`].
    pub async fn query(&self, sql: &'static str, params: Vec<Value>) -> Result<Vec<Record>, StoreError> {
        self.read(move |tx| Ok(Transaction::new(tx).query(sql, &params)?)).await
    }

    pub(crate) async fn write<T, F>(&self, urgency: Urgency, verb: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> fault::Result<T> + Send + 'static,
    {
        let shared = Arc::clone(&self.engine.shared);
        let checked = move |tx: &Tx<'_>| {
            migrate::check(tx, &shared)?;
            verb(tx).map_err(StoreError::from)
        };
        self.engine.write(urgency, false, checked).await
    }

    pub(crate) async fn read<T, F>(&self, verb: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> fault::Result<T> + Send + 'static,
    {
        let shared = Arc::clone(&self.engine.shared);
        let checked = move |tx: &Tx<'_>| {
            migrate::check(tx, &shared)?;
            verb(tx)
        };
        self.engine.read(checked).await
    }
}

#[async_trait]
impl JobStore for SqliteStore {
    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError> {
        // Checked on the caller's thread: the writer's time belongs to everybody.
        let now = self.engine.shared.now();
        jobs.iter().try_for_each(|job| job.check(now))?;
        let urgency = if jobs.len() >= BULK_JOBS { Urgency::Bulk } else { Urgency::Verb };
        self.write(urgency, move |tx| enqueue::enqueue_jobs(tx, &jobs)).await
    }

    async fn show_job(&self, sight: &Sight, job: JobId) -> Result<JobRecord, StoreError> {
        let sight = sight.clone();
        self.read(move |tx| show::show_job(tx, &sight, job)).await
    }

    async fn list_jobs(&self, filter: &JobFilter) -> Result<Vec<JobSummary>, StoreError> {
        filter.check()?;
        let filter = filter.clone();
        self.read(move |tx| list::list_jobs(tx, &filter)).await
    }

    async fn search_jobs(&self, filter: &JobFilter, text: &str) -> Result<JobsFound, StoreError> {
        filter.check()?;
        check_search(text)?;
        let (filter, text) = (filter.clone(), text.to_ascii_lowercase());
        self.read(move |tx| list::search_jobs(tx, &filter, &text)).await
    }

    async fn cancel_job(&self, request: CancelJob) -> Result<Canceled, StoreError> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| cancel::cancel_job(tx, &request)).await
    }

    async fn requeue_job(&self, request: RequeueJob) -> Result<(), StoreError> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| requeue::requeue_job(tx, &request)).await
    }

    async fn open_job(&self, request: OpenJob) -> Result<(), StoreError> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| requeue::open_job(tx, &request)).await
    }

    async fn hasten_job(&self, request: HastenJob) -> Result<bool, StoreError> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| requeue::hasten_job(tx, &request)).await
    }
}

#[async_trait]
impl LeaseStore for SqliteStore {
    async fn claim_jobs(&self, request: ClaimJobs) -> Result<Option<Claimed>, StoreError> {
        request.check()?;
        let shared = Arc::clone(&self.engine.shared);
        self.write(Urgency::Verb, move |tx| claim::claim_jobs(tx, &shared.lines, &request)).await
    }

    async fn renew_leases(&self, request: RenewLeases) -> Result<Renewed, StoreError> {
        self.write(Urgency::Renewal, move |tx| renew::renew_leases(tx, &request)).await
    }

    async fn end_jobs(&self, request: EndJobs) -> Result<Vec<Ended>, StoreError> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| end::end_jobs(tx, &request)).await
    }

    async fn find_cancel_requests(&self, jobs: Vec<JobId>) -> Result<Vec<JobId>, StoreError> {
        self.read(move |tx| cancel::find_requests(tx, &jobs)).await
    }

    async fn find_endings(
        &self,
        worker: WorkerId,
        lease: LeaseNo,
        jobs: Vec<JobId>,
    ) -> Result<Vec<Option<How>>, StoreError> {
        check_listed(&jobs)?;
        self.read(move |tx| end::find_endings(tx, worker, lease, &jobs)).await
    }

    async fn drop_leases(&self, worker: WorkerId, leases: Vec<LeaseNo>) -> Result<Vec<LeaseNo>, StoreError> {
        self.write(Urgency::Verb, move |tx| renew::drop_leases(tx, worker, &leases)).await
    }

    async fn find_leases(
        &self,
        worker: WorkerId,
        leases: Vec<LeaseNo>,
    ) -> Result<Vec<(LeaseNo, Duration)>, StoreError> {
        self.read(move |tx| renew::find_leases(tx, worker, &leases)).await
    }

    async fn newest_lease(&self) -> Result<LeaseNo, StoreError> {
        self.read(claim::newest_lease).await
    }

    async fn release_unknown(
        &self,
        worker: WorkerId,
        known: Vec<LeaseNo>,
        newest: LeaseNo,
    ) -> Result<Vec<JobId>, StoreError> {
        self.write(Urgency::Verb, move |tx| reclaim::release_unknown(tx, worker, &known, newest)).await
    }

    async fn reclaim_jobs(&self, by: Option<WorkerId>, leases_max: u32) -> Result<Vec<Reclaimed>, StoreError> {
        self.write(Urgency::Verb, move |tx| reclaim::reclaim_jobs(tx, by, leases_max)).await
    }
}

#[async_trait]
impl GateStore for SqliteStore {
    async fn set_rule(&self, request: SetRule) -> Result<(), StoreError> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| gate_rule::set_rule(tx, &request)).await
    }

    async fn patch_rule(&self, request: PatchRule) -> Result<GateRule, StoreError> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| gate_rule::patch_rule(tx, &request)).await
    }

    async fn list_rules(&self, limit: u32) -> Result<Vec<(Pattern, GateRule)>, StoreError> {
        self.read(move |tx| gate_rule::list_rules(tx, limit)).await
    }

    async fn list_gates(&self, filter: &GateFilter) -> Result<Vec<GateRecord>, StoreError> {
        filter.check()?;
        let filter = filter.clone();
        self.read(move |tx| gate::list_gates(tx, &filter)).await
    }

    async fn show_gate(&self, gate: &GateName) -> Result<GateRecord, StoreError> {
        let gate = gate.clone();
        self.read(move |tx| gate::show_gate(tx, &gate)).await
    }

    async fn operate_gate(&self, request: OperateGate) -> Result<(), StoreError> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| gate::operate_gate(tx, &request)).await
    }

    async fn acquire_tokens(&self, request: AcquireTokens) -> Result<Acquired, StoreError> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| gate::acquire_tokens(tx, &request)).await
    }

    async fn repair_gates(&self) -> Result<u64, StoreError> {
        self.write(Urgency::Verb, gate::repair_gates).await
    }

    fn opens_in(&self, queue: &QueueName) -> Option<Duration> {
        self.engine.shared.lines.opens_in(queue)
    }
}

#[async_trait]
impl CacheStore for SqliteStore {
    async fn find_cached(&self, key: &str) -> Result<Option<Cached>, StoreError> {
        check_key(key)?;
        let key = key.to_owned();
        self.read(move |tx| cache::find_cached(tx, &key)).await
    }

    async fn put_cached(&self, request: PutCached) -> Result<(), StoreError> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| cache::put_cached(tx, &request)).await
    }

    async fn forget_cached(&self, key: &str) -> Result<(), StoreError> {
        check_key(key)?;
        let key = key.to_owned();
        self.write(Urgency::Verb, move |tx| cache::forget_cached(tx, &key)).await
    }

    async fn prune_cache(&self, most: u64) -> Result<u64, StoreError> {
        self.write(Urgency::Bulk, move |tx| cache::prune_cache(tx, most)).await
    }
}

#[async_trait]
impl JournalStore for SqliteStore {
    async fn seal_journal(&self) -> Result<Option<Seal>, StoreError> {
        self.write(Urgency::Bulk, journal::seal_journal).await
    }

    async fn list_seals(&self, after: i64, limit: u32) -> Result<Vec<Seal>, StoreError> {
        self.read(move |tx| journal::list_seals(tx, after, limit)).await
    }

    async fn read_journal(&self, page: JournalPage) -> Result<Vec<JournalRow>, StoreError> {
        self.read(move |tx| journal::read_journal(tx, page)).await
    }

    async fn list_journal_ids(&self, from: i64, limit: u32) -> Result<Vec<i64>, StoreError> {
        self.read(move |tx| journal::list_journal_ids(tx, from, limit)).await
    }

    async fn journal_traces(&self) -> Result<JournalTraces, StoreError> {
        self.read(journal::journal_traces).await
    }

    async fn list_job_rows(&self, sight: &Sight, job: JobId) -> Result<Vec<JournalRow>, StoreError> {
        let sight = sight.clone();
        self.read(move |tx| journal::list_job_rows(tx, &sight, job)).await
    }

    async fn list_journal(&self, filter: &JournalFilter) -> Result<JournalFound, StoreError> {
        filter.check()?;
        let filter = filter.clone();
        self.read(move |tx| journal::list_journal(tx, &filter)).await
    }
}

#[async_trait]
impl WakeStore for SqliteStore {
    /// Nothing to say: everybody who waits is in this process or looks by itself.
    async fn push_idle(&self, _queue: &QueueName) -> Result<(), StoreError> {
        Ok(())
    }

    async fn wait_for_work(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        let is_due = || {
            let (queues, shared) = (queues.to_vec(), Arc::clone(&self.engine.shared));
            self.read(move |tx| wake::has_due(tx, &shared.lines, &queues))
        };
        wake::wait(&self.engine, is_due).await
    }
}

impl IntoStore for SqliteStore {
    fn into_store(self) -> Arc<dyn Store> {
        Arc::new(self)
    }
}

impl IntoStore for &SqliteStore {
    fn into_store(self) -> Arc<dyn Store> {
        Arc::new(self.clone())
    }
}
