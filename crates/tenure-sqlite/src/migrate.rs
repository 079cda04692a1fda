//! The schema's steps: forward only, each applied once.

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

/// Applies the missing steps; answers which. Another process that does the same holds the write lock: one waits.
pub(crate) fn migrate(tx: &Tx<'_>) -> Result<Vec<Migration>> {
    let applied = version(tx)?;
    refuse_newer(applied)?;
    let missing: Vec<Migration> = steps(applied).filter(|step| !step.applied).collect();
    for (step, (_, sql)) in missing.iter().zip(&STEPS[applied..]) {
        tx.conn().execute_batch(sql)?;
        let row = (step.version, step.name.as_str(), tx.now.as_micros());
        tx.conn().execute("insert into migration (version, name, applied_at) values (?1, ?2, ?3)", row)?;
    }
    Ok(missing.into_iter().map(|step| Migration { applied: true, ..step }).collect())
}

/// Every step this program knows, and whether this store has it.
pub(crate) fn list_migrations(tx: &Tx<'_>) -> Result<Vec<Migration>> {
    let applied = version(tx)?;
    refuse_newer(applied)?;
    Ok(steps(applied).collect())
}

/// Refuses a store whose schema is not this program's. Once it was right it stays right: steps only add.
pub(crate) fn check(tx: &Tx<'_>, shared: &Shared) -> std::result::Result<(), StoreError> {
    if shared.migrated.load(Ordering::Acquire) {
        return Ok(());
    }
    let applied = version(tx)?;
    refuse_newer(applied)?;
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

/// The last step applied; 0 for an empty file.
fn version(tx: &Tx<'_>) -> Result<usize> {
    let table = "select count(*) from sqlite_master where type = 'table' and name = 'migration'";
    if tx.conn().query_row(table, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(0);
    }
    let newest = "select coalesce(max(version), 0) from migration";
    let newest: i64 = tx.conn().query_row(newest, [], |row| row.get(0))?;
    usize::try_from(newest).map_err(|_| corrupt(format!("migration.version is {newest}")))
}

fn refuse_newer(applied: usize) -> Result<()> {
    let known = STEPS.len();
    if applied <= known {
        return Ok(());
    }
    let text = format!("the store's schema is version {applied}, this program knows {known}: use a newer program");
    Err(StoreError::Schema(text).into())
}
