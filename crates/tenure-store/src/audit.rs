//! Checks the sealed journal: recomputes every hash, compares the head with an anchor, replays the record through the
//! lifecycle table, and compares the ids of all rows with those that seals and the tail account for.
//!
//! What it finds: a sealed row that was edited, deleted, moved or inserted (the seal's hash no longer fits), a seal that
//! was edited, deleted or forked (hash, number or predecessor no longer fit), a chain rewritten or cut off as a whole (the
//! anchor no longer fits), a transition the lifecycle does not know (written around the verbs), a row that no seal covers
//! and none ever will, and a journal that was emptied. Rows that no seal covers yet are the tail: counted, replayed, not
//! proven. Times that do not fit the seals around a row are remarks: a clock that was set looks the same.

mod finding;
mod replay;
mod strays;

use tenure_core::Timestamp;
use tenure_core::journal::JournalRow;
use tenure_core::seal::{Anchor, GENESIS, Hash, Seal, Sealer, to_hex};

use self::replay::Replay;
use self::strays::Strays;
use crate::error::StoreError;
use crate::journal::{DISORDER_MAX, JournalPage};
use crate::store::JournalStore;

pub use finding::{Finding, Remark};

/// Rows read at once.
const PAGE_ROWS: u32 = 2_000;
/// Seals read at once.
const PAGE_SEALS: u32 = 100;
/// Findings after which the check stops: by then the record is worthless anyway.
const FINDINGS_MAX: usize = 100;
/// Remarks that a report spells out; the others are counted.
const REMARKS_MAX: usize = 100;
/// Tries at a tail that no seal takes rows from while it is read.
const TAIL_TRIES_MAX: usize = 20;

/// What a check saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Seals recomputed.
    pub seals: i64,
    /// Rows under them.
    pub rows: i64,
    /// Rows not sealed yet.
    pub tail: i64,
    /// The head of the chain, to be kept elsewhere and given to the next check.
    pub head: Option<Anchor>,
    /// What is wrong; empty is the only good answer.
    pub findings: Vec<Finding>,
    /// What tampering can cause, and a clock that was set as well; the first of them.
    pub remarks: Vec<Remark>,
    /// How many remarks there are.
    pub remarked: i64,
}

/// Checks the whole journal of a store, which may go on writing and sealing meanwhile. `progress` hears the number of
/// rows read so far.
pub async fn verify(
    store: &dyn JournalStore,
    anchor: Option<&Anchor>,
    progress: impl FnMut(i64) + Send,
) -> Result<Report, StoreError> {
    let mut check = Check {
        store,
        anchor,
        progress,
        replay: Replay::default(),
        strays: Strays::default(),
        report: Report::default(),
        prev: GENESIS,
        before: None,
        anchor_seen: anchor.is_none(),
    };
    check.seals().await?;
    if !check.is_over() {
        check.strays.walk(store, None).await?;
        check.tail().await?;
    }
    if check.is_over() {
        return Ok(check.report);
    }
    for row in check.strays.left() {
        check.find(Finding::StrayRow { row });
    }
    check.emptied().await?;
    if let Some(anchor) = anchor.filter(|_| !check.anchor_seen) {
        check.find(Finding::AnchorMissed { no: anchor.no, rows: anchor.rows, hash: to_hex(&anchor.hash) });
    }
    Ok(check.report)
}

impl Report {
    fn seals_last(&self) -> i64 {
        self.head.as_ref().map_or(0, |head| head.no)
    }

    fn remark(&mut self, remark: Remark) {
        self.remarked += 1;
        if self.remarks.len() < REMARKS_MAX {
            self.remarks.push(remark);
        }
    }
}

/// What a row's time is compared with: the seal before it.
#[derive(Clone, Copy)]
struct Before {
    seal: i64,
    sealed_at: Timestamp,
    /// The largest id that is sealed. Rows with smaller ids were written before that seal and became visible later.
    newest: i64,
}

struct Check<'a, P> {
    store: &'a dyn JournalStore,
    anchor: Option<&'a Anchor>,
    progress: P,
    replay: Replay,
    strays: Strays,
    report: Report,
    prev: Hash,
    before: Option<Before>,
    anchor_seen: bool,
}

