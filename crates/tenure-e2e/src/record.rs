//! The store's own record: its sealed journal, verified, and what it says about every attempt.

use std::collections::{BTreeMap, HashMap, HashSet};

use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::{How, JobId, LeaseNo, WorkerId};
use tenure_store::journal::JournalPage;
use tenure_store::{Store, audit};

const PAGE: u32 = 1_000;

/// One attempt: a job under a fence.
pub type Grant = (JobId, LeaseNo);

/// What the journal says.
#[derive(Default)]
pub struct Record {
    /// How every attempt ended.
    pub ended: HashMap<Grant, How>,
    /// When it did, in microseconds of the store's clock.
    pub ended_at: HashMap<Grant, i64>,
    /// Every grant, and when it was claimed.
    pub claimed: HashMap<Grant, i64>,
    /// Reports that were refused, with who sent them, each time.
    pub refused: Vec<(Grant, Option<WorkerId>)>,
    /// Endings that came from another lease than the last one that took the job, or from one that was over.
    pub stale_accepted: usize,
    /// Who holds what, by the rows read so far.
    held: HashMap<JobId, LeaseNo>,
}

impl Record {
    /// Seals what is open, proves the journal and the invariants, and reads it.
    pub async fn prove(store: &dyn Store) -> Self {
        assert_eq!(store.find_violations(10).await.unwrap(), [], "the invariants hold");
        while store.seal_journal().await.unwrap().is_some() {}
        let report = audit::verify(store, None, |_| ()).await.unwrap();
        assert_eq!((report.findings, report.tail), (Vec::new(), 0), "the journal is whole");
        Self::read(store).await
    }

    /// What the journal says now, sealed or not.
    pub async fn read(store: &dyn Store) -> Self {
        let mut record = Self::default();
        let mut after = 0;
        loop {
            let seals = store.list_seals(after, 100).await.unwrap();
            let Some(last) = seals.last() else { break };
            after = last.no;
            for seal in seals {
                record.read_pages(store, Some(seal.no)).await;
            }
        }
        record.read_pages(store, None).await;
        record
    }

    /// How many attempts ended how.
    pub fn tally(&self) -> BTreeMap<&'static str, usize> {
        let mut tally = BTreeMap::new();
        self.ended.values().for_each(|how| *tally.entry(how.as_str()).or_default() += 1);
        tally
    }

    /// Attempts that ended so.
    pub fn count(&self, how: How) -> usize {
        self.ended.values().filter(|ended| **ended == how).count()
    }

    /// Jobs that have ended for good.
    pub fn ended_jobs(&self) -> HashSet<JobId> {
        self.ended.iter().filter(|(_, how)| how.is_final()).map(|((job, _), _)| *job).collect()
    }

    /// Jobs that succeeded; each once, or the record is broken.
    pub fn succeeded(&self) -> HashMap<JobId, LeaseNo> {
        let done: Vec<&Grant> = self.ended.iter().filter(|(_, how)| **how == How::Succeeded).map(|(g, _)| g).collect();
        let by_job: HashMap<JobId, LeaseNo> = done.iter().map(|(job, lease)| (*job, *lease)).collect();
        assert_eq!(by_job.len(), done.len(), "no job succeeds twice");
        by_job
    }

    async fn read_pages(&mut self, store: &dyn Store, seal: Option<i64>) {
        let mut page = JournalPage { seal, after: 0, limit: PAGE };
        loop {
            let rows = store.read_journal(page).await.unwrap();
            let Some(last) = rows.last() else { return };
            page.after = last.id;
            rows.iter().for_each(|row| self.row(row));
        }
    }

    fn row(&mut self, row: &JournalRow) {
        let Some(lease) = row.lease else { return };
        for job in &row.jobs {
            match row.event {
                JournalEvent::Claimed => {
                    self.held.insert(*job, lease);
                    self.claimed.insert((*job, lease), row.at.as_micros());
                }
                JournalEvent::Ended(how) => {
                    self.ended_at.insert((*job, lease), row.at.as_micros());
                    // An operator's ending has a number of its own, and nobody holds the job after it.
                    if self.held.remove(job) != Some(lease) && how != How::Canceled {
                        self.stale_accepted += 1;
                    }
                    let before = self.ended.insert((*job, lease), how);
                    assert_eq!(before, None, "attempt {job} {lease} ends once");
                }
                JournalEvent::Refused => self.refused.push(((*job, lease), row.worker)),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tenure_core::Timestamp;

    use super::*;

    fn record(rows: &[(JournalEvent, i64)]) -> Record {
        let mut record = Record::default();
        for (id, (event, lease)) in (1..).zip(rows) {
            record.row(&JournalRow {
                id,
                at: Timestamp::from_micros(id),
                worker: None,
                actor: None,
                event: *event,
                lease: Some(LeaseNo(*lease)),
                jobs: vec![JobId::from_parts(Timestamp::from_micros(0), [1; 10])],
                reason: None,
                details: None,
            });
        }
        record
    }

    #[test]
    fn an_ending_of_a_lease_that_was_over_is_stale() {
        use JournalEvent::{Claimed, Ended};
        let fine = [(Claimed, 1), (Ended(How::Lost), 1), (Claimed, 2), (Ended(How::Succeeded), 2)];
        assert_eq!(record(&fine).stale_accepted, 0);
        let while_the_successor_runs = [(Claimed, 1), (Claimed, 2), (Ended(How::Succeeded), 1)];
        assert_eq!(record(&while_the_successor_runs).stale_accepted, 1);
        let after_its_end = [(Claimed, 1), (Claimed, 2), (Ended(How::Succeeded), 2), (Ended(How::Retry), 1)];
        assert_eq!(record(&after_its_end).stale_accepted, 1);
    }
}
