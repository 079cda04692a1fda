//! Bringing the schema up, safely, on a live database.
//!
//! Migrations are numbered, forward only, one transaction each. Two starters at once: one waits on an advisory lock and
//! then finds the work done. A migration that does not get its table locks within three seconds lets everybody pass and
//! tries again. A file that was changed after it was applied is refused.
//!
//! A newer program may have applied more steps. Each row of `tenure.migration` has, as `min_binary`, the version that a program
//! must know to use the schema from then on: a step that only adds keeps the number of the step before. So an older program
//! goes on beside a newer one, and a release can be rolled back, until a step changes what the older one uses.

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

/// Versions of steps that only add: tables, or columns with a default, which older programs need not know.
const ADDITIVE: &[i32] = &[];

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
      min_binary int not null,
      applied_at timestamptz not null default clock_timestamp()
    )";
const RECORD: &str = "insert into tenure.migration (version, name, checksum, min_binary) values ($1, $2, md5($3), $4)";

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

/// Every step that this program knows, and whether it is applied, and behind them the steps of a newer program.
pub(crate) async fn list(store: &PgStore) -> Result<Vec<Migration>, StoreError> {
    let rows = match store.call(Desk::Long, APPLIED, &[]).await {
        Err(StoreError::Schema(_)) => Vec::new(),
        rows => rows?,
    };
    let read = |row| Ok(Migration { version: get(row, "version")?, name: get(row, "name")?, applied: true });
    let applied: Vec<Migration> = rows.iter().map(read).collect::<Result<_, StoreError>>()?;
    let known = |step: &Step| Migration {
        version: step.version,
        name: step.name.to_owned(),
        applied: applied.iter().any(|row| row.version == step.version),
    };
    let mut all: Vec<Migration> = STEPS.iter().map(known).collect();
    all.extend(applied.into_iter().filter(|row| row.version > newest()));
    Ok(all)
}

impl PgStore {
    /// Looks how the second wall stands. Refuses a schema that this program is too old for, and a database restored from another cluster: transaction ids start
    /// anew there, and sealing would silently miss rows.
    pub(crate) async fn check_home(&self) -> Result<(), StoreError> {
        const LOOK: Statement = Statement {
            name: "check_home",
            sql: "select m.version, m.min_binary, h.system_identifier as home, c.system_identifier as here
                  from pg_control_system() c
                  cross join (select max(version) as version, max(min_binary) as min_binary from tenure.migration) m
                  left join lateral (select system_identifier from tenure.home order by era desc limit 1) h on true",
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
        refuse_newer(get(row, "version")?, get(row, "min_binary")?)?;
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
            "select version, min_binary, checksum, md5($1) as ours from tenure.migration",
            &[(&step.sql, Type::TEXT)],
        )
        .await?;
    let mut applied = HashMap::new();
    let mut min_binaries = Vec::new();
    for row in &rows {
        let read = || Ok((get::<i32>(row, "version")?, (get::<String>(row, "checksum")?, get::<String>(row, "ours")?)));
        let (version, checksums) = read().map_err(Stopped::Refused)?;
        applied.insert(version, checksums);
        min_binaries.push(get::<i32>(row, "min_binary").map_err(Stopped::Refused)?);
    }
    refuse_newer(applied.keys().max().copied(), min_binaries.into_iter().max()).map_err(Stopped::Refused)?;
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
    let min_binary = min_binary(step.version, ADDITIVE);
    tx.query_typed(
        RECORD,
        &[(&step.version, Type::INT4), (&step.name, Type::TEXT), (&step.sql, Type::TEXT), (&min_binary, Type::INT4)],
    )
    .await?;
    tx.commit().await?;
    Ok(true)
}

/// The version that this program brings a schema to.
fn newest() -> i32 {
    STEPS.last().map_or(0, |step| step.version)
}

/// The version that a program must know to use the schema behind this step.
fn min_binary(version: i32, additive: &[i32]) -> i32 {
    (1..=version).rev().find(|step| !additive.contains(step)).unwrap_or_default()
}

/// Refuses a schema that this program is too old for. A newer one is fine as long as its newer steps only add.
fn refuse_newer(version: Option<i32>, min_binary: Option<i32>) -> Result<(), StoreError> {
    let known = newest();
    match (version, min_binary) {
        (Some(version), Some(min_binary)) if min_binary > known => Err(StoreError::Schema(format!(
            "the schema is at version {version}, which programs that know version {min_binary} can use, and this program knows \
             up to {known}: use a newer program"
        ))),
        _ => Ok(()),
    }
}

fn explain(step: &Step, error: tokio_postgres::Error) -> StoreError {
    match translate(error) {
        StoreError::Unavailable(what, source) => {
            StoreError::Unavailable(format!("migration {}: {what}", step.name), source)
        }
        other => StoreError::Schema(format!("migration {} failed: {other}", step.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_that_only_adds_keeps_the_number_of_the_step_before() {
        for (version, additive, expected) in
            [(3, &[][..], 3), (3, &[3], 2), (4, &[3, 4], 2), (4, &[3], 4), (1, &[1], 0)]
        {
            assert_eq!(min_binary(version, additive), expected, "{version} {additive:?}");
        }
        assert!(ADDITIVE.iter().all(|version| STEPS.iter().any(|step| step.version == *version)));
    }
}
