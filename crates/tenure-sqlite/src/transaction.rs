//! Tenure's verbs inside a transaction of the user's own.

use rusqlite::Connection;
use tenure_core::{NewJob, Timestamp};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_store::lease::{EndJobs, Ended};
use tenure_store::run::AdvancePage;
use tenure_store::user_tx::CompleteJob;

use crate::fault;
use crate::tx::Tx;
use crate::{end, enqueue, page};

/// An open transaction, given to the closure of [`SqliteStore::transaction`](crate::SqliteStore::transaction).
///
/// The user's rows, the jobs enqueued and the completion of the job at hand are kept together or not at all:
///
/// ```
/// # use tenure_core::{JobId, Json, KindName, NewJob, Timestamp};
/// # use tenure_sqlite::{SqliteOptions, SqliteStore};
/// # use tenure_store::{AdminStore, StoreError};
/// # async fn order(store: SqliteStore, job: NewJob) -> Result<(), StoreError> {
/// store
///     .transaction(move |tx| {
///         tx.connection().execute("insert into orders (total) values (42)", []).map_err(StoreError::unavailable)?;
///         tx.enqueue(vec![job])
///     })
///     .await?;
/// # Ok(()) }
/// ```
///
/// The closure must neither commit nor roll back by itself; if it does, Tenure's verbs are refused from then on and the
/// caller hears `Unavailable`. The same when SQLite ends the transaction, on a full disk for example.
pub struct Transaction<'t, 'c> {
    tx: &'t Tx<'c>,
}

impl<'t, 'c> Transaction<'t, 'c> {
    pub(crate) fn new(tx: &'t Tx<'c>) -> Self {
        Self { tx }
    }

    /// The connection, for the user's own statements in the same transaction.
    pub fn connection(&self) -> &'c Connection {
        self.tx.conn()
    }

    /// The store's time, when this transaction's turn began.
    pub fn now(&self) -> Timestamp {
        self.tx.now
    }

    /// Stores jobs, as [`enqueue_jobs`](tenure_store::JobStore::enqueue_jobs) does. They can be claimed once the
    /// transaction is committed.
    pub fn enqueue(&self, jobs: impl AsRef<[NewJob]>) -> Result<Vec<Enqueued>, StoreError> {
        let jobs = jobs.as_ref();
        let now = self.open_tx()?.now;
        jobs.iter().try_for_each(|job| job.check(now))?;
        self.whole(|tx| enqueue::enqueue_jobs(tx, jobs))
    }

    /// Completes the job that the worker holds under its lease. [`StoreError::LeaseLost`] when it no longer does: answer
    /// `Err` from the closure then, and nothing of the transaction is kept. [`StoreError::Conflict`] when an earlier
    /// transaction has completed it, whose reply may have been lost: what this one writes is there already.
    pub fn complete(&self, request: &CompleteJob) -> Result<(), StoreError> {
        let CompleteJob { worker, lease, job, .. } = *request;
        let request = EndJobs { worker, lease, jobs: vec![request.to_end_job()] };
        request.check()?;
        match end::report(self.open_tx()?, &request)?.as_slice() {
            [Ended::Now(_)] => Ok(()),
            [Ended::Before(_)] => Err(StoreError::Conflict(format!(
                "job {job} was completed before under lease {lease}: this transaction must not commit its effects again"
            ))),
            _ => Err(StoreError::LeaseLost(job)),
        }
    }

    /// Moves the offset of a page's partition, stores the next page's job and completes this one. Fails as
    /// [`complete`](Self::complete) does, and with [`StoreError::OffsetMismatch`] when it is another page's turn: answer
    /// `Err` from the closure then.
    pub fn advance_page(&self, request: &AdvancePage) -> Result<(), StoreError> {
        self.whole(|tx| {
            page::move_partition(tx, request)?;
            Ok(self.complete(&request.page)?)
        })
    }

    /// Does all of it or nothing, also for a user who goes on after a refusal and commits.
    fn whole<T>(&self, verb: impl FnOnce(&Tx<'c>) -> fault::Result<T>) -> Result<T, StoreError> {
        let tx = self.open_tx()?;
        let run = |sql| tx.conn().execute_batch(sql).map_err(StoreError::unavailable);
        run("savepoint verb")?;
        let done = verb(tx);
        // SQLite itself may have ended the transaction, on a full disk for example.
        if !tx.conn().is_autocommit() {
            run(if done.is_ok() { "release verb" } else { "rollback to verb; release verb" })?;
        }
        Ok(done?)
    }

    /// Once the transaction has ended, every statement would be a transaction of its own: half a verb could stay.
    pub(crate) fn open_tx(&self) -> Result<&'t Tx<'c>, StoreError> {
        if self.tx.conn().is_autocommit() {
            return Err(StoreError::Unavailable("the transaction was ended before its commit".into(), None));
        }
        Ok(self.tx)
    }
}
