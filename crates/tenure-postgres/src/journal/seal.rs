//! Seals: which rows each one covers, and how the next one is made.
//!
//! A seal covers a bounded number of rows and is one short transaction, so a sealer that dies in the middle of two million
//! rows loses one part, and the next sealer continues after the last seal. What is sealed so far is described by two marks:
//! a snapshot S and an id C. Sealed are all rows that are visible in S and have ids up to C.
//!
//! ```text
//!                       C of the last seal = floor       C of this seal = upto
//!   ids ──────────────────────┼──────────────────────────────┼──────────►
//!       sealed, except rows   │ young: every row that is     │ for the
//!       of transactions that  │ visible in this snapshot     │ next seal
//!       were in flight: late  │                              │
//! ```
//!
//! - **Young rows** have ids above the floor. They are read by id, each range of ids once.
//! - **Late rows** have ids below the floor. Only transactions that were in flight at the last snapshot can have any, so
//!   they are read by transaction (`tenure.late_rows`).
//!
//! Why this is complete: the sealer reads the sequence's last value, then gets an xid X itself, then takes the snapshot; C
//! never exceeds the value that was read. A row's id is drawn after its transaction has an xid (column order of
//! `tenure.journal`). So a transaction above X draws ids above C only. Every transaction below X that has not ended is in the
//! list of S: the server's own snapshot leaves out those above its xmax, which is the newest *finished* transaction, and
//! `open_seal.sql` adds them. A row with an id up to C is either visible in S, or belongs to a transaction in the list, or
//! will never be visible.
//!
//! Why the order is true: a row that follows from another one has a larger id and is not visible earlier. Every set of rows
//! "visible in S, id up to C" with a row has all rows it follows from.
//!
//! When more rows wait than one seal covers, the part ends at its last row's id. Among young rows this is simply a smaller
//! C. Among late rows the seal is *unfinished* (`upto < floor`): the next one continues with the same two snapshots, because
//! two marks cannot describe late rows that are sealed by half.

use tenure_core::Timestamp;
use tenure_core::seal::{GENESIS, Hash, Seal, Sealer};
use tenure_store::StoreError;
use tenure_store::journal::FULL_SEAL_ROWS;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Row, Transaction};

use super::journal_row;
use crate::call::Param;
use crate::error::translate;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{Moment, get, time};

/// The snapshot before everything.
const NOTHING: &str = "1:1:";
/// Most rows of one seal.
const SEAL_ROWS_MAX: i64 = 5_000;
/// Most bytes of one seal's rows in memory, once it has [`FULL_SEAL_ROWS`].
const SEAL_BYTES_MAX: usize = 8 << 20;
/// Rows read at once.
const PAGE_ROWS: i64 = FULL_SEAL_ROWS;
/// Ids without a visible row after which an empty seal is written, so that the next seal does not pass them again. Rows of
/// a large transaction in flight look like this.
const EMPTY_SEAL_IDS: i64 = 1_000;
/// One sealer at a time: the key of its advisory lock.
const SEALER_LOCK: i64 = 0x7e97_5ea1;

/// The largest id drawn so far.
pub(super) const LAST_ID: Statement = Statement {
    name: "last_journal_id",
    sql: "select case when is_called then last_value else last_value - 1 end as id from tenure.journal_id_seq",
};

/// The sealer's own transaction id.
const XID: Statement = Statement { name: "sealer_xid", sql: "select pg_current_xact_id()::text as xid" };

/// Parameters of `open_seal.sql` where nothing is sealed.
pub(super) const LOOK: [Param<'static>; 2] = [(&None::<&str>, Type::TEXT), (&None::<Moment>, Type::TIMESTAMPTZ)];

/// The rows of a seal: the columns of `tenure.seal`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Window {
    era: i16,
    before: String,
    floor: i64,
    /// `None`: the rest of an era that ended.
    snapshot: Option<String>,
    after: i64,
    upto: i64,
}

impl Window {
    /// The rest of an era that ended, or of one that nothing was sealed of.
    fn rest(era: i16, before: &str, floor: i64, upto: i64) -> Self {
        Self { era, before: before.to_owned(), floor, snapshot: None, after: 0, upto: upto.max(floor) }
    }

    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            era: get(row, "era")?,
            before: get(row, "before")?,
            floor: get(row, "floor")?,
            snapshot: get(row, "snapshot")?,
            after: get(row, "after")?,
            upto: get(row, "upto")?,
        })
    }

    /// Every column, so that the seal's hash covers what makes a row belong to it.
    pub(super) fn boundary(&self) -> String {
        let Self { era, before, floor, snapshot, after, upto } = self;
        format!("{era}/{}/{after}..{upto}/{before}/{floor}", snapshot.as_deref().unwrap_or("rest"))
    }

    /// What reads a page of these rows, in id order.
    pub(super) fn page<'a>(&'a self, after: &'a i64, limit: &'a i64) -> (Statement, [Param<'a>; 7]) {
        let after: &(dyn ToSql + Sync) = if self.after > *after { &self.after } else { after };
        let params = [
            (&self.era as _, Type::INT2),
            (&self.before as _, Type::TEXT),
            (&self.floor as _, Type::INT8),
            (&self.snapshot as _, Type::TEXT),
            (after, Type::INT8),
            (&self.upto as _, Type::INT8),
            (limit as _, Type::INT8),
        ];
        (statement::READ_SEALED, params)
    }

    /// What reads a page of the rows after this seal, which is the last one, in id order.
    pub(super) fn page_of_tail<'a>(&'a self, after: &'a i64, limit: &'a i64) -> (Statement, [Param<'a>; 7]) {
        let params = [
            (&self.era as _, Type::INT2),
            (&self.before as _, Type::TEXT),
            (&self.floor as _, Type::INT8),
            (&self.snapshot as _, Type::TEXT),
            (&self.upto as _, Type::INT8),
            (after as _, Type::INT8),
            (limit as _, Type::INT8),
        ];
        (statement::READ_TAIL, params)
    }
}

