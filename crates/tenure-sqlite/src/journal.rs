//! The record: written with every transition, sealed in id ranges, read in pages.
//!
//! There is one writer at a time, so ids are in the order of the commits and a seal is a range of ids.

mod list;

use rusqlite::{Row, named_params};
use tenure_core::journal::{JournalEvent, JournalRow, ROW_JOBS_MAX};
use tenure_core::seal::{GENESIS, Hash, Seal, Sealer};
use tenure_core::{JobId, LeaseNo, WorkerId};
use tenure_store::journal::{FULL_SEAL_ROWS, JOB_ROWS_MAX, JournalPage, JournalTraces, row_of_job};
use tenure_store::operate::Word;
use tenure_store::record::Sight;

use crate::fault::{Result, corrupt};
use crate::row::{blob, ids_from_json, ids_to_json, optional_json, text, time};
use crate::show;
use crate::tx::Tx;

pub(crate) use self::list::list_journal;

const ADD_JOURNAL: &str = include_str!("sql/add_journal.sql");
const READ_JOURNAL: &str = include_str!("sql/read_journal.sql");
const LIST_JOB_ROWS: &str = include_str!("sql/list_job_rows.sql");
const LAST_SEAL: &str = include_str!("sql/last_seal.sql");
const FIND_SEAL: &str = include_str!("sql/find_seal.sql");
const LIST_SEALS: &str = include_str!("sql/list_seals.sql");
const LIST_JOURNAL_IDS: &str = include_str!("sql/list_journal_ids.sql");
const JOURNAL_TRACES: &str = include_str!("sql/journal_traces.sql");
const ADD_SEAL: &str = include_str!("sql/add_seal.sql");

/// Most rows one seal covers: sealing takes the writer's time, a few milliseconds for so many single jobs and up to 0.1 s
/// when each row lists a batch of 200.
const SEAL_ROWS_MAX: u32 = 2 * FULL_SEAL_ROWS as u32;

/// A journal row to be, without its jobs.
pub(crate) struct Entry<'w> {
    pub(crate) event: JournalEvent,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) lease: Option<LeaseNo>,
    pub(crate) actor: Option<&'w str>,
    pub(crate) reason: Option<&'w str>,
    pub(crate) details: Option<String>,
}

impl<'w> Entry<'w> {
    /// Nobody said anything.
    pub(crate) fn new(event: JournalEvent) -> Self {
        Self { event, worker: None, lease: None, actor: None, reason: None, details: None }
    }

    /// Somebody gave an order.
    pub(crate) fn said(event: JournalEvent, word: &'w Word) -> Self {
        Self { actor: word.actor.as_deref(), reason: word.reason.as_deref(), ..Self::new(event) }
    }
}

/// Writes an event of these jobs down, as many rows as they need.
pub(crate) fn add(tx: &Tx<'_>, entry: &Entry<'_>, jobs: &[JobId]) -> Result<()> {
    jobs.chunks(ROW_JOBS_MAX).try_for_each(|jobs| add_json(tx, entry, &ids_to_json(jobs)))
}

/// Writes an event down whose jobs are JSON already; `[]` for an event of no job.
pub(crate) fn add_json(tx: &Tx<'_>, entry: &Entry<'_>, jobs: &str) -> Result<()> {
    tx.execute(
        ADD_JOURNAL,
        named_params! {
            ":now": tx.now.as_micros(),
            ":worker": entry.worker.map(|worker| worker.0),
            ":actor": entry.actor,
            ":event": entry.event.code(),
            ":lease": entry.lease.map(|lease| lease.0),
            ":jobs": jobs,
            ":reason": entry.reason,
            ":details": entry.details,
        },
    )?;
    Ok(())
}

