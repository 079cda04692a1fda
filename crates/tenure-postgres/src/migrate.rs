//! Bringing the schema up, safely, on a live database.
//!
//! Migrations are numbered, forward only, one transaction each. Two starters at once: one waits on an advisory lock and
//! then finds the work done. A migration that does not get its table locks within three seconds lets everybody pass and
//! tries again. A file that was changed after it was applied is refused, and so is a schema newer than this program.

use std::collections::HashMap;
use std::time::Duration;

use deadpool_postgres::Object;
use tenure_store::StoreError;
use tenure_store::record::Migration;
use tokio_postgres::IsolationLevel;
use tokio_postgres::types::Type;

use crate::call::Failed;
use crate::error::{is_locked_out, translate};
use crate::peer::Peer;
use crate::pool::Desk;
use crate::statement::Statement;
use crate::store::PgStore;
use crate::value::get;

macro_rules! migrations {
    ($($version:literal $name:literal)*) => {
        &[$(Step { version: $version, name: $name, sql: include_str!(concat!("migrations/", $name, ".sql")) }),*]
    };
}

/// One step of the schema.
#[derive(Debug, Clone, Copy)]
pub struct Step {
    /// 1, 2, 3 …
    pub version: i32,
    /// The file's name without its ending.
    pub name: &'static str,
    /// Its text.
    pub sql: &'static str,
}

/// Every step this program knows, in order.
pub const STEPS: &[Step] = migrations! {
    1 "0001_tables"
    2 "0002_guards"
    3 "0003_views"
    4 "0004_enqueue"
    5 "0005_sql_api"
    6 "0006_operate"
    7 "0007_lease"
    8 "0008_worker_registry"
    9 "0009_gates"
    10 "0010_cache"
    11 "0011_schedules"
    12 "0012_runs"
    13 "0013_access"
    14 "0014_usage"
    15 "0015_webhooks"
    16 "0016_own_views"
    17 "0017_operations"
    18 "0018_pages"
    19 "0019_rollups"
    20 "0020_home"
};

/// The key of the advisory lock that makes one starter wait for the other.
pub(crate) const MIGRATE_LOCK: i64 = 0x7e97_0001;
/// How long a migration waits for its table locks before it lets others pass.
pub(crate) const LOCK_WAIT_MS: u32 = 3_000;
/// How often it tries.
pub(crate) const TRIES: u32 = 20;

const APPLIED: Statement = Statement {
    name: "applied_migrations",
    sql: "select version, name, checksum from tenure.migration order by version",
};
const PREPARE: &str = "
    create schema if not exists tenure;
    create table if not exists tenure.migration (
      version int primary key,
      name text not null,
      checksum text not null,
      applied_at timestamptz not null default clock_timestamp()
    )";
const RECORD: &str = "insert into tenure.migration (version, name, checksum) values ($1, $2, md5($3))";

/// Applies what is missing.
pub(crate) async fn up(store: &PgStore) -> Result<Vec<Migration>, StoreError> {
    let mut done = Vec::new();
    for step in STEPS {
        let mut connection = store.pools().get(Desk::Long).await?;
        for attempt in 1.. {
            match apply(&mut connection, step).await {
                Ok(true) => done.push(Migration { version: step.version, name: step.name.to_owned(), applied: true }),
                Ok(false) => {}
                Err(Stopped::Said(error)) if is_locked_out(&error) && attempt < TRIES => {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    continue;
                }
                Err(Stopped::Said(error)) => return Err(explain(step, error)),
                Err(Stopped::Refused(refused)) => return Err(refused),
            }
            break;
        }
    }
    if !done.is_empty() {
        store.bind_again().await?;
    }
    Ok(done)
}

/// Every step, and whether it is applied.
pub(crate) async fn list(store: &PgStore) -> Result<Vec<Migration>, StoreError> {
    let applied = match store.call(Desk::Long, APPLIED, &[]).await {
        Err(StoreError::Schema(_)) => Vec::new(),
        rows => rows?,
    };
    let applied: Vec<i32> = applied.iter().map(|row| get(row, "version")).collect::<Result<_, _>>()?;
    let known = |step: &Step| Migration {
        version: step.version,
        name: step.name.to_owned(),
        applied: applied.contains(&step.version),
    };
    Ok(STEPS.iter().map(known).collect())
}

