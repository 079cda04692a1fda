//! Follows every job through the lifecycle by the record alone.

use std::collections::HashMap;

use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::lifecycle::next;
use tenure_core::{EventKind, JobId, State};

use super::Finding;

/// Where the jobs stand after the sealed rows, and after the tail that is being read.
#[derive(Default)]
pub(super) struct Replay {
    /// Jobs of sealed rows. One that is not here has only been enqueued.
    sealed: HashMap<JobId, State>,
    /// Jobs of the tail; `None`: pruned there.
    tail: HashMap<JobId, Option<State>>,
}

impl Replay {
    /// The next sealed row.
    pub(super) fn sealed(&mut self, row: &JournalRow) -> Vec<Finding> {
        let jobs = &mut self.sealed;
        if row.event == JournalEvent::Pruned {
            for job in &row.jobs {
                jobs.remove(job);
            }
        }
        let mut findings = Vec::new();
        for job in &row.jobs {
            match step(row, *job, jobs.get(job).copied()) {
                Some(Ok(to)) => {
                    jobs.insert(*job, to);
                }
                Some(Err(finding)) => findings.push(finding),
                None => {}
            }
        }
        findings
    }

    /// The next row of the tail.
    pub(super) fn tail(&mut self, row: &JournalRow) -> Vec<Finding> {
        if row.event == JournalEvent::Pruned {
            self.tail.extend(row.jobs.iter().map(|job| (*job, None)));
        }
        let mut findings = Vec::new();
        for job in &row.jobs {
            let from = self.tail.get(job).copied().unwrap_or_else(|| self.sealed.get(job).copied());
            match step(row, *job, from) {
                Some(Ok(to)) => {
                    self.tail.insert(*job, Some(to));
                }
                Some(Err(finding)) => findings.push(finding),
                None => {}
            }
        }
        findings
    }

    /// Forgets the tail: it is read again.
    pub(super) fn forget_tail(&mut self) {
        self.tail.clear();
    }
}

/// Where a row takes a job, given the state before it; `None` where the row changes no state.
fn step(row: &JournalRow, job: JobId, before: Option<State>) -> Option<Result<State, Finding>> {
    let event = row.event.step()?;
    // Enqueue leaves a job waiting or queued, and only an opening tells which.
    let enqueued = if event == EventKind::Open { State::Waiting } else { State::Queued };
    let from = before.unwrap_or(enqueued);
    Some(next(from, event).ok_or(Finding::IllegalStep { row: row.id, job, from, event }))
}
