//! [`Database`]: jobs and your own tables in one database of either kind, by the same code.
//!
//! A product that runs on one file at home and on Postgres at work would write each transaction twice: one driver blocks,
//! the other has futures. Here a transaction is a closure that runs where it may block, on the writer's thread of the
//! embedded store or on a thread for blocking work, and both take the same statements.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use tenure::{Attempt, Client, Completed, Database, Fail, Job, State, StoreError, Worker, row};
//!
//! #[derive(Serialize, Deserialize, Job)]
//! #[job(kind = "invoice.send")]
//! struct SendInvoice { order: i64 }
//!
//! async fn send(job: SendInvoice, State(database): State<Database>, attempt: Attempt) -> Result<Completed, Fail> {
//!     // The slow part first, while no transaction is open.
//!     database
//!         .transaction(move |tx| {
//!             tx.execute("insert into sent (invoice, at) values ($1, $2)", row![job.order, tx.now()?])?;
//!             attempt.complete_in(tx) // the row and the end of the job, or neither
//!         })
//!         .await
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let database = Database::open(":memory:").await?; // or a file, or postgres://…
//! tenure::migrate(&database).await?;
//! database.make_tables("create table if not exists sent (invoice bigint not null, at timestamptz not null)").await?;
//!
//! Client::new(&database).enqueue(SendInvoice { order: 42 }).await?;
//! let worker = Worker::builder(&database).state(database.clone()).handle(send).build()?;
//! worker.run_until_idle().await?;
//!
//! let sent = database.query("select invoice from sent", row![]).await?;
//! assert_eq!(sent[0].get::<i64>("invoice")?, 42);
//! # Ok(()) }
//! ```
//!
//! # One text for both
//! Parameters are `$1`, `$2` …, and tables have columns of these types; SQLite takes the names as they are:
//!
//! | in a table | in Rust | on SQLite |
//! |---|---|---|
//! | `bigint` | `i64`, `u32` … | integer |
//! | `text` | `String`, `&str`, [`JobId`](crate::JobId) | text |
//! | `boolean` | `bool` | 0 or 1 |
//! | `timestamptz` | [`Timestamp`](crate::Timestamp) | microseconds since 1970 |
//! | `jsonb` | [`Json`](crate::core::Json) | text |
//! | `bytea` | `Vec<u8>` | blob |
//! | `double precision` | `f64` | real |
//!
//! Both know `create table if not exists`, `unique`, `check`, `references`, `on conflict … do update … where`, `returning`,
//! common table expressions and window functions. What they do not share: `now()` (take [`Tx::now`], which a test can
//! move), `uuid` (take `text`), arrays, `ilike`, and sums, which Postgres makes `numeric`: `cast(sum(cents) as bigint)`.

mod tx;

use std::path::Path;
use std::sync::Arc;

use tenure_core::Invalid;
use tenure_postgres::{PgOptions, PgStore};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::sink::Row;
use tenure_store::table::Record;
use tenure_store::{IntoStore, Store, StoreError};

pub use tx::Tx;

/// A database in which jobs and your own tables live. Clones share its connections.
#[derive(Clone)]
pub struct Database(Kind);

#[derive(Clone)]
enum Kind {
    Postgres(PgStore),
    Sqlite(SqliteStore),
}

impl Database {
    /// Opens `postgres://…`, a file (created when it is missing), or `:memory:`. The schemas are brought up by
    /// [`migrate`](crate::migrate) and [`make_tables`](Self::make_tables).
    pub async fn open(place: &str) -> Result<Self, StoreError> {
        if place.starts_with("postgres://") || place.starts_with("postgresql://") {
            return Ok(PgStore::connect(place, PgOptions::default()).await?.into());
        }
        if place.contains("://") {
            let limit = "a database is postgres://…, the path of a file, or :memory:";
            return Err(Invalid::new("database", place.split("://").next().unwrap_or_default(), limit).into());
        }
        match place {
            ":memory:" => Ok(SqliteStore::in_memory(SqliteOptions::default())?.into()),
            path => Ok(SqliteStore::open(Path::new(path), SqliteOptions::default())?.into()),
        }
    }

    /// Whether it is Postgres: for the rare statement that differs.
    pub fn is_postgres(&self) -> bool {
        matches!(self.0, Kind::Postgres(_))
    }

    /// Runs `work` in one transaction: all of it is kept when `work` answers `Ok`, nothing when it answers `Err` or panics
    /// (the panic goes on in the caller). It is run to its end also when its caller stops waiting.
    ///
    /// Talk to others before, not inside: on SQLite everybody who writes waits for `work`, on Postgres whoever wants the
    /// same rows. An error of a statement that `work` keeps to itself ends the transaction all the same: what follows it
    /// is refused with the same words, nothing is kept, and that is the answer.
    pub async fn transaction<T, E, F>(&self, work: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
    {
        match &self.0 {
            Kind::Postgres(store) => tx::on_postgres(store, work).await,
            Kind::Sqlite(store) => store.transaction(move |tx| tx::checked(&Tx::sqlite(tx), work)).await,
        }
    }

    /// Runs one statement in a transaction of its own; answers how many rows it changed.
    pub async fn execute(&self, sql: &'static str, params: Row) -> Result<u64, StoreError> {
        self.transaction(move |tx| tx.execute(sql, params)).await
    }

    /// Runs one statement that only reads, beside whoever writes. What writes and answers rows (`returning`) belongs into a
    /// [`transaction`](Self::transaction).
    pub async fn query(&self, sql: &'static str, params: Row) -> Result<Vec<Record>, StoreError> {
        match &self.0 {
            Kind::Postgres(store) => store.own().await?.query(sql, &params).await,
            Kind::Sqlite(store) => store.query(sql, params).await,
        }
    }

    /// Makes your tables: statements without parameters, all or none, in a form that may be run again
    /// (`create table if not exists`). Processes that start at once do it one after the other.
    pub async fn make_tables(&self, sql: &'static str) -> Result<(), StoreError> {
        self.transaction(move |tx| tx.make_tables(sql)).await
    }
}

impl From<PgStore> for Database {
    fn from(store: PgStore) -> Self {
        Self(Kind::Postgres(store))
    }
}

impl From<SqliteStore> for Database {
    fn from(store: SqliteStore) -> Self {
        Self(Kind::Sqlite(store))
    }
}

impl IntoStore for &Database {
    fn into_store(self) -> Arc<dyn Store> {
        match &self.0 {
            Kind::Postgres(store) => store.into_store(),
            Kind::Sqlite(store) => store.into_store(),
        }
    }
}

impl IntoStore for Database {
    fn into_store(self) -> Arc<dyn Store> {
        (&self).into_store()
    }
}
