//! [`Page`]: one page of a partition, and the right to move its partition on inside the handler's own transaction.

use tenure_core::run::Part;
use tenure_core::{PartitionName, RunId};
use tenure_store::run::AdvancePage;
use tenure_store::{StoreError, UserTx};

use crate::answer::Completed;
use crate::ctx::{Ctx, Stop};
use crate::extract::FromContext;
use crate::fail::Fail;
use crate::random;

/// The page a handler is to fetch and store.
///
/// Its rows, its partition's offset, the next page's job and this one's completion are one transaction: whatever happens
/// to the worker, no row is lost and none comes twice.
///
/// ```
/// # use tenure_sqlite::SqliteStore;
/// # use tenure_worker::{Completed, Fail, Job, Page, State};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Stones { min: u32, max: u32 }
/// # impl Job for Stones { const KIND: &'static str = "stones"; }
/// # async fn fetch(_: &Stones, _: u64, _: u32) -> Result<Vec<String>, Fail> { Ok(Vec::new()) }
/// async fn ingest(job: Stones, State(store): State<SqliteStore>, page: Page) -> Result<Completed, Fail> {
///     let stones = fetch(&job, page.offset(), page.limit()).await?; // no transaction is open here
///     store
///         .transaction(move |tx| {
///             for stone in &stones {
///                 tx.connection().execute("insert into stone (id) values (?1) on conflict do nothing", [stone])?;
///             }
///             page.advance(tx, stones.len() as u64) // fewer than the limit: it was the last page
///         })
///         .await
/// }
/// # let store = SqliteStore::in_memory(Default::default()).unwrap();
/// # tenure_worker::Worker::builder(&store).state(store.clone()).handle(ingest).build().unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Page {
    ctx: Ctx,
    run: RunId,
    partition: PartitionName,
    offset: u64,
    limit: u32,
}

impl Page {
    /// The run it belongs to.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The stream of pages it belongs to.
    pub fn partition(&self) -> &PartitionName {
        &self.partition
    }

    /// Where it begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Rows of a full page.
    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Its stable id, `run:partition:offset`: good as an idempotency key towards others.
    pub fn id(&self) -> String {
        Part::Page { run: self.run, partition: self.partition.clone(), offset: self.offset }.to_string()
    }

    /// Its `rows` are in the transaction: the partition goes on behind them. Fewer rows than the limit, also none, and it
    /// was the last page.
    ///
    /// Refused when the lease no longer holds the job, or when the partition is elsewhere: end the handler with that error,
    /// and the transaction is rolled back. On Postgres this is a future; inside `SqliteStore::transaction` it is the answer.
    pub fn advance<S, T: UserTx<S>>(&self, tx: T, rows: u64) -> T::Reply<Result<Completed, Fail>> {
        self.move_on(tx, rows, rows < u64::from(self.limit))
    }

    /// The same for a page that is the last one, however many rows it has: a source may know its end.
    pub fn finish<S, T: UserTx<S>>(&self, tx: T, rows: u64) -> T::Reply<Result<Completed, Fail>> {
        self.move_on(tx, rows, true)
    }

    fn move_on<S, T: UserTx<S>>(&self, tx: T, rows: u64, last: bool) -> T::Reply<Result<Completed, Fail>> {
        let ctx = self.ctx.clone();
        let next = (!last).then(|| random::job_id(ctx.client().clock()));
        let request = AdvancePage { page: ctx.completion(), rows, next };
        tx.advance_page(request, move |answer| match answer {
            Ok(()) => Ok(Completed(())),
            Err(StoreError::LeaseLost(_)) => {
                ctx.tell(Stop::LeaseLost);
                Err(Fail::lease_lost())
            }
            Err(StoreError::OffsetMismatch { expected, got }) => Err(Fail::offset_mismatch(expected, got)),
            // The partition has ended: its run was canceled, or somebody ended it.
            Err(StoreError::Conflict(_)) => Err(Fail::canceled()),
            Err(error) => Err(error.into()),
        })
    }
}

impl<S> FromContext<S> for Page {
    fn from_context(ctx: &Ctx, _: &S) -> Result<Self, Fail> {
        match (&ctx.0.job.part, ctx.page_limit()) {
            (Some(Part::Page { run, partition, offset }), Some(limit)) => {
                Ok(Self { ctx: ctx.clone(), run: *run, partition: partition.clone(), offset: *offset, limit })
            }
            _ => Err(Fail::permanent(format!(
                "job {} is no page of a run: such jobs are the partitions of `Client::new_run`, they are not enqueued",
                ctx.job_id()
            ))),
        }
    }
}
