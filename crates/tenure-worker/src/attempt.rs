//! [`Attempt`]: the right to complete the job at hand inside the handler's own transaction.

use serde::Serialize;
use tenure_core::{JobId, Json, LeaseNo};
use tenure_store::user_tx::CompleteJob;
use tenure_store::{StoreError, UserTx};

use crate::answer::Completed;
use crate::ctx::{Ctx, Stop};
use crate::extract::FromContext;
use crate::fail::Fail;
use crate::job::to_kept;

/// The attempt a handler is, as far as its transaction needs it.
///
/// ```
/// # use tenure_sqlite::SqliteStore;
/// # use tenure_worker::{Attempt, Completed, Fail, Job, State};
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Charge { order: i64 }
/// # impl Job for Charge { const KIND: &'static str = "charge"; }
/// async fn charge(job: Charge, State(store): State<SqliteStore>, attempt: Attempt) -> Result<Completed, Fail> {
///     let receipt = move |tx: &tenure_sqlite::Transaction<'_, '_>| {
///         tx.connection().execute("insert into receipt (for_order) values (?1)", [job.order])?;
///         attempt.complete_in(tx) // a stale lease: an error, and the receipt is rolled back
///     };
///     store.transaction(receipt).await // the receipt and the completion, or neither
/// }
/// # let store = SqliteStore::in_memory(Default::default()).unwrap();
/// # tenure_worker::Worker::builder(&store).state(store.clone()).handle(charge).build().unwrap();
/// ```
#[derive(Debug, Clone)]
pub struct Attempt(Ctx);

impl Attempt {
    /// The job's id.
    pub fn job_id(&self) -> JobId {
        self.0.job_id()
    }

    /// The lease number: larger in every later attempt of this job.
    pub fn fence(&self) -> LeaseNo {
        self.0.fence()
    }

    /// 1 is the first attempt.
    pub fn number(&self) -> u16 {
        self.0.attempt()
    }

    /// Completes the job in the handler's own transaction: its rows and the completion commit together or not at all.
    ///
    /// Refused when the lease no longer holds the job: end the handler with that error, and the transaction is rolled
    /// back. On Postgres this is a future; inside `SqliteStore::transaction` it is the answer itself. Do the slow work
    /// before: the transaction should be short.
    pub fn complete_in<S, T: UserTx<S>>(&self, tx: T) -> T::Reply<Result<Completed, Fail>> {
        self.complete(tx, Ok(None))
    }

    /// The same with a result to keep.
    pub fn complete_with<S, T: UserTx<S>>(&self, tx: T, result: &impl Serialize) -> T::Reply<Result<Completed, Fail>> {
        self.complete(tx, to_kept("result", result).map(Some).map_err(Fail::permanent))
    }

    fn complete<S, T: UserTx<S>>(
        &self,
        tx: T,
        result: Result<Option<Json>, Fail>,
    ) -> T::Reply<Result<Completed, Fail>> {
        let ctx = self.0.clone();
        let result = match result {
            Ok(result) => result,
            // Every answer comes through the transaction; an empty batch is one that does nothing.
            Err(fail) => return tx.enqueue_jobs(Vec::new(), move |_| Err(fail)),
        };
        let request = CompleteJob { result, ..ctx.completion() };
        tx.complete_job(request, move |answer| match answer {
            Err(StoreError::LeaseLost(_)) => {
                ctx.tell(Stop::LeaseLost);
                Err(Fail::lease_lost())
            }
            Err(error) => Err(error.into()),
            Ok(()) => Ok(Completed(())),
        })
    }
}

impl<S> FromContext<S> for Attempt {
    fn from_context(ctx: &Ctx, _: &S) -> Result<Self, Fail> {
        Ok(Self(ctx.clone()))
    }
}