/// Seals the rows after the last seal; `None` when there are none.
pub(crate) fn seal_journal(tx: &Tx<'_>) -> Result<Option<Seal>> {
    let head = tx.one(LAST_SEAL, &[], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?, row.get(2)?)))?;
    let (no, sealed, prev): (i64, i64, Hash) = head.unwrap_or((0, 0, GENESIS));
    let rows = read_rows(tx, sealed, i64::MAX, SEAL_ROWS_MAX)?;
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(None) };
    let (first, last) = (first.id, last.id);
    let mut sealer = Sealer::new(no + 1, boundary(first, last), tx.now, prev);
    rows.iter().for_each(|row| sealer.row(row));
    let seal = sealer.close();
    tx.execute(
        ADD_SEAL,
        named_params! {
            ":no": seal.no, ":first": first, ":last": last, ":sealed_at": seal.sealed_at.as_micros(), ":rows": seal.rows,
            ":prev": seal.prev, ":hash": seal.hash,
        },
    )?;
    Ok(Some(seal))
}

/// Seals in order.
pub(crate) fn list_seals(tx: &Tx<'_>, after: i64, limit: u32) -> Result<Vec<Seal>> {
    tx.all(LIST_SEALS, named_params! { ":after": after, ":limit": limit }, |row| {
        let boundary = boundary(row.get(1)?, row.get(2)?);
        let sealed_at = time(row, 6)?;
        Ok(Seal { no: row.get(0)?, boundary, sealed_at, rows: row.get(3)?, prev: row.get(4)?, hash: row.get(5)? })
    })
}

/// Rows of one seal, or of the tail that no seal covers yet.
pub(crate) fn read_journal(tx: &Tx<'_>, page: JournalPage) -> Result<Vec<JournalRow>> {
    let (before, last) = match page.seal {
        Some(no) => {
            let range =
                tx.one(FIND_SEAL, named_params! { ":no": no }, |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
            let Some((first, last)) = range else { return Ok(Vec::new()) };
            (first - 1, last)
        }
        None => (tx.one(LAST_SEAL, &[], |row| Ok(row.get(1)?))?.unwrap_or(0), i64::MAX),
    };
    read_rows(tx, page.after.max(before), last, page.limit)
}

/// Ids of every row, in order.
pub(crate) fn list_journal_ids(tx: &Tx<'_>, from: i64, limit: u32) -> Result<Vec<i64>> {
    tx.all(LIST_JOURNAL_IDS, named_params! { ":from": from, ":limit": limit }, |row| Ok(row.get(0)?))
}

/// What rows left behind outside of the journal.
pub(crate) fn journal_traces(tx: &Tx<'_>) -> Result<JournalTraces> {
    let traces = tx.one(JOURNAL_TRACES, &[], |row| Ok(JournalTraces { drawn: row.get(0)?, attempts: row.get(1)? }))?;
    Ok(traces.unwrap_or_default())
}

/// What happened to a job.
pub(crate) fn list_job_rows(tx: &Tx<'_>, sight: &Sight, job: JobId) -> Result<Vec<JournalRow>> {
    show::find_job(tx, sight, job)?;
    let held = show::find_holder(tx, job)?.map(|holder| holder.lease.no.0);
    let params = named_params! {
        ":job": blob(&job), ":text": job.to_string(), ":held": held, ":limit": JOB_ROWS_MAX,
    };
    let mut rows = tx.all(LIST_JOB_ROWS, params, read_row)?;
    rows.reverse();
    Ok(rows.into_iter().map(|row| row_of_job(row, job, sight)).collect())
}

/// What makes a row belong to a seal: its id lies between, both ends included.
fn boundary(first: i64, last: i64) -> String {
    format!("{first}..{last}")
}

fn read_rows(tx: &Tx<'_>, after: i64, last: i64, limit: u32) -> Result<Vec<JournalRow>> {
    tx.all(READ_JOURNAL, named_params! { ":after": after, ":last": last, ":limit": limit }, read_row)
}

fn read_row(row: &Row<'_>) -> Result<JournalRow> {
    let code: i16 = row.get(4)?;
    Ok(JournalRow {
        id: row.get(0)?,
        at: time(row, 1)?,
        worker: row.get::<_, Option<i32>>(2)?.map(WorkerId),
        actor: row.get(3)?,
        event: JournalEvent::from_code(code).ok_or_else(|| corrupt(format!("journal.event is {code}")))?,
        lease: row.get::<_, Option<i64>>(5)?.map(LeaseNo),
        jobs: ids_from_json(text(row, 6)?)?,
        reason: row.get(7)?,
        details: optional_json(row, 8)?,
    })
}
