//! Checks the sealed journal: recomputes every hash, compares the head with an anchor, and replays the record through
//! the lifecycle table.
//!
//! What it finds: a sealed row that was edited, deleted, moved or inserted (the seal's hash no longer fits), a seal that
//! was edited, deleted or forked (number or predecessor no longer fit), a chain rewritten or cut off as a whole (the
//! anchor no longer fits), and a transition the lifecycle does not know (somebody wrote around the verbs). Rows that no
//! seal covers yet are the tail: counted, replayed, not proven.

use std::collections::HashMap;

use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::lifecycle::next;
use tenure_core::seal::{Anchor, GENESIS, Hash, Seal, Sealer, to_hex};
use tenure_core::{EventKind, JobId, State};

use crate::error::StoreError;
use crate::journal::JournalPage;
use crate::store::JournalStore;

/// Rows read at once.
const PAGE_ROWS: u32 = 2_000;
/// Findings after which the check stops: by then the record is worthless anyway.
const FINDINGS_MAX: usize = 100;

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
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Finding {
    /// A seal is missing between its neighbours.
    #[error("seal {expected} is missing: the next one is {found}")]
    SealMissing {
        /// The number that should come.
        expected: i64,
        /// The number that came.
        found: i64,
    },
    /// A seal does not follow the one before it.
    #[error("seal {no} does not follow the seal before it: the chain was cut or forked")]
    SealUnlinked {
        /// Which.
        no: i64,
    },
    /// The rows of a seal are not those that were sealed.
    #[error("seal {no} does not fit its rows: {expected} rows were sealed, {found} are there")]
    RowsChanged {
        /// Which.
        no: i64,
        /// Rows when it was sealed.
        expected: i64,
        /// Rows now.
        found: i64,
    },
    /// The chain does not contain the anchor.
    #[error("the chain does not contain the anchor: seal {no} with {rows} rows and hash {hash}")]
    AnchorMissed {
        /// The anchor's seal.
        no: i64,
        /// Rows up to it.
        rows: i64,
        /// Its hash.
        hash: String,
    },
    /// The record says something that cannot happen.
    #[error("journal row {row}: job {job} was {} and cannot {event:?}", .from.as_str())]
    IllegalStep {
        /// The row's id.
        row: i64,
        /// The job.
        job: JobId,
        /// Where it stood by the record.
        from: State,
        /// What is said to have happened.
        event: EventKind,
    },
}

/// Checks the whole journal of a store. `progress` hears the number of rows read so far.
pub async fn verify(
    store: &dyn JournalStore,
    anchor: Option<&Anchor>,
    mut progress: impl FnMut(i64) + Send,
) -> Result<Report, StoreError> {
    let mut check =
        Check { replay: Replay::default(), report: Report::default(), prev: GENESIS, anchor_seen: anchor.is_none() };
    loop {
        let seals = store.list_seals(check.report.seals_last(), 100).await?;
        if seals.is_empty() {
            break;
        }
        for seal in seals {
            check.seal(store, &seal, anchor, &mut progress).await?;
            if check.report.findings.len() >= FINDINGS_MAX {
                return Ok(check.report);
            }
        }
    }
    check.tail(store).await?;
    if let Some(anchor) = anchor.filter(|_| !check.anchor_seen) {
        let finding = Finding::AnchorMissed { no: anchor.no, rows: anchor.rows, hash: to_hex(&anchor.hash) };
        check.report.findings.push(finding);
    }
    Ok(check.report)
}

impl Report {
    fn seals_last(&self) -> i64 {
        self.head.as_ref().map_or(0, |head| head.no)
    }
}

struct Check {
    replay: Replay,
    report: Report,
    prev: Hash,
    anchor_seen: bool,
}

impl Check {
    async fn seal(
        &mut self,
        store: &dyn JournalStore,
        seal: &Seal,
        anchor: Option<&Anchor>,
        progress: &mut (impl FnMut(i64) + Send),
    ) -> Result<(), StoreError> {
        let expected = self.report.seals_last() + 1;
        if seal.no != expected {
            self.report.findings.push(Finding::SealMissing { expected, found: seal.no });
        } else if seal.prev != self.prev {
            self.report.findings.push(Finding::SealUnlinked { no: seal.no });
        }
        let mut sealer = Sealer::new(seal.no, seal.boundary.clone(), seal.prev);
        let mut page = JournalPage { seal: Some(seal.no), after: 0, limit: PAGE_ROWS };
        loop {
            let rows = store.read_journal(page).await?;
            let Some(last) = rows.last() else { break };
            page.after = last.id;
            self.report.rows += rows.len() as i64;
            for row in &rows {
                sealer.row(row);
                self.replay.row(row, &mut self.report.findings);
            }
            progress(self.report.rows);
        }
        let recomputed = sealer.close();
        if recomputed.hash != seal.hash || recomputed.rows != seal.rows {
            let finding = Finding::RowsChanged { no: seal.no, expected: seal.rows, found: recomputed.rows };
            self.report.findings.push(finding);
        }
        let head = Anchor { no: seal.no, rows: self.report.rows, hash: seal.hash };
        self.anchor_seen |= anchor == Some(&head);
        self.prev = seal.hash;
        self.report.seals += 1;
        self.report.head = Some(head);
        Ok(())
    }

    async fn tail(&mut self, store: &dyn JournalStore) -> Result<(), StoreError> {
        let mut page = JournalPage { seal: None, after: 0, limit: PAGE_ROWS };
        loop {
            let rows = store.read_journal(page).await?;
            let Some(last) = rows.last() else { return Ok(()) };
            page.after = last.id;
            self.report.tail += rows.len() as i64;
            for row in &rows {
                self.replay.row(row, &mut self.report.findings);
            }
        }
    }
}

/// Follows every job through the lifecycle by the record alone.
#[derive(Default)]
struct Replay {
    /// Jobs seen so far. One that is not here has only been enqueued.
    jobs: HashMap<JobId, State>,
}

impl Replay {
    fn row(&mut self, row: &JournalRow, findings: &mut Vec<Finding>) {
        if row.event == JournalEvent::Pruned {
            for job in &row.jobs {
                self.jobs.remove(job);
            }
        }
        let Some(event) = row.event.step() else { return };
        for job in &row.jobs {
            // Enqueue leaves a job waiting or queued, and only an opening tells which.
            let enqueued = if event == EventKind::Open { State::Waiting } else { State::Queued };
            let from = *self.jobs.get(job).unwrap_or(&enqueued);
            match next(from, event) {
                Some(to) => {
                    self.jobs.insert(*job, to);
                }
                None if findings.len() < FINDINGS_MAX => {
                    findings.push(Finding::IllegalStep { row: row.id, job: *job, from, event });
                }
                None => {}
            }
        }
    }
}