impl PgStore {
    /// Looks how the second wall stands. Refuses a schema newer than this program, and a database restored from another cluster: transaction ids start
    /// anew there, and sealing would silently miss rows.
    pub(crate) async fn check_home(&self) -> Result<(), StoreError> {
        const LOOK: Statement = Statement {
            name: "check_home",
            sql: "select (select max(version) from tenure.migration) as version, h.system_identifier as home, c.system_identifier as here
                  from pg_control_system() c left join lateral (select system_identifier from tenure.home order by era desc limit 1) h on true",
        };
        let rows = match self.try_call(Desk::Long, LOOK, &[]).await {
            Ok(rows) => rows,
            Err(Failed::Said(error)) => match translate(error) {
                // Nothing there yet: `migrate` will make it.
                StoreError::Schema(_) => return Ok(()),
                error => return Err(error),
            },
            Err(Failed::Other(error)) => return Err(error),
        };
        let Some(row) = rows.first() else { return Ok(()) };
        let known = newest();
        if let Some(version) = get::<Option<i32>>(row, "version")?.filter(|version| *version > known) {
            return Err(newer(version));
        }
        match (get::<Option<i64>>(row, "home")?, get::<i64>(row, "here")?) {
            (Some(home), here) if home != here => {
                return Err(StoreError::Schema(format!(
                    "this database comes from another cluster (system identifier {home}, here it is {here}): \
                     run `tenure migrate rehome` once to begin a new era of its journal"
                )));
            }
            _ => {}
        }
        self.set_wall(self.look_at_wall().await?);
        Ok(())
    }

    /// Begins a new era of the journal in the cluster the database lives in now: transaction ids that are stored are reset, and
    /// numbers leap over all that could have been drawn (`tenure.positions()`). With `leap` also where the cluster seems to be
    /// the same: for a clone, and for a backup that kept its timeline. `Conflict` at home without `leap`.
    ///
    /// There is no deadline: tables are read as a whole for their largest numbers.
    pub async fn rehome(url: &str, leap: bool) -> Result<(), StoreError> {
        let (client, connection) = {
            let target = crate::tls::target(url)?;
            target.config.connect(target.tls).await.map_err(|error| Peer::of(&target.config).explain(&error))?
        };
        let driver = tokio::spawn(connection);
        let moved = client.query_typed("select tenure.rehome($1)", &[(&leap, Type::BOOL)]).await;
        drop(client);
        // The connection ends with its client; its last message is of no interest.
        let _ended = driver.await;
        moved.map(drop).map_err(translate)
    }
}

enum Stopped {
    Said(tokio_postgres::Error),
    Refused(StoreError),
}

impl From<tokio_postgres::Error> for Stopped {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Said(error)
    }
}

/// Applies one step; `false` when it was there already.
async fn apply(connection: &mut Object, step: &Step) -> Result<bool, Stopped> {
    // What another starter has just done must be seen once its lock is had.
    let tx = connection.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?;
    tx.query_typed("select pg_advisory_xact_lock($1)", &[(&MIGRATE_LOCK, Type::INT8)]).await?;
    tx.batch_execute(PREPARE).await?;
    let rows = tx
        .query_typed(
            "select version, name, checksum, md5($1) as ours from tenure.migration",
            &[(&step.sql, Type::TEXT)],
        )
        .await?;
    let mut applied = HashMap::new();
    for row in &rows {
        let read = || Ok((get::<i32>(row, "version")?, (get::<String>(row, "checksum")?, get::<String>(row, "ours")?)));
        let (version, checksums) = read().map_err(Stopped::Refused)?;
        applied.insert(version, checksums);
    }
    if let Some(version) = applied.keys().max().filter(|version| **version > newest()) {
        return Err(Stopped::Refused(newer(*version)));
    }
    if let Some((theirs, ours)) = applied.get(&step.version) {
        if theirs == ours {
            return Ok(false);
        }
        return Err(Stopped::Refused(StoreError::Schema(format!(
            "migration {} was changed after it was applied (checksum {theirs} there, {ours} here): use the program that applied it",
            step.name
        ))));
    }
    tx.batch_execute(&format!("set local lock_timeout = {LOCK_WAIT_MS}; set local client_min_messages = warning"))
        .await?;
    tx.batch_execute(step.sql).await?;
    tx.query_typed(RECORD, &[(&step.version, Type::INT4), (&step.name, Type::TEXT), (&step.sql, Type::TEXT)]).await?;
    tx.commit().await?;
    Ok(true)
}

/// The version that this program brings a schema to.
fn newest() -> i32 {
    STEPS.last().map_or(0, |step| step.version)
}

fn newer(version: i32) -> StoreError {
    let known = newest();
    StoreError::Schema(format!(
        "the schema is at version {version} and this program knows up to {known}: use a newer program"
    ))
}

fn explain(step: &Step, error: tokio_postgres::Error) -> StoreError {
    match translate(error) {
        StoreError::Unavailable(what, source) => {
            StoreError::Unavailable(format!("migration {}: {what}", step.name), source)
        }
        other => StoreError::Schema(format!("migration {} failed: {other}", step.name)),
    }
}
