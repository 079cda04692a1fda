//! Jobs and the journal, passed on: nothing goes wrong with them.

use async_trait::async_trait;
use tenure_core::journal::JournalRow;
use tenure_core::seal::Seal;
use tenure_core::{JobId, NewJob};
use tenure_store::enqueue::Enqueued;
use tenure_store::journal::{JournalFilter, JournalFound, JournalPage, JournalTraces};
use tenure_store::operate::{CancelJob, Canceled, HastenJob, OpenJob, RequeueJob};
use tenure_store::record::{JobFilter, JobRecord, JobSummary, JobsFound, Sight};
use tenure_store::{JobStore, JournalStore, StoreError};

use super::Flaky;

#[async_trait]
impl JobStore for Flaky {
    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError> {
        self.inner.enqueue_jobs(jobs).await
    }

    async fn show_job(&self, sight: &Sight, job: JobId) -> Result<JobRecord, StoreError> {
        self.inner.show_job(sight, job).await
    }

    async fn list_jobs(&self, filter: &JobFilter) -> Result<Vec<JobSummary>, StoreError> {
        self.inner.list_jobs(filter).await
    }

    async fn search_jobs(&self, filter: &JobFilter, text: &str) -> Result<JobsFound, StoreError> {
        self.inner.search_jobs(filter, text).await
    }

    async fn cancel_job(&self, request: CancelJob) -> Result<Canceled, StoreError> {
        self.inner.cancel_job(request).await
    }

    async fn requeue_job(&self, request: RequeueJob) -> Result<(), StoreError> {
        self.inner.requeue_job(request).await
    }

    async fn open_job(&self, request: OpenJob) -> Result<(), StoreError> {
        self.inner.open_job(request).await
    }

    async fn hasten_job(&self, request: HastenJob) -> Result<bool, StoreError> {
        self.inner.hasten_job(request).await
    }
}

#[async_trait]
impl JournalStore for Flaky {
    async fn seal_journal(&self) -> Result<Option<Seal>, StoreError> {
        self.inner.seal_journal().await
    }

    async fn list_seals(&self, after: i64, limit: u32) -> Result<Vec<Seal>, StoreError> {
        self.inner.list_seals(after, limit).await
    }

    async fn read_journal(&self, page: JournalPage) -> Result<Vec<JournalRow>, StoreError> {
        self.inner.read_journal(page).await
    }

    async fn list_journal_ids(&self, from: i64, limit: u32) -> Result<Vec<i64>, StoreError> {
        self.inner.list_journal_ids(from, limit).await
    }

    async fn journal_traces(&self) -> Result<JournalTraces, StoreError> {
        self.inner.journal_traces().await
    }

    async fn list_job_rows(&self, sight: &Sight, job: JobId) -> Result<Vec<JournalRow>, StoreError> {
        self.inner.list_job_rows(sight, job).await
    }

    async fn list_journal(&self, filter: &JournalFilter) -> Result<JournalFound, StoreError> {
        self.inner.list_journal(filter).await
    }
}
