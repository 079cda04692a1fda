//! Runs and partitions: what is asked of them, and how people read them.

mod record;

use std::collections::HashSet;
use std::time::Duration;

use tenure_core::duration::DURATION_MAX;
use tenure_core::name::{PartitionName, TenantName, check_text};
use tenure_core::run::{Fan, PARTITION_OFFSET_MAX, Run};
use tenure_core::{Invalid, JobId, NewJob, RunId, Timestamp};

use crate::error::StoreError;
use crate::operate::Word;
use crate::record::Sight;
use crate::user_tx::CompleteJob;

pub use record::{FoldedRuns, PageFound, PartitionFilter, PartitionRecord, RunFilter, RunRecord};

/// Create a run.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Made by the client, so that a repeated request is the same run.
    pub id: RunId,
    /// Whose it is; its jobs are theirs too.
    pub tenant: TenantName,
    /// Who asked for it: a user, a program.
    pub owner: Option<String>,
    /// What it is fed from: `chrome_html`, `catalogue`.
    pub source: Option<String>,
    /// Its first members.
    pub members: Members,
    /// Whether these are all of them.
    pub sealed: bool,
    /// The job that runs when all of them are done. An open run gets it when it is sealed.
    pub consolidate: Option<NewJob>,
    /// Whether the first member too many that is missing ends the others.
    pub fail_fast: bool,
    /// How many members may be missing in a run that ends well.
    pub tolerated: u32,
    /// After this it has failed, and what is left of it is canceled. An open run has one, a day unless told.
    pub deadline: Option<Duration>,
}

/// Jobs of a run.
#[derive(Debug, Clone, Default)]
pub struct Members {
    /// Streams of pages.
    pub partitions: Vec<NewPartition>,
    /// Jobs of their own.
    pub items: Vec<NewJob>,
}

/// One stream of pages.
#[derive(Debug, Clone)]
pub struct NewPartition {
    /// Its name inside the run.
    pub name: PartitionName,
    /// The job of its first page. Those of later pages are made after it.
    pub job: NewJob,
    /// Where its first page begins.
    pub offset: u64,
    /// Rows of a full page.
    pub limit: u32,
    /// How many rows there will be, if somebody knows. Only shown.
    pub expected: Option<u64>,
}

/// What became of a request to create a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunCreated {
    /// It is there now.
    Now,
    /// It was there before; nothing was changed.
    Before,
}

/// Add to an open run.
#[derive(Debug, Clone)]
pub struct AddToRun {
    /// What the caller may see.
    pub sight: Sight,
    /// Which.
    pub run: RunId,
    /// What comes.
    pub members: Members,
}

/// What came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Added {
    /// Members that are new.
    pub members: u64,
    /// Those that were there before, or whose key another job holds: they are not counted.
    pub found: u64,
}

/// Seal an open run: it has all its members.
#[derive(Debug, Clone)]
pub struct SealRun {
    /// What the caller may see.
    pub sight: Sight,
    /// Which.
    pub run: RunId,
    /// The job that runs when all of them are done.
    pub consolidate: Option<NewJob>,
    /// Who and why.
    pub word: Word,
}

/// End a run with all its jobs.
#[derive(Debug, Clone)]
pub struct CancelRun {
    /// What the caller may see.
    pub sight: Sight,
    /// Which.
    pub run: RunId,
    /// Who and why.
    pub word: Word,
}

/// Let a partition go on that has stopped.
#[derive(Debug, Clone)]
pub struct OperatePartition {
    /// What the caller may see.
    pub sight: Sight,
    /// Of which run.
    pub run: RunId,
    /// Which.
    pub partition: PartitionName,
    /// How.
    pub act: PartitionAct,
    /// Who and why.
    pub word: Word,
}

/// How a partition goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartitionAct {
    /// Where it stopped: the job of its page is revived.
    Resume,
    /// From an offset, with a new job.
    Reset {
        /// Where.
        offset: u64,
        /// The new job's id.
        job: JobId,
    },
}

/// Move a partition's offset inside the transaction of its page, or end it there.
#[derive(Debug, Clone)]
pub struct AdvancePage {
    /// The page's job, which is completed.
    pub page: CompleteJob,
    /// Rows of this page.
    pub rows: u64,
    /// The next page's job; `None`: this was the last one.
    pub next: Option<JobId>,
}

/// Most queued and running runs of one tenant.
pub const OPEN_RUNS_MAX: u32 = 10_000;
/// Deadline of an open run that says nothing.
pub const OPEN_DEADLINE: Duration = Duration::from_secs(86_400);
/// Rows of a full page, at most.
pub const PAGE_LIMIT_MAX: u32 = 1_000_000;
/// Most members one request brings.
pub const MEMBERS_MAX: usize = 20_000;
/// Most sentences one fold hears, and most jobs it cancels.
pub const FOLD_MAX: u32 = 1_000;

