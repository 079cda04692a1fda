//! The record of every transition, and its seals.
//!
//! Sealing by the oldest running transaction would stop while any is open in any database of the cluster; ordering by
//! transaction id would put a late requeue before the claim it followed. The transaction that seals writes no journal rows.

mod list;
mod seal;

use async_trait::async_trait;
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::seal::{Hash, Seal};
use tenure_core::{JobId, Json, LeaseNo, WorkerId};
use tenure_store::journal::{JOB_ROWS_MAX, JournalFilter, JournalFound, JournalPage, JournalTraces, row_of_job};
use tenure_store::record::Sight;
use tenure_store::{JournalStore, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use self::seal::{LOOK, Last, Window};

use crate::call::{Param, begin, late};
use crate::error::translate;
use crate::jobs::tenant;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{get, job_ids, time};
use crate::wall::Seen;

/// Ids of every row, in order.
const LIST_JOURNAL_IDS: Statement =
    Statement { name: "list_journal_ids", sql: "select id from tenure.journal where id >= $1 order by id limit $2" };

/// Whether an attempt is stored.
const JOURNAL_TRACES: Statement =
    Statement { name: "journal_traces", sql: "select exists (select from tenure.attempt) as attempts" };

#[async_trait]
impl JournalStore for PgStore {
    async fn seal_journal(&self) -> Result<Option<Seal>, StoreError> {
        let mut connection = self.pools().get(Desk::Long).await?;
        let deadline = Desk::Long.deadline(self.options());
        let settings = self.local_settings(Desk::Long);
        let sealing = async {
            let tx = begin(&mut connection, settings.as_deref()).await.map_err(translate)?;
            let sealed = self.seal(&tx).await?;
            tx.commit().await.map_err(translate)?;
            Ok(sealed)
        };
        match tokio::time::timeout(deadline, sealing).await {
            Ok(sealed) => sealed,
            Err(_) => {
                drop(deadpool_postgres::Object::take(connection));
                Err(late(deadline))
            }
        }
    }

    async fn list_seals(&self, after: i64, limit: u32) -> Result<Vec<Seal>, StoreError> {
        let limit = i64::from(limit);
        let rows = self.call(Desk::Long, statement::LIST_SEALS, &[(&after, Type::INT8), (&limit, Type::INT8)]).await?;
        rows.iter()
            .map(|row| {
                Ok(Seal {
                    no: get(row, "no")?,
                    boundary: Window::read(row)?.boundary(),
                    sealed_at: time(row, "sealed_at")?,
                    rows: get(row, "rows")?,
                    prev: hash(row, "prev")?,
                    hash: hash(row, "hash")?,
                })
            })
            .collect()
    }

    async fn read_journal(&self, page: JournalPage) -> Result<Vec<JournalRow>, StoreError> {
        let limit = i64::from(page.limit);
        let rows = match page.seal {
            Some(no) => {
                let (before, one) = (no - 1, 1_i64);
                let params: [Param<'_>; 2] = [(&before, Type::INT8), (&one, Type::INT8)];
                let seals = self.call(Desk::Long, statement::LIST_SEALS, &params).await?;
                let Some(seal) = seals.first() else { return Ok(Vec::new()) };
                if get::<i64>(seal, "no")? != no {
                    return Ok(Vec::new());
                }
                let window = Window::read(seal)?;
                let (statement, params) = window.page(&page.after, &limit);
                self.call(Desk::Long, statement, &params).await?
            }
            None => {
                let last = self.call(Desk::Long, statement::OPEN_SEAL, &LOOK).await?;
                let Some(last) = last.first() else { return Ok(Vec::new()) };
                let last = Last::read(last)?;
                let (statement, params) = last.window.page_of_tail(&page.after, &limit);
                self.call(Desk::Long, statement, &params).await?
            }
        };
        rows.iter().map(journal_row).collect()
    }

    async fn list_journal_ids(&self, from: i64, limit: u32) -> Result<Vec<i64>, StoreError> {
        let limit = i64::from(limit);
        let params: [Param<'_>; 2] = [(&from, Type::INT8), (&limit, Type::INT8)];
        let rows = self.call(Desk::Long, LIST_JOURNAL_IDS, &params).await?;
        rows.iter().map(|row| get(row, "id")).collect()
    }

    async fn journal_traces(&self) -> Result<JournalTraces, StoreError> {
        let rows = self.call(Desk::Long, JOURNAL_TRACES, &[]).await?;
        let attempts = rows.first().map_or(Ok(false), |row| get(row, "attempts"))?;
        if !attempts {
            // A transaction that is rolled back draws numbers as well, so numbers alone say nothing.
            return Ok(JournalTraces::default());
        }
        let drawn = self.call(Desk::Long, seal::LAST_ID, &[]).await?;
        Ok(JournalTraces { drawn: drawn.first().map_or(Ok(0), |row| get(row, "id"))?, attempts })
    }

    async fn list_job_rows(&self, sight: &Sight, job: JobId) -> Result<Vec<JournalRow>, StoreError> {
        let (tenant, limit) = (tenant(sight), i64::from(JOB_ROWS_MAX));
        let params: [Param<'_>; 3] = [(job.as_uuid(), Type::UUID), (&tenant, Type::TEXT), (&limit, Type::INT8)];
        // No tenant has a right to the journal: it is let pass by a look at the job.
        let seen = Seen::Job(job.as_uuid());
        let rows = self.call_past(tenant.as_deref(), seen, statement::LIST_JOB_ROWS, &params).await?;
        rows.iter().rev().map(|row| Ok(row_of_job(journal_row(row)?, job, sight))).collect()
    }

    async fn list_journal(&self, filter: &JournalFilter) -> Result<JournalFound, StoreError> {
        filter.check()?;
        self.list_rows(filter).await
    }
}

fn journal_row(row: &Row) -> Result<JournalRow, StoreError> {
    let code: i16 = get(row, "event")?;
    Ok(JournalRow {
        id: get(row, "id")?,
        at: time(row, "at")?,
        worker: get::<Option<i32>>(row, "worker")?.map(WorkerId),
        actor: get(row, "actor")?,
        event: JournalEvent::from_code(code).ok_or_else(|| StoreError::Corrupt(format!("journal event {code}")))?,
        lease: get::<Option<i64>>(row, "lease")?.map(LeaseNo),
        jobs: job_ids(row, "jobs")?,
        reason: get(row, "reason")?,
        details: get::<Option<String>>(row, "details")?.map(Json::from_store),
    })
}

fn hash(row: &Row, column: &str) -> Result<Hash, StoreError> {
    let bytes: &[u8] = get(row, column)?;
    bytes.try_into().map_err(|_| StoreError::Corrupt(format!("seal {column} has {} bytes", bytes.len())))
}
