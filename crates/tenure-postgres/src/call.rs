//! One verb, one round trip, one transaction, one deadline.
//!
//! Straight to the server a verb is a prepared statement that commits by itself. Through a pooler it is `begin` with
//! settings, the unnamed statement and `commit`, sent together: still one round trip, and since all three are on their
//! way before the first answer is awaited, giving up leaves no open transaction behind. So is what a tenant asks for,
//! with one more step in between (`wall.rs`).

use std::time::{Duration, SystemTime};

use deadpool_postgres::{Object, Transaction};
use tenure_store::StoreError;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{IsolationLevel, Row};

use crate::error::{is_disconnect, is_retryable, translate};
use crate::options::Mode;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::wall::Wall;

/// A parameter and its type.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// Tries at one verb when two transactions meet and ours has to give way.
const TRIES: u32 = 6;

/// Why a call failed: translated, or the raw error where the caller decides by its code.
pub(crate) enum Failed {
    Said(tokio_postgres::Error),
    Other(StoreError),
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Other(error)
    }
}

impl From<tokio_postgres::Error> for Failed {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Said(error)
    }
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Said(error) => translate(error),
            Failed::Other(error) => error,
        }
    }
}

impl PgStore {
    /// Runs a statement and translates its error.
    pub(crate) async fn call(
        &self,
        desk: Desk,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, StoreError> {
        self.try_call(desk, statement, params).await.map_err(StoreError::from)
    }

    /// Runs a statement, again when it had to give way to another transaction.
    pub(crate) async fn try_call(
        &self,
        desk: Desk,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Failed> {
        self.call_waking(desk, statement, params, &[]).await
    }

    /// The same for a statement that is, or is about, what one tenant sees.
    pub(crate) async fn call_walled(
        &self,
        wall: Wall<'_>,
        desk: Desk,
        statement: Statement,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Failed> {
        self.again(wall, desk, &wall.text(self.text(statement)), params, &[]).await
    }

    /// The same for a statement that brings work to these queues: their idle workers are notified right behind it. Not by
    /// it: whoever has gone idle since it began is seen only after its commit. Where it brings nothing after all, they
    /// look once in vain.
    pub(crate) async fn call_waking(
        &self,
        desk: Desk,
        statement: Statement,
        params: &[Param<'_>],
        wakes: &[&str],
    ) -> Result<Vec<Row>, Failed> {
        self.again(Wall::Open, desk, &self.text(statement), params, wakes).await
    }

    async fn again(
        &self,
        wall: Wall<'_>,
        desk: Desk,
        sql: &str,
        params: &[Param<'_>],
        wakes: &[&str],
    ) -> Result<Vec<Row>, Failed> {
        for attempt in 1.. {
            match self.once(wall, desk, sql, params, wakes).await {
                Err(Failed::Said(error)) if is_retryable(&error) && attempt < TRIES => pause(attempt).await,
                answer => return answer,
            }
        }
        unreachable!("the loop above ends by returning")
    }

    async fn once(
        &self,
        wall: Wall<'_>,
        desk: Desk,
        sql: &str,
        params: &[Param<'_>],
        wakes: &[&str],
    ) -> Result<Vec<Row>, Failed> {
        let connection = self.pools().get(desk).await.map_err(Failed::Other)?;
        let deadline = desk.deadline(self.options());
        let answer = tokio::time::timeout(deadline, self.send(&connection, wall, desk, sql, params, wakes)).await;
        match answer {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => {
                if is_disconnect(&error) {
                    drop(Object::take(connection));
                }
                Err(Failed::Said(error))
            }
            Err(_) => {
                // The answer may still come; the next user of the connection must not wait for it.
                drop(Object::take(connection));
                Err(Failed::Other(late(deadline)))
            }
        }
    }

    async fn send(
        &self,
        connection: &Object,
        wall: Wall<'_>,
        desk: Desk,
        sql: &str,
        params: &[Param<'_>],
        wakes: &[&str],
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let is_open = matches!(wall, Wall::Open);
        if is_open && self.options().mode != Mode::Pooled && desk != Desk::Hasty {
            let types: Vec<Type> = params.iter().map(|(_, kind)| kind.clone()).collect();
            let values: Vec<&(dyn ToSql + Sync)> = params.iter().map(|(value, _)| *value).collect();
            let prepared = connection.prepare_typed_cached(sql, &types).await?;
            let query = connection.query(&prepared, &values);
            if wakes.is_empty() || self.listener().is_none() {
                return query.await;
            }
            let wake = self.text(statement::WAKE_IDLE);
            let Ok(wake) = connection.prepare_typed_cached(&wake, &[Type::TEXT_ARRAY]).await else {
                return query.await;
            };
            let wake = async {
                let _late_not_lost = connection.query(&wake, &[&wakes]).await;
                std::future::pending().await
            };
            // Biased: sent in this order, one right behind the other. Nobody waits for what the second answers, since a
            // wake-up that fails costs a poll and nothing more; whoever has the connection next waits behind it.
            return tokio::select! {
                biased;
                rows = query => rows,
                never = wake => never,
            };
        }
        let settings = desk.settings(self.options(), "set local");
        let begin = format!("begin isolation level read committed; {settings}{}", wall.role());
        // Biased: the four are sent in this order. Joined, not tried: `commit` must be sent even when `begin` fails. What
        // fails to pass the wall has ended the transaction, and the statement behind it does nothing.
        let whole = async {
            let (began, passed, rows, committed) = tokio::join!(
                biased;
                connection.batch_execute(&begin),
                wall.pass(connection),
                connection.query_typed(sql, params),
                connection.batch_execute("commit")
            );
            began?;
            passed?;
            let rows = rows?;
            committed.map(|()| rows)
        };
        if wakes.is_empty() || self.listener().is_none() {
            return whole.await;
        }
        let wake = self.text(statement::WAKE_IDLE);
        let wake = async {
            // As above: a wake-up that fails costs a poll.
            let _late_not_lost = connection.query_typed(&wake, &[(&wakes, Type::TEXT_ARRAY)]).await;
            std::future::pending().await
        };
        tokio::select! {
            biased;
            rows = whole => rows,
            never = wake => never,
        }
    }

    /// What a transaction of several statements sets behind a pooler; sessions of our own have it already.
    pub(crate) fn local_settings(&self, desk: Desk) -> Option<String> {
        (self.options().mode == Mode::Pooled).then(|| desk.settings(self.options(), "set local"))
    }
}

/// Runs several statements in one transaction with one deadline, again when it had to give way to another. A macro: the
/// body borrows its transaction.
macro_rules! transact {
    ($store:expr, |$tx:ident| $body:expr) => {{
        let store = $store;
        let settings = store.local_settings(Desk::Long);
        let mut attempt = 1;
        loop {
            let mut connection = store.pools().get(Desk::Long).await?;
            let deadline = Desk::Long.deadline(store.options());
            let whole = async {
                let $tx = $crate::call::begin(&mut connection, settings.as_deref()).await?;
                let answer = $body?;
                $tx.commit().await?;
                Ok::<_, $crate::call::Failed>(answer)
            };
            match tokio::time::timeout(deadline, whole).await {
                Ok(Err($crate::call::Failed::Said(error))) if $crate::call::gives_way(&error, attempt) => {
                    $crate::call::pause(attempt).await;
                    attempt += 1;
                }
                Ok(answer) => break answer.map_err(StoreError::from),
                Err(_) => {
                    drop(deadpool_postgres::Object::take(connection));
                    break Err($crate::call::late(deadline));
                }
            }
        }
    }};
}
pub(crate) use transact;

/// Begins a transaction with these settings.
pub(crate) async fn begin<'c>(
    connection: &'c mut Object,
    settings: Option<&str>,
) -> Result<Transaction<'c>, tokio_postgres::Error> {
    let tx = connection.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?;
    if let Some(settings) = settings {
        tx.batch_execute(settings).await?;
    }
    Ok(tx)
}

/// Whether a transaction had to give way and may be tried once more.
pub(crate) fn gives_way(error: &tokio_postgres::Error, attempt: u32) -> bool {
    is_retryable(error) && attempt < TRIES
}

/// No answer in time: what happened is unknown.
pub(crate) fn late(deadline: Duration) -> StoreError {
    StoreError::Unavailable(format!("no answer within {} ms", deadline.as_millis()), None)
}

/// A short wait that differs between processes, longer from try to try.
pub(crate) async fn pause(attempt: u32) {
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    let jitter = Duration::from_micros(u64::from(nanos / 1_000 % 5_000));
    tokio::time::sleep(Duration::from_millis(2) * attempt + jitter).await;
}
