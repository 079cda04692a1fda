//! The verbs of the journal.

use async_trait::async_trait;
use tenure_core::JobId;
use tenure_core::journal::JournalRow;
use tenure_core::seal::Seal;

use crate::error::StoreError;
use crate::journal::{JournalFilter, JournalFound, JournalPage, JournalTraces};
use crate::record::Sight;

/// The record of every transition, and its seals.
#[async_trait]
pub trait JournalStore: Send + Sync {
    /// Seals what became visible since the last seal; `None` when there is nothing.
    async fn seal_journal(&self) -> Result<Option<Seal>, StoreError>;

    /// Seals after number `after`, in order, at most `limit`.
    async fn list_seals(&self, after: i64, limit: u32) -> Result<Vec<Seal>, StoreError>;

    /// Journal rows of one seal or of the unsealed tail, in id order.
    async fn read_journal(&self, page: JournalPage) -> Result<Vec<JournalRow>, StoreError>;

    /// Ids of journal rows from `from` on, in order, at most `limit`: of every row in the table, whatever its other columns
    /// say.
    async fn list_journal_ids(&self, from: i64, limit: u32) -> Result<Vec<i64>, StoreError>;

    /// Traces that rows of the journal leave outside of it.
    async fn journal_traces(&self) -> Result<JournalTraces, StoreError>;

    /// What happened to a job, in id order: the newest [`JOB_ROWS_MAX`](crate::journal::JOB_ROWS_MAX) rows of the leases
    /// that held it and of acts on it alone. Each names no other job; a tenant is not told who wrote it and why.
    /// `NotFound` for an unknown id and for a job out of sight alike.
    async fn list_job_rows(&self, sight: &Sight, job: JobId) -> Result<Vec<JournalRow>, StoreError>;

    /// Rows that match, newest first. Looks at no more than [`LOOKED_AT_MAX`](crate::journal::LOOKED_AT_MAX) rows, and says
    /// where to go on. Acts are found among any number of others' rows.
    async fn list_journal(&self, filter: &JournalFilter) -> Result<JournalFound, StoreError>;
}
