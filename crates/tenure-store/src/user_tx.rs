//! A user's own open transaction, of any driver: jobs are stored in it, and the job at hand is completed in it.
//!
//! Drivers differ in one thing: some block, some answer with a future. [`UserTx::Reply`] is that difference, so that
//! one verb reads the same on both: `attempt.complete_in(tx)?` inside a closure of the embedded store,
//! `attempt.complete_in(&tx).await?` on Postgres.
//!
//! The store is a parameter of the trait although no verb needs it: a driver's transaction is foreign to the crate that
//! knows how to use it, and Rust allows an implementation there only when one of its types is at home. A function that
//! takes any of them says `fn f<S, X: UserTx<S>>(tx: X)`; `S` follows from the transaction.

use tenure_core::{JobId, Json, LeaseNo, NewJob, WorkerId};

use crate::enqueue::Enqueued;
use crate::error::StoreError;
use crate::lease::{EndJob, Ending, GateWord};
use crate::run::AdvancePage;

/// An open transaction that belongs to the user, on a database where the store `S` lives. It is committed or rolled back
/// by them, never here.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an open transaction that Tenure knows",
    label = "not a transaction",
    note = "on Postgres it is `&tx` of tokio-postgres or deadpool-postgres, or `&mut tx` of sqlx with the feature `sqlx`; \
            on SQLite it is the `tx` that the closure of `SqliteStore::transaction` gets"
)]
pub trait UserTx<S>: Sized {
    /// `T` itself where the driver blocks; a future of it where it does not.
    type Reply<T: Send + 'static>;

    /// Stores jobs: they exist when the transaction commits. `then` turns the answer into what the caller wants.
    fn enqueue_jobs<T, F>(self, jobs: Vec<NewJob>, then: F) -> Self::Reply<T>
    where
        T: Send + 'static,
        F: FnOnce(Result<Vec<Enqueued>, StoreError>) -> T + Send + 'static;

    /// Completes a job: `LeaseLost` when the lease no longer holds it, and then the transaction must be rolled back.
    fn complete_job<T, F>(self, request: CompleteJob, then: F) -> Self::Reply<T>
    where
        T: Send + 'static,
        F: FnOnce(Result<(), StoreError>) -> T + Send + 'static;

    /// Moves a partition's offset, stores its next page and completes this one: `LeaseLost` and `OffsetMismatch` mean
    /// that the transaction must be rolled back.
    fn advance_page<T, F>(self, request: AdvancePage, then: F) -> Self::Reply<T>
    where
        T: Send + 'static,
        F: FnOnce(Result<(), StoreError>) -> T + Send + 'static;
}

/// Complete one job inside a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompleteJob {
    /// The holder.
    pub worker: WorkerId,
    /// Its lease.
    pub lease: LeaseNo,
    /// The job.
    pub job: JobId,
    /// What the handler returned.
    pub result: Option<Json>,
    /// What it used.
    pub usage: Option<Json>,
    /// What it says of its gate.
    pub gate: GateWord,
}

impl CompleteJob {
    /// A completion that says nothing else.
    pub fn new(worker: WorkerId, lease: LeaseNo, job: JobId) -> Self {
        Self { worker, lease, job, result: None, usage: None, gate: GateWord::default() }
    }

    /// The same as it is reported outside of a transaction.
    pub fn to_end_job(&self) -> EndJob {
        let ending = Ending::Succeeded { result: self.result.clone(), usage: self.usage.clone() };
        EndJob { job: self.job, ending, gate: self.gate }
    }
}
