//! The journal and the schema's steps as JSON.

use serde::Serialize;
use serde_json::value::RawValue;
use tenure_core::journal::JournalRow;
use tenure_store::record::Migration;
use utoipa::ToSchema;

use super::raw;

/// One row of the journal.
#[derive(Debug, Serialize, ToSchema)]
pub struct JournalLine {
    id: i64,
    at: String,
    event: &'static str,
    worker: Option<i32>,
    actor: Option<String>,
    lease: Option<i64>,
    jobs: Vec<String>,
    reason: Option<String>,
    #[schema(value_type = Option<Value>)]
    details: Option<Box<RawValue>>,
}

/// One migration.
#[derive(Debug, Serialize, ToSchema)]
pub struct MigrationLine {
    version: i32,
    name: String,
    applied: bool,
}

impl From<&JournalRow> for JournalLine {
    fn from(row: &JournalRow) -> Self {
        Self {
            id: row.id,
            at: row.at.to_string(),
            event: row.event.as_str(),
            worker: row.worker.map(|worker| worker.0),
            actor: row.actor.clone(),
            lease: row.lease.map(|lease| lease.0),
            jobs: row.jobs.iter().map(ToString::to_string).collect(),
            reason: row.reason.clone(),
            details: raw(row.details.as_ref()),
        }
    }
}

impl From<&Migration> for MigrationLine {
    fn from(migration: &Migration) -> Self {
        Self { version: migration.version, name: migration.name.clone(), applied: migration.applied }
    }
}
