//! [`Own`] and [`OwnTx`]: statements and transactions of the user's own, run through the store.
//!
//! They have what the store's own verbs have: a deadline for each call; a connection that is given up when its answer may
//! still come, so that the next user does not wait for it, and when it leads nowhere any more; the clock that a test moves;
//! and, behind a pooler, no statement that is known by a name, since the next transaction may meet another session. (The
//! driver itself keeps a name for types that are not built in: behind a pooler, use those that are.)

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool_postgres::{Object, Transaction};
use tenure_core::{NewJob, Timestamp};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_store::run::AdvancePage;
use tenure_store::sink::{Row, Sink, Upserted, Value};
use tenure_store::table::Record;
use tenure_store::user_tx::CompleteJob;

use crate::call::{begin, late};
use crate::pool::Desk;
use crate::store::PgStore;
use crate::table::{self, refused_statement};
use crate::{sink, tx};

/// Prepared statements that a connection keeps: whoever puts texts together may have any number of them.
const STATEMENTS_MAX: usize = 128;

/// A connection of the store's for what users do themselves. It goes back to its pool when it is dropped.
pub struct Own {
    /// There until it is dropped.
    connection: Option<Object>,
    rules: Rules,
}

/// An open transaction on it. Dropped, it is rolled back.
pub struct OwnTx<'t> {
    tx: Transaction<'t>,
    rules: &'t Rules,
}

struct Rules {
    deadline: Duration,
    /// What each transaction sets, behind a pooler.
    settings: Option<String>,
    now: Option<Timestamp>,
    /// A call is under way, was given up, or was answered as no healthy connection answers.
    is_spent: AtomicBool,
}

impl PgStore {
    /// A connection for statements of your own beside Tenure's tables, by the same URL and with the same TLS rules, from a
    /// pool of at most `connections_max`. A call may take `long_deadline`.
    pub async fn own(&self) -> Result<Own, StoreError> {
        let rules = Rules {
            deadline: Desk::Own.deadline(self.options()),
            settings: self.local_settings(Desk::Own),
            now: self.options().clock.now(),
            is_spent: AtomicBool::new(false),
        };
        Ok(Own { connection: Some(self.pools().get(Desk::Own).await?), rules })
    }
}

impl Own {
    /// Begins a transaction.
    pub async fn begin(&mut self) -> Result<OwnTx<'_>, StoreError> {
        let Self { connection, rules } = self;
        let connection = connection.as_mut().ok_or_else(|| late(rules.deadline))?;
        let began = async { begin(connection, rules.settings.as_deref()).await.map_err(StoreError::unavailable) };
        Ok(OwnTx { tx: rules.timed(began).await?, rules })
    }

    /// Runs one statement that only reads.
    pub async fn query(&mut self, sql: &str, params: &[Value]) -> Result<Vec<Record>, StoreError> {
        if self.rules.is_pooled() {
            let tx = self.begin().await?;
            let rows = tx.query(sql, params).await?;
            return tx.commit().await.map(|()| rows);
        }
        let connection = self.connection.as_ref().ok_or_else(|| late(self.rules.deadline))?;
        self.rules.timed(table::query(connection, sql, params, self.rules.is_pooled())).await
    }
}

impl OwnTx<'_> {
    /// Runs a statement; answers how many rows it changed. `Conflict` when a row broke a rule about other rows, `Invalid` for
    /// what a table's checks refuse, `Schema` for a statement that does not fit the database; then the transaction can only
    /// be rolled back.
    pub async fn execute(&self, sql: &str, params: &[Value]) -> Result<u64, StoreError> {
        self.rules.timed(table::execute(&self.tx, sql, params, self.rules.is_pooled())).await
    }

    /// Runs a statement that answers rows.
    pub async fn query(&self, sql: &str, params: &[Value]) -> Result<Vec<Record>, StoreError> {
        self.rules.timed(table::query(&self.tx, sql, params, self.rules.is_pooled())).await
    }

    /// Runs several statements without parameters, such as those that make tables.
    pub async fn execute_all(&self, sql: &str) -> Result<(), StoreError> {
        self.rules.timed(table::execute_all(&self.tx, sql)).await
    }

    /// The time by the test's clock, where a test has set one.
    pub fn manual_now(&self) -> Option<Timestamp> {
        self.rules.now
    }

    /// As [`tx::enqueue_within`].
    pub async fn enqueue(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        self.rules.timed(tx::enqueue_at(&*self.tx, jobs, self.rules.now)).await
    }

    /// As [`tx::complete_in`].
    pub async fn complete(&self, request: &CompleteJob) -> Result<(), StoreError> {
        self.rules.timed(tx::complete_at(&*self.tx, request, self.rules.now)).await
    }

    /// As [`tx::advance_page`].
    pub async fn advance_page(&self, request: &AdvancePage) -> Result<(), StoreError> {
        self.rules.timed(tx::advance_at(&*self.tx, request, self.rules.now)).await
    }

    /// As [`sink::upsert`].
    pub async fn upsert(&self, sink: &Sink, rows: &[Row]) -> Result<Upserted, StoreError> {
        self.rules.timed(sink::upsert(&*self.tx, sink, rows)).await
    }

    /// Keeps what was done. A rule that is looked at only now may refuse it: `Conflict`.
    pub async fn commit(self) -> Result<(), StoreError> {
        let Self { tx, rules } = self;
        rules.timed(async { tx.commit().await.map_err(refused_statement) }).await
    }

    /// Undoes what was done.
    pub async fn rollback(self) -> Result<(), StoreError> {
        let Self { tx, rules } = self;
        rules.timed(async { tx.rollback().await.map_err(StoreError::unavailable) }).await
    }
}

impl Rules {
    fn is_pooled(&self) -> bool {
        self.settings.is_some()
    }

    /// Waits for a call until its deadline; at once in vain after one that was given up. Whoever stops waiting leaves the
    /// connection spent as well.
    async fn timed<T>(&self, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        if self.is_spent.swap(true, Ordering::Relaxed) {
            return Err(late(self.deadline));
        }
        let answer = tokio::time::timeout(self.deadline, call).await.map_err(|_| late(self.deadline))?;
        // An outage, or a plan that was made before a table was changed.
        let is_spent = matches!(answer, Err(StoreError::Unavailable(..) | StoreError::Schema(_)));
        self.is_spent.store(is_spent, Ordering::Relaxed);
        answer
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else { return };
        if self.rules.is_spent.load(Ordering::Relaxed) {
            drop(Object::take(connection));
        } else if connection.statement_cache.size() > STATEMENTS_MAX {
            connection.statement_cache.clear();
        }
    }
}