impl<P: FnMut(i64) + Send> Check<'_, P> {
    fn find(&mut self, finding: Finding) {
        if !self.is_over() {
            self.report.findings.push(finding);
        }
    }

    fn is_over(&self) -> bool {
        self.report.findings.len() >= FINDINGS_MAX
    }

    /// Checks the seals that were not checked yet, until there are no more.
    async fn seals(&mut self) -> Result<(), StoreError> {
        loop {
            let seals = self.store.list_seals(self.report.seals_last(), PAGE_SEALS).await?;
            if seals.is_empty() {
                return Ok(());
            }
            for seal in seals {
                self.seal(&seal).await?;
                if self.is_over() {
                    return Ok(());
                }
            }
        }
    }

    async fn seal(&mut self, seal: &Seal) -> Result<(), StoreError> {
        let expected = self.report.seals_last() + 1;
        if seal.no != expected {
            self.find(Finding::SealMissing { expected, found: seal.no });
        } else if seal.prev != self.prev {
            self.find(Finding::SealUnlinked { no: seal.no });
        }
        let mut sealer = Sealer::new(seal.no, seal.boundary.clone(), seal.sealed_at, seal.prev);
        let mut page = JournalPage { seal: Some(seal.no), after: 0, limit: PAGE_ROWS };
        let mut newest = self.before.map_or(0, |before| before.newest);
        loop {
            let rows = self.store.read_journal(page).await?;
            let Some(last) = rows.last() else { break };
            page.after = last.id;
            newest = newest.max(last.id);
            self.report.rows += rows.len() as i64;
            for row in &rows {
                sealer.row(row);
                self.strays.account(row.id);
                self.compare_time(row, seal);
                for finding in self.replay.sealed(row) {
                    self.find(finding);
                }
            }
            self.strays.walk(self.store, Some(last.id)).await?;
            (self.progress)(self.report.rows);
        }
        let recomputed = sealer.close();
        if recomputed.hash != seal.hash || recomputed.rows != seal.rows {
            self.find(Finding::RowsChanged { no: seal.no, expected: seal.rows, found: recomputed.rows });
        }
        let head = Anchor { no: seal.no, rows: self.report.rows, hash: seal.hash };
        self.anchor_seen |= self.anchor == Some(&head);
        self.prev = seal.hash;
        self.before = Some(Before { seal: seal.no, sealed_at: seal.sealed_at, newest });
        self.report.seals += 1;
        self.report.head = Some(head);
        Ok(())
    }

    /// Reads the tail until no seal was made meanwhile: rows that a seal takes while pages are read are in no page.
    async fn tail(&mut self) -> Result<(), StoreError> {
        for _ in 0..TAIL_TRIES_MAX {
            let (rows, findings) = self.read_tail().await?;
            self.report.tail = rows;
            let sealed = self.store.list_seals(self.report.seals_last(), 1).await?;
            if sealed.is_empty() {
                findings.into_iter().for_each(|finding| self.find(finding));
                return Ok(());
            }
            self.replay.forget_tail();
            self.seals().await?;
            if self.is_over() {
                return Ok(());
            }
        }
        // Sealing is quicker than reading: the tail is counted and not replayed. Every row in it and every row that was
        // sealed before it was read is accounted for.
        Ok(())
    }

    async fn read_tail(&mut self) -> Result<(i64, Vec<Finding>), StoreError> {
        let mut page = JournalPage { seal: None, after: 0, limit: PAGE_ROWS };
        let (mut count, mut findings) = (0, Vec::new());
        loop {
            let rows = self.store.read_journal(page).await?;
            let Some(last) = rows.last() else { return Ok((count, findings)) };
            page.after = last.id;
            count += rows.len() as i64;
            for row in &rows {
                self.strays.account(row.id);
                if findings.len() < FINDINGS_MAX {
                    findings.extend(self.replay.tail(row));
                }
            }
        }
    }

    /// Whether the row's time lies between the seals around it, give or take what a verb may wait for a lock.
    fn compare_time(&mut self, row: &JournalRow, seal: &Seal) {
        let (row, at) = (row.id, row.at);
        if at > seal.sealed_at.plus(DISORDER_MAX) {
            self.report.remark(Remark::DatedAhead { row, at, seal: seal.no, sealed_at: seal.sealed_at });
        }
        if let Some(before) =
            self.before.filter(|before| row > before.newest && at.plus(DISORDER_MAX) < before.sealed_at)
        {
            self.report.remark(Remark::DatedBack { row, at, seal: before.seal, sealed_at: before.sealed_at });
        }
    }

    /// Whether there is no row, although rows were written.
    async fn emptied(&mut self) -> Result<(), StoreError> {
        if self.report.seals > 0 || !self.strays.is_empty() {
            return Ok(());
        }
        let traces = self.store.journal_traces().await?;
        // In this order: what left the traces has committed its row by now, if it is to have one.
        if traces.are_there() && self.store.list_journal_ids(i64::MIN, 1).await?.is_empty() {
            self.find(Finding::JournalEmpty { drawn: traces.drawn, attempts: traces.attempts });
        }
        Ok(())
    }
}
