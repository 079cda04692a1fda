//! What operators and policies ask for.

use std::time::Duration;

use tenure_core::name::{QueueName, check_text};
use tenure_core::{Invalid, JobId};

use crate::record::Sight;

/// Who asks, and why: both go into the journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Word {
    /// A person, a program, a role.
    pub actor: Option<String>,
    /// In a person's words.
    pub reason: Option<String>,
}

/// End a job.
#[derive(Debug, Clone)]
pub struct CancelJob {
    /// What the caller may see.
    pub sight: Sight,
    /// Which.
    pub job: JobId,
    /// Fence the holder at once instead of asking it.
    pub force: bool,
    /// Who and why.
    pub word: Word,
}

/// What a cancel did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Canceled {
    /// It is canceled now.
    Now,
    /// Its holder is asked; it is canceled when the holder acknowledges or the lease ends.
    Requested,
    /// It had been canceled before.
    Before,
}

/// Revive a job.
#[derive(Debug, Clone)]
pub struct RequeueJob {
    /// What the caller may see.
    pub sight: Sight,
    /// Which.
    pub job: JobId,
    /// Who and why.
    pub word: Word,
}

/// Open a waiting job.
#[derive(Debug, Clone)]
pub struct OpenJob {
    /// What the caller may see.
    pub sight: Sight,
    /// Which.
    pub job: JobId,
    /// Who and why.
    pub word: Word,
}

/// Settings of a queue.
#[derive(Debug, Clone)]
pub struct SetQueue {
    /// Which.
    pub queue: QueueName,
    /// How long a lease lasts without renewal: 1 s to 1 d.
    pub lease_ttl: Duration,
    /// Whether each tenant has a line of its own; `None` leaves it as it is. Jobs that wait already stay where they are.
    pub fair: Option<bool>,
}

/// Stop or resume claims of a queue.
#[derive(Debug, Clone)]
pub struct PauseQueue {
    /// Which; created when it is new.
    pub queue: QueueName,
    /// Pause, or resume.
    pub paused: bool,
    /// Who and why.
    pub word: Word,
}

/// Delete jobs that ended long ago.
#[derive(Debug, Clone)]
pub struct PruneJobs {
    /// Ended at least this long ago.
    pub older_than: Duration,
    /// Dead letters too; they are kept by default.
    pub dead_too: bool,
    /// At most this many in one call, 1..=1,000.
    pub limit: u32,
}

/// Lease time of a queue that says nothing.
pub const LEASE_TTL_DEFAULT: Duration = Duration::from_secs(60);
/// Most jobs one prune deletes, and most rows one list returns.
pub const BATCH_MAX: u32 = 1_000;

impl Word {
    /// Refuses an actor or a reason that is no text.
    pub fn check(&self) -> Result<(), Invalid> {
        self.actor.iter().try_for_each(|actor| check_text("actor", actor))?;
        self.reason.iter().try_for_each(|reason| check_text("reason", reason))
    }
}

impl SetQueue {
    /// Only the lease time.
    pub const fn new(queue: QueueName, lease_ttl: Duration) -> Self {
        Self { queue, lease_ttl, fair: None }
    }

    /// Refuses a lease time that is too short to renew or too long to wait for.
    pub fn check(&self) -> Result<(), Invalid> {
        if (Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&self.lease_ttl) {
            return Ok(());
        }
        let value = tenure_core::duration::format(self.lease_ttl);
        Err(Invalid::new("lease_ttl", value, "a lease lasts 1s to 1d"))
    }
}

impl PruneJobs {
    /// Refuses a batch that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        check_batch(self.limit)
    }
}

pub(crate) fn check_batch(limit: u32) -> Result<(), Invalid> {
    if (1..=BATCH_MAX).contains(&limit) {
        return Ok(());
    }
    Err(Invalid::new("limit", limit, format!("it is 1 to {BATCH_MAX}")))
}
