//! The record: rows by id, seals by id range.

use async_trait::async_trait;
use tenure_core::JobId;
use tenure_core::journal::JournalRow;
use tenure_core::seal::{GENESIS, Seal, Sealer};
use tenure_store::journal::{
    JOB_ROWS_MAX, JournalFilter, JournalFound, JournalPage, JournalTraces, LOOKED_AT_MAX, SUBJECTS, is_act, row_of_job,
};
use tenure_store::record::Sight;
use tenure_store::{JournalStore, StoreError};

use super::ModelStore;
use super::tables::Tables;

#[async_trait]
impl JournalStore for ModelStore {
    async fn seal_journal(&self) -> Result<Option<Seal>, StoreError> {
        self.transact(|tables, now| {
            let (prev, sealed) = tables.seals.last().map_or((GENESIS, 0), |(seal, last)| (seal.hash, *last));
            let open: Vec<&JournalRow> = tables.journal.iter().filter(|row| row.id > sealed).collect();
            let Some(last) = open.last().map(|row| row.id) else { return Ok(None) };
            let no = tables.seals.len() as i64 + 1;
            let mut sealer = Sealer::new(no, format!("{}..{last}", sealed + 1), now, prev);
            open.into_iter().for_each(|row| sealer.row(row));
            let seal = sealer.close();
            tables.seals.push((seal.clone(), last));
            Ok(Some(seal))
        })
    }

    async fn list_seals(&self, after: i64, limit: u32) -> Result<Vec<Seal>, StoreError> {
        self.look(|tables, _| {
            let seals = tables.seals.iter().map(|(seal, _)| seal).filter(|seal| seal.no > after);
            Ok(seals.take(limit as usize).cloned().collect())
        })
    }

    async fn read_journal(&self, page: JournalPage) -> Result<Vec<JournalRow>, StoreError> {
        self.look(|tables, _| {
            let (above, up_to) = range(tables, page.seal);
            let rows = tables.journal.iter().filter(|row| row.id > above.max(page.after) && row.id <= up_to);
            Ok(rows.take(page.limit as usize).cloned().collect())
        })
    }

    async fn list_journal_ids(&self, from: i64, limit: u32) -> Result<Vec<i64>, StoreError> {
        self.look(|tables, _| {
            let ids = tables.journal.iter().map(|row| row.id).filter(|id| *id >= from);
            Ok(ids.take(limit as usize).collect())
        })
    }

    async fn journal_traces(&self) -> Result<JournalTraces, StoreError> {
        self.look(|tables, _| {
            let attempts = tables.jobs.values().any(|job| !job.attempts.is_empty());
            Ok(JournalTraces { drawn: tables.journal.last().map_or(0, |row| row.id), attempts })
        })
    }

    async fn list_job_rows(&self, sight: &Sight, job: JobId) -> Result<Vec<JournalRow>, StoreError> {
        self.look(|tables, _| {
            let of = tables.seen(sight, job)?;
            let held = |row: &&JournalRow| match row.lease {
                Some(lease) => of.job.lease == Some(lease) || of.ended_under(lease).is_some(),
                None => row.jobs.len() == 1,
            };
            let named = tables.journal.iter().rev().filter(|row| row.jobs.contains(&job)).filter(held);
            let mut rows: Vec<_> = named.take(JOB_ROWS_MAX as usize).cloned().collect();
            rows.reverse();
            Ok(rows.into_iter().map(|row| row_of_job(row, job, sight)).collect())
        })
    }

    async fn list_journal(&self, filter: &JournalFilter) -> Result<JournalFound, StoreError> {
        filter.check()?;
        self.look(|tables, _| {
            let mut found = JournalFound::default();
            let older = |row: &&JournalRow| filter.before.is_none_or(|before| row.id < before);
            let meant = |row: &&JournalRow| !filter.acts_only || is_act(row);
            for row in tables.journal.iter().rev().filter(older).filter(meant) {
                if found.looked_at == LOOKED_AT_MAX || found.rows.len() == filter.limit as usize {
                    return Ok(found);
                }
                found.looked_at += 1;
                found.next = Some(row.id);
                if filter.matches(row) && filter.subject.as_ref().is_none_or(|subject| names(row, subject)) {
                    found.rows.push(row.clone());
                }
            }
            Ok(JournalFound { next: None, ..found })
        })
    }
}

/// Whether the details of a row name this.
fn names(row: &JournalRow, subject: &str) -> bool {
    let details = row.details.as_ref().map_or("null", |details| details.as_str());
    let details: serde_json::Value = serde_json::from_str(details).unwrap_or_default();
    SUBJECTS.iter().filter_map(|name| details.get(name)).any(|value| value == subject)
}

/// The ids of a seal, or of the tail that no seal covers: above the first, up to the second.
fn range(tables: &Tables, seal: Option<i64>) -> (i64, i64) {
    let last_of = |no: i64| tables.seals.iter().find(|(seal, _)| seal.no == no).map(|(_, last)| *last);
    match seal {
        Some(no) => (last_of(no - 1).unwrap_or(0), last_of(no).unwrap_or(0)),
        None => (tables.seals.last().map_or(0, |(_, last)| *last), i64::MAX),
    }
}
