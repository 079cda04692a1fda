//! The store that is measured: a fresh one for every round, so that no round pays for the one before.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use tenure_cluster::postgres_server::{Options, Postgres};
use tenure_postgres::tokio_postgres::Client;
use tenure_postgres::{PgOptions, PgStore};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::{AdminStore, Store};

use crate::floor::{Floor, PgFloor, SqliteFloor};

/// Where to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// SQLite files in a temporary directory.
    Sqlite,
    /// Databases of our own on this server, dropped afterwards.
    Database(String),
    /// A private PostgreSQL cluster, removed afterwards.
    PostgresLocal,
}

/// Settings of the private cluster besides the defaults; commits wait for the disk.
const LOCAL_SETTINGS: [(&str, &str); 2] = [("shared_buffers", "1GB"), ("max_wal_size", "4GB")];

/// The place, made ready.
pub struct Arena {
    ground: Ground,
    made: Mutex<Vec<String>>,
    next: AtomicU32,
    /// Only kept: it ends with us.
    _server: Option<Postgres>,
}

enum Ground {
    Files(PathBuf),
    Server(String),
}

/// One fresh store, and the raw tables beside it.
pub struct Field {
    /// Tenure.
    pub store: Arc<dyn Store>,
    /// What it is held against.
    pub floor: Floor,
    /// How another process opens the same store: a URL or a path.
    pub address: String,
    sql: Option<Client>,
}

impl Arena {
    /// Starts what has to be started.
    pub async fn open(place: &Place) -> Result<Self> {
        let (ground, server) = match place {
            Place::Sqlite => {
                let dir = std::env::temp_dir().join(format!("tenure-bench-{}", std::process::id()));
                std::fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
                (Ground::Files(dir), None)
            }
            Place::Database(url) => (Ground::Server(url.clone()), None),
            Place::PostgresLocal => {
                let settings = LOCAL_SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
                let options = Options { fsync: true, settings, ..Options::default() };
                let server = Postgres::start(&options).context("no private PostgreSQL could be started")?;
                (Ground::Server(server.admin_url()), Some(server))
            }
        };
        Ok(Self { ground, made: Mutex::default(), next: AtomicU32::new(1), _server: server })
    }

