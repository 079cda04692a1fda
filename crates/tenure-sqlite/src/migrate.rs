//! The schema's steps: forward only, each applied once.
//!
//! A newer program may have applied more steps. Each row of `migration` has, as `min_binary`, the version that a program must
//! know to use the schema from then on: a step that only adds keeps the number of the step before.

use std::sync::atomic::Ordering;

use tenure_store::StoreError;
use tenure_store::record::Migration;

use crate::engine::Shared;
use crate::fault::{Result, corrupt};
use crate::tx::Tx;

/// Every step this program knows, in order; a step's version is its place, from 1.
const STEPS: &[(&str, &str)] = &[
    ("jobs_leases_and_journal", include_str!("../migrations/0001_jobs_leases_and_journal.sql")),
    ("worker_registry", include_str!("../migrations/0002_worker_registry.sql")),
    ("cache", include_str!("../migrations/0003_cache.sql")),
    ("schedules", include_str!("../migrations/0004_schedules.sql")),
    ("runs", include_str!("../migrations/0005_runs.sql")),
    ("access", include_str!("../migrations/0006_access.sql")),
    ("usage", include_str!("../migrations/0007_usage.sql")),
    ("webhooks", include_str!("../migrations/0008_webhooks.sql")),
    ("operations", include_str!("../migrations/0009_operations.sql")),
    ("pages", include_str!("../migrations/0010_pages.sql")),
    ("rollups", include_str!("../migrations/0011_rollups.sql")),
];

/// Versions of steps that only add: tables, or columns with a default, which older programs need not know.
const ADDITIVE: &[i32] = &[];

/// Applies the missing steps; answers which. Another process that does the same holds the write lock: one waits.
pub(crate) fn migrate(tx: &Tx<'_>) -> Result<Vec<Migration>> {
    let applied = usable_version(tx)?;
    let missing: Vec<Migration> = steps(applied).filter(|step| !step.applied).collect();
    for (step, (_, sql)) in missing.iter().zip(STEPS.get(applied..).unwrap_or_default()) {
        tx.conn().execute_batch(sql)?;
        let row = (step.version, step.name.as_str(), min_binary(step.version, ADDITIVE), tx.now.as_micros());
        let sql = "insert into migration (version, name, min_binary, applied_at) values (?1, ?2, ?3, ?4)";
        tx.conn().execute(sql, row)?;
    }
    Ok(missing.into_iter().map(|step| Migration { applied: true, ..step }).collect())
}

/// Every step this program knows, and whether this store has it, and behind them the steps of a newer program.
pub(crate) fn list_migrations(tx: &Tx<'_>) -> Result<Vec<Migration>> {
    let applied = usable_version(tx)?;
    let mut all: Vec<Migration> = steps(applied).collect();
    if applied > STEPS.len() {
        let newest = steps(applied).last().map(|step| step.version);
        let newer = "select version, name from migration where version > ?1 order by version";
        let mut newer = tx.conn().prepare(newer)?;
        let rows = newer
            .query_map([newest], |row| Ok(Migration { version: row.get(0)?, name: row.get(1)?, applied: true }))?;
        for row in rows {
            all.push(row?);
        }
    }
    Ok(all)
}

/// Refuses a store whose schema this program cannot use. Once it was right it stays right: steps only add.
pub(crate) fn check(tx: &Tx<'_>, shared: &Shared) -> std::result::Result<(), StoreError> {
    if shared.migrated.load(Ordering::Acquire) {
        return Ok(());
    }
    let applied = usable_version(tx)?;
    if applied < STEPS.len() {
        let known = STEPS.len();
        let text = format!("the store's schema is version {applied}, this program needs {known}: run `tenure migrate`");
        return Err(StoreError::Schema(text));
    }
    shared.set_migrated();
    Ok(())
}

fn steps(applied: usize) -> impl Iterator<Item = Migration> {
    (1..).zip(STEPS).map(move |(version, (name, _))| Migration {
        version,
        name: (*name).into(),
        applied: usize::try_from(version).is_ok_and(|version| version <= applied),
    })
}

/// The last step applied; 0 for an empty file. A store that this program is too old for is refused; a newer one is fine as
/// long as its newer steps only add.
fn usable_version(tx: &Tx<'_>) -> Result<usize> {
    let table = "select count(*) from sqlite_master where type = 'table' and name = 'migration'";
    if tx.conn().query_row(table, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(0);
    }
    let newest = "select coalesce(max(version), 0), coalesce(max(min_binary), 0) from migration";
    let (version, min_binary) =
        tx.conn().query_row(newest, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    let known = STEPS.len();
    if usize::try_from(min_binary).is_ok_and(|min_binary| min_binary > known) {
        let text = format!(
            "the store's schema is version {version}, which programs that know version {min_binary} can use, and this program \
             knows up to {known}: use a newer program"
        );
        return Err(StoreError::Schema(text).into());
    }
    usize::try_from(version).map_err(|_| corrupt(format!("migration.version is {version}")))
}

/// The version that a program must know to use the schema behind this step.
fn min_binary(version: i32, additive: &[i32]) -> i32 {
    (1..=version).rev().find(|step| !additive.contains(step)).unwrap_or_default()
}