impl NewRun {
    /// A sealed run without members: add what it needs.
    pub fn new(id: RunId) -> Self {
        Self {
            id,
            tenant: TenantName::default(),
            owner: None,
            source: None,
            members: Members::default(),
            sealed: true,
            consolidate: None,
            fail_fast: false,
            tolerated: 0,
            deadline: None,
        }
    }

    /// What it is at the start. Its members are not counted yet.
    pub fn start(&self) -> Run {
        let fan = if self.consolidate.is_some() { Fan::Waiting } else { Fan::None };
        Run { fail_fast: self.fail_fast, tolerated: self.tolerated, fan, ..Run::new(self.sealed) }
    }

    /// The refusal of a tenant's run beyond [`OPEN_RUNS_MAX`].
    pub fn beyond_limit(&self) -> StoreError {
        let way_out = "come again when some have ended, or cancel one with `tenure runs cancel RUN`";
        StoreError::limit("open runs", &self.tenant, OPEN_RUNS_MAX, way_out)
    }

    /// When it has to have ended.
    pub fn deadline_at(&self, now: Timestamp) -> Option<Timestamp> {
        let deadline = self.deadline.or_else(|| (!self.sealed).then_some(OPEN_DEADLINE));
        deadline.map(|deadline| now.plus(deadline))
    }

    /// Checks what the types do not say already. `now` is the store's clock.
    pub fn check(&self, now: Timestamp) -> Result<(), Invalid> {
        self.id.check(now)?;
        self.owner.iter().try_for_each(|owner| check_text("owner", owner))?;
        self.source.iter().try_for_each(|source| check_text("source", source))?;
        if self.deadline.is_some_and(|deadline| deadline > DURATION_MAX) {
            let value = tenure_core::duration::format(self.deadline.unwrap_or_default());
            return Err(Invalid::new("deadline", value, "a deadline is at most 365000d"));
        }
        if !self.sealed && self.consolidate.is_some() {
            return Err(Invalid::new("consolidate", self.id, "an open run gets it when it is sealed"));
        }
        self.consolidate.iter().try_for_each(|job| check_consolidate(job, &self.tenant, now))?;
        self.members.check(&self.tenant, now)
    }
}

impl Members {
    /// Checks each, and that they are their tenant's.
    pub fn check(&self, tenant: &TenantName, now: Timestamp) -> Result<(), Invalid> {
        let count = self.partitions.len() + self.items.len();
        if count > MEMBERS_MAX {
            return Err(Invalid::new("members", count, format!("they come {MEMBERS_MAX} at a time")));
        }
        let mut names = HashSet::new();
        for partition in &self.partitions {
            if !names.insert(&partition.name) {
                return Err(Invalid::new(
                    "partition",
                    &partition.name,
                    "each partition of a run has a name of its own",
                ));
            }
            check_job(&partition.job, tenant, now)?;
            check_offset(partition.offset)?;
            if !(1..=PAGE_LIMIT_MAX).contains(&partition.limit) {
                return Err(Invalid::new("limit", partition.limit, format!("a page has 1 to {PAGE_LIMIT_MAX} rows")));
            }
            if partition.job.unique.is_some() || partition.job.idempotency_key.is_some() {
                return Err(Invalid::new("key", &partition.name, "pages have no keys: their offsets are"));
            }
        }
        self.items.iter().try_for_each(|job| check_job(job, tenant, now))
    }
}

/// The same for a consolidate, which has no keys: it may have to be revived whatever others hold.
pub fn check_consolidate(job: &NewJob, tenant: &TenantName, now: Timestamp) -> Result<(), Invalid> {
    check_job(job, tenant, now)?;
    if job.unique.is_none() && job.idempotency_key.is_none() {
        return Ok(());
    }
    Err(Invalid::new("consolidate", job.id, "it has no keys: its run is its key"))
}

/// Refuses a job that another tenant's run would bring.
pub fn check_job(job: &NewJob, tenant: &TenantName, now: Timestamp) -> Result<(), Invalid> {
    job.check(now)?;
    if job.tenant == *tenant {
        return Ok(());
    }
    Err(Invalid::new("tenant", &job.tenant, format!("the jobs of this run are of {tenant}")))
}

/// Refuses an offset that cannot be counted on from.
pub fn check_offset(offset: u64) -> Result<(), Invalid> {
    if offset <= PARTITION_OFFSET_MAX {
        return Ok(());
    }
    Err(Invalid::new("offset", offset, format!("it is at most {PARTITION_OFFSET_MAX}")))
}