    /// What a line calls the store.
    pub fn name(&self) -> &'static str {
        match self.ground {
            Ground::Files(_) => "sqlite",
            Ground::Server(_) => "postgres",
        }
    }

    /// The server's version, or SQLite's.
    pub async fn version(&self) -> Result<String> {
        match &self.ground {
            Ground::Files(_) => Ok(format!("SQLite {}", tenure_sqlite::rusqlite::version())),
            Ground::Server(url) => {
                let row = connect(url).await?.query_one("show server_version", &[]).await?;
                let version: &str = row.get(0);
                Ok(format!("PostgreSQL {}", version.split(' ').next().unwrap_or(version)))
            }
        }
    }

    /// A fresh store; the one before is gone.
    pub async fn field(&self) -> Result<Field> {
        let name = format!("tenure_bench_{}_{}", std::process::id(), self.next.fetch_add(1, Ordering::Relaxed));
        match &self.ground {
            Ground::Files(dir) => {
                for earlier in std::fs::read_dir(dir)? {
                    match std::fs::remove_file(earlier?.path()) {
                        // The store before removes its own log when it closes, which may be just now.
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                        removed => removed?,
                    }
                }
                let path = dir.join(&name).with_extension("db");
                let store = SqliteStore::open(&path, SqliteOptions::default())?;
                store.migrate().await?;
                let floor = Floor::Sqlite(SqliteFloor::open(&path.with_extension("floor"))?);
                Ok(Field { store: Arc::new(store), floor, address: path.display().to_string(), sql: None })
            }
            Ground::Server(admin) => {
                let server = connect(admin).await?;
                self.drop_made(&server).await?;
                server
                    .batch_execute(&format!("create database {name}"))
                    .await
                    .with_context(|| "a database of its own is needed: may this user create one?")?;
                self.made().push(name.clone());
                let url = with_database(admin, &name)?;
                let store = PgStore::connect(&url, PgOptions::default()).await?;
                store.migrate().await?;
                let floor = Floor::Postgres(PgFloor::open(&url).await?);
                Ok(Field { store: Arc::new(store), floor, sql: Some(connect(&url).await?), address: url })
            }
        }
    }

    /// Removes everything that was made here.
    pub async fn close(self) -> Result<()> {
        match &self.ground {
            Ground::Files(dir) => Ok(std::fs::remove_dir_all(dir)?),
            Ground::Server(url) => self.drop_made(&connect(url).await?).await,
        }
    }

    async fn drop_made(&self, server: &Client) -> Result<()> {
        let made: Vec<String> = self.made().drain(..).collect();
        for name in made {
            server.batch_execute(&format!("drop database if exists {name} with (force)")).await?;
        }
        Ok(())
    }

    fn made(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Field {
    /// After filling: statistics, a clean table and an empty log for everybody alike.
    pub async fn settle(&self) -> Result<()> {
        if let Some(sql) = &self.sql {
            sql.batch_execute("vacuum analyze").await?;
            sql.batch_execute("checkpoint").await?;
        }
        Ok(())
    }

    /// Gates, each with a rule of its own, that no job passes.
    pub async fn add_idle_gates(&self, gates: u32) -> Result<()> {
        match &self.sql {
            Some(sql) => {
                let rows = format!("from generate_series(1, {gates}) n");
                sql.batch_execute(&format!(
                    "insert into tenure.gate (name) select 'idle:' || n {rows};
                     insert into tenure.gate_rule (pattern, concurrency) select 'idle:' || n, 2 {rows}"
                ))
                .await?;
            }
            None => {
                let rows =
                    format!("with recursive c (n) as (select 1 union all select n + 1 from c where n < {gates})");
                let file = tenure_sqlite::rusqlite::Connection::open(&self.address)?;
                file.execute_batch(&format!(
                    "begin; insert into gate (name) {rows} select 'idle:' || n from c;
                     insert into gate_rule (pattern, concurrency, weight) {rows} select 'idle:' || n, 2, 1 from c; commit"
                ))?;
            }
        }
        Ok(())
    }

    /// Bytes of write-ahead log so far, where they can be told.
    pub async fn wal(&self) -> Result<Option<u64>> {
        let Some(sql) = &self.sql else { return Ok(None) };
        let row = sql.query_one("select (pg_current_wal_lsn() - '0/0')::bigint", &[]).await?;
        Ok(Some(u64::try_from(row.get::<_, i64>(0))?))
    }

    /// A snapshot that stays open until it is dropped: nothing deleted since can be cleaned away.
    pub async fn pin(&self) -> Result<Option<Client>> {
        if self.sql.is_none() {
            return Ok(None);
        }
        let client = connect(&self.address).await?;
        client.batch_execute("begin isolation level repeatable read; select count(*) from tenure.job").await?;
        Ok(Some(client))
    }
}

/// A connection of our own.
pub(crate) async fn connect(url: &str) -> Result<Client> {
    tenure_postgres::tx::connect(url).await.map_err(Into::into)
}

/// The same server, another database.
fn with_database(url: &str, database: &str) -> Result<String> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| anyhow!("a URL begins with postgres://"))?;
    let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
    let server = rest.split('/').next().unwrap_or(rest);
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    Ok(format!("{scheme}://{server}/{database}{query}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_of_a_url_is_replaced_and_nothing_else() {
        let with = |url| with_database(url, "b").expect("a URL");
        assert_eq!(with("postgres://u:p@h:1/a?sslmode=require"), "postgres://u:p@h:1/b?sslmode=require");
        assert_eq!(with("postgres://h"), "postgres://h/b");
    }
}
