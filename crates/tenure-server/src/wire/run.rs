//! Runs and partitions as JSON.

use serde::Serialize;
use serde_json::value::RawValue;
use tenure_core::Json;
use tenure_store::run::{PartitionRecord, RunRecord};
use utoipa::ToSchema;

use super::{date, raw};

/// One run.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunLine {
    id: String,
    tenant: String,
    owner: Option<String>,
    source: Option<String>,
    state: &'static str,
    sealed: bool,
    fail_fast: bool,
    tolerated: u32,
    /// Whether its deadline has ended it.
    expired: bool,
    /// Its members, and how they ended.
    total: u64,
    done: u64,
    failed: u64,
    canceled: u64,
    left: u64,
    rows: u64,
    /// The job that waits for all the others.
    consolidate: Option<String>,
    /// none, waiting, skipped, open, or how it ended.
    consolidate_state: &'static str,
    created_at: String,
    started_at: Option<String>,
    finished_at: Option<String>,
    deadline: Option<String>,
    #[schema(value_type = Option<Value>)]
    last_error: Option<Box<RawValue>>,
}

/// One run with its first partitions.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunDocument {
    #[serde(flatten)]
    line: RunLine,
    partitions: Vec<PartitionLine>,
}

/// One partition.
#[derive(Debug, Serialize, ToSchema)]
pub struct PartitionLine {
    run: String,
    name: String,
    state: &'static str,
    /// Where its next page begins; where it ended, when it has.
    offset: u64,
    /// Rows of a full page.
    limit: u32,
    rows: u64,
    /// Null when nobody knows.
    expected: Option<u64>,
    job: String,
    created_at: String,
    started_at: Option<String>,
    moved_at: String,
    #[schema(value_type = Option<Value>)]
    last_error: Option<Box<RawValue>>,
}

impl From<&RunRecord> for RunLine {
    fn from(record: &RunRecord) -> Self {
        let run = &record.run;
        Self {
            id: record.id.to_string(),
            tenant: record.tenant.to_string(),
            owner: record.owner.clone(),
            source: record.source.clone(),
            state: run.state.as_str(),
            sealed: run.sealed,
            fail_fast: run.fail_fast,
            tolerated: run.tolerated,
            expired: run.expired,
            total: run.total,
            done: run.done,
            failed: run.failed,
            canceled: run.canceled,
            left: run.left(),
            rows: record.rows,
            consolidate: record.consolidate.map(|job| job.to_string()),
            consolidate_state: run.fan.as_str(),
            created_at: record.created_at.to_string(),
            started_at: date(run.started_at),
            finished_at: date(run.finished_at),
            deadline: date(record.deadline),
            last_error: raw(run.last_error.as_deref().map(Json::from_store).as_ref()),
        }
    }
}

impl RunDocument {
    /// A run and these of its partitions.
    pub fn new(record: &RunRecord, partitions: &[PartitionRecord]) -> Self {
        Self { line: RunLine::from(record), partitions: partitions.iter().map(PartitionLine::from).collect() }
    }
}

impl From<&PartitionRecord> for PartitionLine {
    fn from(partition: &PartitionRecord) -> Self {
        Self {
            run: partition.run.to_string(),
            name: partition.name.to_string(),
            state: partition.state.as_str(),
            offset: partition.next_offset,
            limit: partition.limit,
            rows: partition.rows,
            expected: partition.expected,
            job: partition.job.to_string(),
            created_at: partition.created_at.to_string(),
            started_at: date(partition.started_at),
            moved_at: partition.moved_at.to_string(),
            last_error: raw(partition.last_error.as_ref()),
        }
    }
}
