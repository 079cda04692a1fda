//! Runs and partitions as people read them, and which of them are wanted.

use std::time::Duration;

use tenure_core::name::{PartitionName, TenantName};
use tenure_core::run::{Fan, Run};
use tenure_core::{Invalid, JobId, Json, RunId, RunState, Timestamp};

use crate::error::StoreError;
use crate::operate::check_batch;
use crate::record::Sight;
use crate::run::SealRun;

/// A page as its holder finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageFound {
    /// It is its partition's turn: a full page has so many rows.
    Next {
        /// Rows of a full page.
        limit: u32,
    },
    /// The partition is elsewhere: a page that was repeated or comes out of order.
    Elsewhere {
        /// Where the partition goes on.
        expected: u64,
    },
    /// The partition has ended, or nobody knows it.
    Ended,
}

/// A run as people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    /// Its id.
    pub id: RunId,
    /// Whose it is.
    pub tenant: TenantName,
    /// Who asked for it.
    pub owner: Option<String>,
    /// What it is fed from.
    pub source: Option<String>,
    /// State, counts and times.
    pub run: Run,
    /// The job that waits for all the others.
    pub consolidate: Option<JobId>,
    /// Rows its partitions have stored.
    pub rows: u64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it fails unless it has ended.
    pub deadline: Option<Timestamp>,
}

/// A partition as people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionRecord {
    /// Of which run.
    pub run: RunId,
    /// Its name.
    pub name: PartitionName,
    /// Where it stands.
    pub state: RunState,
    /// Where its next page begins; where it ended, when it has.
    pub next_offset: u64,
    /// Rows of a full page.
    pub limit: u32,
    /// Rows it has stored.
    pub rows: u64,
    /// How many there will be, if somebody knows.
    pub expected: Option<u64>,
    /// The job of the page that is next or was last.
    pub job: JobId,
    /// What went wrong last.
    pub last_error: Option<Json>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its first page began.
    pub started_at: Option<Timestamp>,
    /// When it last moved.
    pub moved_at: Timestamp,
}

/// Which runs to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// What the caller may see.
    pub sight: Sight,
    /// Only those that go on.
    pub open: bool,
    /// Only these.
    pub state: Option<RunState>,
    /// Only runs older than this one: the last of the page before.
    pub before: Option<RunId>,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

/// Which partitions to list, by run and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionFilter {
    /// What the caller may see.
    pub sight: Sight,
    /// Only of this run.
    pub run: Option<RunId>,
    /// Only those that go on.
    pub active: bool,
    /// Only those that go on and have not moved for this long.
    pub stuck_for: Option<Duration>,
    /// Only these.
    pub state: Option<RunState>,
    /// Only those behind this one: the last of the page before.
    pub after: Option<(RunId, PartitionName)>,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

/// What a fold did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoldedRuns {
    /// Sentences heard, jobs canceled and runs ended by their deadline.
    pub changes: u64,
    /// Runs whose consolidate was opened.
    pub opened: Vec<RunId>,
    /// Whether there is more to do at once.
    pub more: bool,
}

impl RunRecord {
    /// Refuses members that come too late.
    pub fn refuse_closed(&self) -> Result<(), StoreError> {
        let (id, run) = (self.id, &self.run);
        match (run.sealed, run.state.is_open()) {
            (false, true) => Ok(()),
            (true, _) => Err(StoreError::Conflict(format!("run {id} is sealed: nothing can be added"))),
            (false, false) => {
                Err(StoreError::Conflict(format!("run {id} is {}: nothing can be added", run.state.as_str())))
            }
        }
    }

    /// Whether this very seal was set before; refuses one with another consolidate, and a run that has ended.
    pub fn was_sealed_by(&self, request: &SealRun) -> Result<bool, StoreError> {
        match (self.run.sealed, &request.consolidate) {
            (false, _) => self.refuse_closed().map(|()| false),
            (true, Some(job)) if self.consolidate != Some(job.id) => {
                Err(StoreError::Conflict(format!("run {} is sealed already", self.id)))
            }
            (true, _) => Ok(true),
        }
    }

    /// Refuses to touch the partitions of a run that has ended for good, or whose consolidate has begun.
    pub fn refuse_settled(&self) -> Result<(), StoreError> {
        let (id, run) = (self.id, &self.run);
        if matches!(run.state, RunState::Succeeded | RunState::Canceled) {
            let state = run.state.as_str();
            return Err(StoreError::Conflict(format!("run {id} is {state}: its partitions stay as they are")));
        }
        match run.fan {
            Fan::None | Fan::Waiting | Fan::Skipped => Ok(()),
            Fan::Open | Fan::Ended(_) => {
                Err(StoreError::Conflict(format!("the consolidate of run {id} has begun: its partitions stay")))
            }
        }
    }
}

impl Default for RunFilter {
    fn default() -> Self {
        Self { sight: Sight::All, open: false, state: None, before: None, limit: 20 }
    }
}

impl RunFilter {
    /// Refuses a page that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        check_batch(self.limit)
    }
}

impl Default for PartitionFilter {
    fn default() -> Self {
        Self { sight: Sight::All, run: None, active: false, stuck_for: None, state: None, after: None, limit: 20 }
    }
}

impl PartitionFilter {
    /// Refuses a page that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        check_batch(self.limit)
    }
}