/// Where the chain stands.
pub(super) struct Last {
    no: i64,
    hash: Hash,
    /// What the last seal covers.
    pub(super) window: Window,
    /// Every era and the id after which its rows begin, in order.
    eras: Vec<(i16, i64)>,
    now: String,
    moment: Timestamp,
}

impl Last {
    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        let no: Option<i64> = get(row, "no")?;
        let eras: Vec<(i16, i64)> =
            get::<Vec<i16>>(row, "eras")?.into_iter().zip(get::<Vec<i64>>(row, "begin_after")?).collect();
        let first = || eras.first().copied().ok_or_else(|| StoreError::Corrupt("tenure.home is empty".to_owned()));
        let window = match no {
            Some(_) => Window::read(row)?,
            None => {
                let (era, floor) = first()?;
                let snapshot = Some(NOTHING.to_owned());
                Window { snapshot, ..Window::rest(era, NOTHING, floor, floor) }
            }
        };
        let hash = if no.is_some() { super::hash(row, "hash")? } else { GENESIS };
        Ok(Self { no: no.unwrap_or(0), hash, window, eras, now: get(row, "now")?, moment: time(row, "moment")? })
    }

    /// What the next seal may cover, in order; the first of these with a row is the next seal. `newest` is an id from before
    /// the snapshot was taken.
    fn next(&self, newest: i64) -> Vec<Window> {
        let last = &self.window;
        let mut windows = Vec::new();
        if last.upto < last.floor {
            windows.push(Window { after: last.upto, upto: last.floor, ..last.clone() });
        }
        let sealed_to = last.upto.max(last.floor);
        let ends_at = |era: i16| self.eras.iter().find(|(next, _)| *next > era).map(|(_, begin_after)| *begin_after);
        for (era, begin_after) in self.eras.iter().copied().filter(|(era, _)| *era >= last.era) {
            let rest_to = ends_at(era);
            let (before, floor) = match &last.snapshot {
                _ if era > last.era => (NOTHING, begin_after),
                Some(snapshot) => (snapshot.as_str(), sealed_to),
                // Late rows of this rest are sealed.
                None => (NOTHING, sealed_to),
            };
            windows.push(match rest_to {
                Some(upto) => Window::rest(era, before, floor, upto),
                None => Window { snapshot: Some(self.now.clone()), ..Window::rest(era, before, floor, newest) },
            });
        }
        windows
    }
}

impl PgStore {
    /// Closes the chain over the next part of what became visible since the last seal.
    pub(super) async fn seal(&self, tx: &Transaction<'_>) -> Result<Option<Seal>, StoreError> {
        tx.query_typed("select pg_advisory_xact_lock($1)", &[(&SEALER_LOCK, Type::INT8)]).await.map_err(translate)?;
        // Statements of their own, in this order: see above.
        let newest: i64 = get(&one(tx, LAST_ID.sql, &[]).await?, "id")?;
        let open = self.text(statement::OPEN_SEAL);
        let last = Last::read(&one(tx, &open, &LOOK).await?)?;
        if !self.has_more(tx, &last, newest).await? {
            return Ok(None);
        }
        let xid = one(tx, XID.sql, &[]).await?;
        let xid: &str = get(&xid, "xid")?;
        let now = self.moment();
        let last = Last::read(&one(tx, &open, &[(&xid, Type::TEXT), (&now, Type::TIMESTAMPTZ)]).await?)?;
        for window in last.next(newest) {
            let passed = window.upto - window.floor.max(window.after);
            let (window, rows) = self.read_part(tx, window).await?;
            if rows.is_empty() && passed < EMPTY_SEAL_IDS {
                continue;
            }
            let mut sealer = Sealer::new(last.no + 1, window.boundary(), last.moment, last.hash);
            rows.iter().for_each(|row| sealer.row(row));
            let seal = sealer.close();
            self.write_seal(tx, &window, &seal).await?;
            return Ok(Some(seal));
        }
        Ok(None)
    }

