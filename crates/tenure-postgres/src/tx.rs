//! Inside a user's own transaction: enqueue with it, complete with it.
//!
//! ```no_run
//! # async fn f(client: &mut tokio_postgres::Client, job: tenure_core::NewJob) -> Result<(), Box<dyn std::error::Error>> {
//! let mut tx = client.transaction().await?;
//! tx.execute("insert into invoice (id) values ($1)", &[&42_i64]).await?;
//! tenure_postgres::tx::enqueue_within(&tx, &[job]).await?;
//! tx.commit().await?; // the invoice and its job, or neither
//! # Ok(()) }
//! ```

use tenure_core::{JobId, LeaseNo, NewJob, Timestamp};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_store::run::AdvancePage;
use tenure_store::user_tx::CompleteJob;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, GenericClient, Row};

use crate::complete::{ADVANCE, Advance, COMPLETE, Completion};
use crate::enqueue::{Columns, answers};
use crate::error::translate;
use crate::peer::Peer;
use crate::statement::ENQUEUE_JOBS;
use crate::value::{Moment, get};

/// A connection to begin transactions on, by the same URL and with the same TLS rules as the store's. It is driven on the
/// caller's runtime until the client is dropped.
pub async fn connect(url: &str) -> Result<Client, StoreError> {
    let target = crate::tls::target(url)?;
    let (client, connection) =
        target.config.connect(target.tls).await.map_err(|error| Peer::of(&target.config).explain(&error))?;
    // What it says last is of no interest: whoever uses the client hears of it.
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

/// Stores jobs in the caller's transaction: they exist when it commits. Wakes idle workers when it does.
pub async fn enqueue_within(tx: &impl GenericClient, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
    enqueue_at(tx, jobs, None).await
}

/// Completes a job in the caller's transaction: its rows and the completion commit together or not at all.
///
/// `LeaseLost` when the lease no longer holds the job, `Conflict` when an earlier transaction has completed it: either
/// way this transaction can only be rolled back. While it is open, renewal goes on and reclaim leaves the lease alone; a
/// transaction that stalls until the lease would have ended is ended by the server.
pub async fn complete_in(tx: &impl GenericClient, request: &CompleteJob) -> Result<(), StoreError> {
    complete_at(tx, request, None).await
}

/// Moves the offset of a page's partition, stores the next page's job and completes this one, in the caller's transaction.
///
/// Fails as [`complete_in`] does, and with `OffsetMismatch` when it is another page's turn: either way this transaction
/// can only be rolled back.
pub async fn advance_page(tx: &impl GenericClient, request: &AdvancePage) -> Result<(), StoreError> {
    advance_at(tx, request, None).await
}

/// [`enqueue_within`] by the clock that a test moves, where it has one.
pub async fn enqueue_at(
    tx: &impl GenericClient,
    jobs: &[NewJob],
    now: Option<Timestamp>,
) -> Result<Vec<Enqueued>, StoreError> {
    let columns = Columns::new(jobs, now.map(Moment))?;
    let rows = tx.query_typed(ENQUEUE_JOBS.sql, &columns.params()).await.map_err(translate)?;
    let queues = columns.queue_names();
    let wake: &(dyn ToSql + Sync) = &queues;
    tx.query_typed(crate::statement::WAKE_IDLE.sql, &[(wake, Type::TEXT_ARRAY)]).await.map_err(translate)?;
    answers(&rows)
}

/// [`complete_in`] by the clock that a test moves, where it has one.
pub async fn complete_at(
    tx: &impl GenericClient,
    request: &CompleteJob,
    now: Option<Timestamp>,
) -> Result<(), StoreError> {
    let columns = Completion::new(request, now.map(Moment));
    done(tx.query_typed(COMPLETE, &columns.params()).await, request.job)
}

/// [`advance_page`] by the clock that a test moves, where it has one.
pub async fn advance_at(
    tx: &impl GenericClient,
    request: &AdvancePage,
    now: Option<Timestamp>,
) -> Result<(), StoreError> {
    let columns = Advance::new(request, now.map(Moment));
    done(tx.query_typed(ADVANCE, &columns.params()).await, request.page.job)
}

fn done(answer: Result<Vec<Row>, tokio_postgres::Error>, job: JobId) -> Result<(), StoreError> {
    match answer {
        Ok(_) => Ok(()),
        Err(error) if error.code().is_some_and(|code| code.code() == "TN001") => Err(StoreError::LeaseLost(job)),
        Err(error) => Err(translate(error)),
    }
}

/// Whether `(job, lease)` ended as succeeded. A worker asks after a handler said that it completed inside a transaction:
/// one that was rolled back leaves nothing, and the job must not be renewed for ever.
pub async fn is_completed(client: &impl GenericClient, lease: LeaseNo, job: JobId) -> Result<bool, StoreError> {
    let params: [(&(dyn ToSql + Sync), Type); 2] = [(job.as_uuid(), Type::UUID), (&lease.0, Type::INT8)];
    let sql = "select exists (select from tenure.attempt where job = $1 and lease = $2 and how = 1) as done";
    let rows = client.query_typed(sql, &params).await.map_err(translate)?;
    rows.first().map_or(Ok(false), |row| get(row, "done"))
}
