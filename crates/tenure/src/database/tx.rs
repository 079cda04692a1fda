//! [`Tx`]: an open transaction of either store, and what is done in it.

use std::cell::RefCell;

use tenure_core::{NewJob, Timestamp};
use tenure_postgres::PgStore;
use tenure_postgres::own::OwnTx;
use tenure_sqlite::Transaction;
use tenure_store::enqueue::Enqueued;
use tenure_store::run::AdvancePage;
use tenure_store::sink::{Row, Sink, UpsertTx, Upserted};
use tenure_store::table::Record;
use tenure_store::user_tx::CompleteJob;
use tenure_store::{StoreError, UserTx};
use tokio::runtime::Handle;

use super::Database;

/// Makes everybody who makes tables wait for each other: `create table if not exists` races with itself on Postgres.
const MAKE_TABLES_LOCK: &str = "select pg_advisory_xact_lock(7400, 8)";

/// An open transaction, given to the closure of [`Database::transaction`]. Everything that takes a transaction takes it:
/// `enqueue(…).within(tx)`, `attempt.complete_in(tx)`, `page.advance(tx, rows)`, `sink.upsert(tx, rows)`.
pub struct Tx<'t> {
    at: At<'t>,
    /// What was refused first: on Postgres nothing can be done or kept from there on, so nothing is on SQLite either.
    refused: RefCell<Option<StoreError>>,
}

enum At<'t> {
    Postgres { tx: &'t OwnTx<'t>, runtime: &'t Handle },
    Sqlite(&'t Transaction<'t, 't>),
}

impl<'t> Tx<'t> {
    pub(super) fn sqlite(tx: &'t Transaction<'t, 't>) -> Self {
        Self { at: At::Sqlite(tx), refused: RefCell::new(None) }
    }

    /// Runs a statement; answers how many rows it changed. `Conflict` when a row broke a rule about other rows, `Invalid`
    /// for what a table's checks refuse, `Schema` for a statement that does not fit the database.
    #[expect(clippy::needless_pass_by_value, reason = "a row is given away: `execute(sql, row![1, 2])`")]
    pub fn execute(&self, sql: &str, params: Row) -> Result<u64, StoreError> {
        self.noted(|| match &self.at {
            At::Postgres { tx, runtime } => runtime.block_on(tx.execute(sql, &params)),
            At::Sqlite(tx) => tx.execute(sql, &params),
        })
    }

    /// Runs a statement that answers rows.
    #[expect(clippy::needless_pass_by_value, reason = "a row is given away: `execute(sql, row![1, 2])`")]
    pub fn query(&self, sql: &str, params: Row) -> Result<Vec<Record>, StoreError> {
        self.noted(|| match &self.at {
            At::Postgres { tx, runtime } => runtime.block_on(tx.query(sql, &params)),
            At::Sqlite(tx) => tx.query(sql, &params),
        })
    }

    /// The first row of the answer, if there is one.
    pub fn query_first(&self, sql: &str, params: Row) -> Result<Option<Record>, StoreError> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    /// The time by the clock that leases and delays go by: the database's, or the one that a test moves.
    pub fn now(&self) -> Result<Timestamp, StoreError> {
        match &self.at {
            At::Postgres { tx, .. } => match tx.manual_now() {
                Some(now) => Ok(now),
                None => {
                    let row = self.query_first("select now() as now", Row::new())?;
                    row.ok_or_else(|| StoreError::Corrupt("the clock did not answer".into()))?.get("now")
                }
            },
            At::Sqlite(tx) => Ok(tx.now()),
        }
    }

    pub(super) fn make_tables(&self, sql: &str) -> Result<(), StoreError> {
        self.noted(|| match &self.at {
            At::Postgres { tx, runtime } => runtime.block_on(async {
                tx.execute_all(MAKE_TABLES_LOCK).await?;
                tx.execute_all(sql).await
            }),
            At::Sqlite(tx) => tx.execute_all(sql),
        })
    }

    /// Does something unless something was refused before, and remembers when it is refused.
    fn noted<T>(&self, act: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
        if let Some(before) = &*self.refused.borrow() {
            return Err(before.repeat());
        }
        let answer = act();
        *self.refused.borrow_mut() = answer.as_ref().err().map(StoreError::repeat);
        answer
    }
}

/// Does the work, and refuses to keep it when a statement of it was refused.
pub(super) fn checked<T, E: From<StoreError>>(tx: &Tx<'_>, work: impl FnOnce(&Tx<'_>) -> Result<T, E>) -> Result<T, E> {
    let answer = work(tx)?;
    match tx.refused.take() {
        Some(refused) => Err(refused.into()),
        None => Ok(answer),
    }
}

/// On a thread that may block, driven by the caller's runtime.
pub(super) async fn on_postgres<T, E, F>(store: &PgStore, work: F) -> Result<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
    F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
{
    let (mut own, runtime) = (store.own().await?, Handle::current());
    let worked = tokio::task::spawn_blocking(move || {
        let tx = runtime.block_on(own.begin())?;
        let answer =
            checked(&Tx { at: At::Postgres { tx: &tx, runtime: &runtime }, refused: RefCell::new(None) }, work);
        match answer {
            Ok(answer) => runtime.block_on(tx.commit()).map(|()| answer).map_err(E::from),
            Err(error) => {
                // What cannot be rolled back is rolled back by the server when its connection goes.
                let _gone_anyway = runtime.block_on(tx.rollback());
                Err(error)
            }
        }
    });
    match worked.await {
        Ok(answer) => answer,
        Err(joined) => match joined.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(StoreError::Unavailable("the runtime goes down".into(), None).into()),
        },
    }
}

impl UserTx<Database> for &Tx<'_> {
    type Reply<T: Send + 'static> = T;

    fn enqueue_jobs<T, F>(self, jobs: Vec<NewJob>, then: F) -> T
    where
        T: Send + 'static,
        F: FnOnce(Result<Vec<Enqueued>, StoreError>) -> T + Send + 'static,
    {
        then(self.noted(|| match &self.at {
            At::Postgres { tx, runtime } => runtime.block_on(tx.enqueue(&jobs)),
            At::Sqlite(tx) => tx.enqueue(&jobs),
        }))
    }

    fn complete_job<T, F>(self, request: CompleteJob, then: F) -> T
    where
        T: Send + 'static,
        F: FnOnce(Result<(), StoreError>) -> T + Send + 'static,
    {
        then(self.noted(|| match &self.at {
            At::Postgres { tx, runtime } => runtime.block_on(tx.complete(&request)),
            At::Sqlite(tx) => tx.complete(&request),
        }))
    }

    fn advance_page<T, F>(self, request: AdvancePage, then: F) -> T
    where
        T: Send + 'static,
        F: FnOnce(Result<(), StoreError>) -> T + Send + 'static,
    {
        then(self.noted(|| match &self.at {
            At::Postgres { tx, runtime } => runtime.block_on(tx.advance_page(&request)),
            At::Sqlite(tx) => Transaction::advance_page(tx, &request),
        }))
    }
}

impl UpsertTx<Database> for &Tx<'_> {
    type Reply<T: Send + 'static> = T;

    fn upsert_rows(self, sink: &Sink, rows: Vec<Row>) -> Result<Upserted, StoreError> {
        self.noted(|| match &self.at {
            At::Postgres { tx, runtime } => runtime.block_on(tx.upsert(sink, &rows)),
            At::Sqlite(tx) => tenure_sqlite::sink::upsert(tx, sink, &rows),
        })
    }
}