    /// Whether there may be something to seal. An idle journal costs no xid.
    async fn has_more(&self, tx: &Transaction<'_>, last: &Last, newest: i64) -> Result<bool, StoreError> {
        let windows = last.next(newest);
        if windows.len() > 1 || windows.iter().any(|window| window.upto > window.floor) {
            return Ok(true);
        }
        for window in &windows {
            let (statement, params) = window.page(&0, &1);
            if !tx.query_typed(&self.text(statement), &params).await.map_err(translate)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rows of the next seal. The window ends at the last of them where it has more than one seal covers.
    async fn read_part(
        &self,
        tx: &Transaction<'_>,
        mut window: Window,
    ) -> Result<(Window, Vec<tenure_core::journal::JournalRow>), StoreError> {
        let (mut part, mut bytes, mut after) = (Vec::new(), 0, 0);
        loop {
            let (statement, params) = window.page(&after, &PAGE_ROWS);
            let rows = tx.query_typed(&self.text(statement), &params).await.map_err(translate)?;
            for row in &rows {
                let row = journal_row(row)?;
                after = row.id;
                bytes += row.size();
                part.push(row);
            }
            let count = part.len() as i64;
            if (rows.len() as i64) < PAGE_ROWS {
                return Ok((window, part));
            }
            if count + PAGE_ROWS > SEAL_ROWS_MAX || (count >= FULL_SEAL_ROWS && bytes >= SEAL_BYTES_MAX) {
                window.upto = after;
                return Ok((window, part));
            }
        }
    }

    async fn write_seal(&self, tx: &Transaction<'_>, window: &Window, seal: &Seal) -> Result<(), StoreError> {
        let (prev, hash) = (seal.prev.as_slice(), seal.hash.as_slice());
        let sealed_at = Moment(seal.sealed_at);
        let params: [Param<'_>; 11] = [
            (&seal.no, Type::INT8),
            (&window.era, Type::INT2),
            (&window.before, Type::TEXT),
            (&window.floor, Type::INT8),
            (&window.snapshot, Type::TEXT),
            (&window.after, Type::INT8),
            (&window.upto, Type::INT8),
            (&seal.rows, Type::INT8),
            (&prev, Type::BYTEA),
            (&hash, Type::BYTEA),
            (&sealed_at, Type::TIMESTAMPTZ),
        ];
        tx.query_typed(&self.text(statement::WRITE_SEAL), &params).await.map_err(translate)?;
        Ok(())
    }
}

/// The one row of a statement.
async fn one(tx: &Transaction<'_>, sql: &str, params: &[Param<'_>]) -> Result<Row, StoreError> {
    let mut rows = tx.query_typed(sql, params).await.map_err(translate)?;
    rows.pop().ok_or_else(|| StoreError::Corrupt(format!("no row: {sql}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "20:20:";

    fn last(window: Window, eras: &[(i16, i64)]) -> Last {
        Last { no: 1, hash: GENESIS, window, eras: eras.to_vec(), now: NOW.to_owned(), moment: Timestamp::EPOCH }
    }

    fn window(era: i16, before: &str, floor: i64, snapshot: Option<&str>, ids: (i64, i64)) -> Window {
        let snapshot = snapshot.map(str::to_owned);
        Window { era, before: before.to_owned(), floor, snapshot, after: ids.0, upto: ids.1 }
    }

    #[test]
    fn the_next_seal_begins_where_the_last_one_ended() {
        let last = last(window(1, "5:5:", 100, Some("9:9:"), (0, 140)), &[(1, 0)]);
        assert_eq!(last.next(200), [window(1, "9:9:", 140, Some(NOW), (0, 200))]);
        assert_eq!(last.next(120), [window(1, "9:9:", 140, Some(NOW), (0, 140))], "never backwards");
    }

    #[test]
    fn an_unfinished_seal_is_continued_with_its_own_snapshots_first() {
        let last = last(window(1, "5:7:6", 100, Some("9:9:"), (0, 40)), &[(1, 0)]);
        let continued = window(1, "5:7:6", 100, Some("9:9:"), (40, 100));
        assert_eq!(last.next(200), [continued, window(1, "9:9:", 100, Some(NOW), (0, 200))]);
    }

    #[test]
    fn the_rest_of_an_era_and_whole_eras_in_between_come_before_the_present_one() {
        let eras = [(1, 0), (2, 150), (3, 180)];
        let here = window(3, NOTHING, 180, Some(NOW), (0, 200));
        let between = window(2, NOTHING, 150, None, (0, 180));
        let rest = window(1, "9:9:", 140, None, (0, 150));
        let old = last(window(1, "5:5:", 100, Some("9:9:"), (0, 140)), &eras);
        assert_eq!(old.next(200), [rest, between.clone(), here.clone()]);
        // A part of the rest is sealed.
        let cut = last(window(1, "9:9:", 140, None, (0, 145)), &eras);
        assert_eq!(cut.next(200), [window(1, NOTHING, 145, None, (0, 150)), between, here.clone()]);
        let ended = last(window(2, NOTHING, 150, None, (0, 180)), &eras);
        assert_eq!(ended.next(200), [window(2, NOTHING, 180, None, (0, 180)), here]);
    }
}
