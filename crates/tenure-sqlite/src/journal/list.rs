//! Rows of the journal, newest first.

use rusqlite::named_params;
use tenure_core::Timestamp;
use tenure_store::journal::{DISORDER_MAX, JournalFilter, JournalFound, LOOKED_AT_MAX, LOOKED_AT_PAGE};

use super::read_row;
use crate::fault::Result;
use crate::row::time;
use crate::tx::Tx;

const LIST_JOURNAL: &str = include_str!("../sql/list_journal.sql");
const LIST_ACTS: &str = include_str!("../sql/list_acts.sql");
const FIND_JOURNAL_TIME: &str = include_str!("../sql/find_journal_time.sql");
const LAST_JOURNAL_ID: &str = include_str!("../sql/last_journal_id.sql");

/// Rows that match, a walk of bounded length.
pub(crate) fn list_journal(tx: &Tx<'_>, filter: &JournalFilter) -> Result<JournalFound> {
    let sql = if filter.acts_only { LIST_ACTS } else { LIST_JOURNAL };
    let begin = filter.until.map(|until| id_above(tx, until.plus(DISORDER_MAX))).transpose()?;
    let begin = begin.into_iter().chain(filter.before).min().unwrap_or(i64::MAX);
    let mut found = JournalFound { next: Some(begin), ..JournalFound::default() };
    while let Some(before) = found.next {
        let params = named_params! { ":before": before, ":limit": LOOKED_AT_PAGE, ":subject": filter.subject };
        let rows = tx.all(sql, params, |row| Ok((read_row(row)?, row.get::<_, bool>(9)?)))?;
        let is_last = rows.len() < LOOKED_AT_PAGE as usize;
        for (row, is_named) in rows {
            let is_full = found.rows.len() == filter.limit as usize;
            if is_full || found.looked_at == LOOKED_AT_MAX {
                return Ok(found);
            }
            if filter.since.is_some_and(|since| row.at.plus(DISORDER_MAX) < since) {
                return Ok(JournalFound { next: None, ..found });
            }
            found.looked_at += 1;
            found.next = Some(row.id);
            if is_named && filter.matches(&row) {
                found.rows.push(row);
            }
        }
        if is_last {
            found.next = None;
        }
    }
    Ok(found)
}

/// An id above every row from before a moment, give or take a page: ids and times grow together, so halving the way finds
/// it in a few looks.
fn id_above(tx: &Tx<'_>, at: Timestamp) -> Result<i64> {
    let last: Option<i64> = tx.one(LAST_JOURNAL_ID, &[], |row| Ok(row.get(0)?))?.flatten();
    let (mut low, mut high) = (0, last.map_or(0, |last| last + 1));
    while high - low > i64::from(LOOKED_AT_PAGE) {
        let middle = low + (high - low) / 2;
        let met = tx.one(FIND_JOURNAL_TIME, named_params! { ":id": middle }, |row| time(row, 0))?;
        if met.is_none_or(|met| met >= at) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high)
}
