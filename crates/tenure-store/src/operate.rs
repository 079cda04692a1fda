//! What operators and policies ask for.

use std::str::FromStr;
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

/// Make a job due that waits for its time.
#[derive(Debug, Clone)]
pub struct HastenJob {
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
    /// How many jobs may be pending; `None` leaves it as it is. Jobs that are there already stay, however many.
    pub quota: Option<Quota>,
}

/// How many jobs may be pending in a queue, stored and not yet claimed: of each tenant where the queue is fair, of all
/// where it is not. An enqueue that would go past it is refused. Enqueues that commit at the same time do not see each
/// other, so it can be passed by what is under way at once; jobs that come back (retries, pages, requeues) always may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// As many as come.
    Unlimited,
    /// At most so many: 1 to [`QUOTA_MAX`].
    Pending(u32),
}

/// Stop or resume claims of a queue.
#[derive(Debug, Clone)]
pub struct PauseQueue {
    /// Which. An unknown one is refused.
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
/// The highest quota: each enqueue into a queue that has one counts what is pending.
pub const QUOTA_MAX: u32 = 100_000;
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
        Self { queue, lease_ttl, fair: None, quota: None }
    }

    /// Refuses a lease time that is too short to renew or too long to wait for, and a quota out of bounds.
    pub fn check(&self) -> Result<(), Invalid> {
        self.quota.map_or(Ok(()), Quota::check)?;
        let is_limited = self.fair == Some(true) || self.quota.is_some_and(|quota| quota.pending().is_some());
        if self.queue.as_str() == tenure_core::webhook::OWN_QUEUE && is_limited {
            let limit =
                "the server's own jobs wait there: it is not fair and has no quota, or nobody would be told anything";
            return Err(Invalid::new("queue", &self.queue, limit));
        }
        if (Duration::from_secs(1)..=Duration::from_secs(86_400)).contains(&self.lease_ttl) {
            return Ok(());
        }
        let value = tenure_core::duration::format(self.lease_ttl);
        Err(Invalid::new("lease_ttl", value, "a lease lasts 1s to 1d"))
    }
}

/// `none`, or a number.
impl FromStr for Quota {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        if text == "none" {
            return Ok(Self::Unlimited);
        }
        let quota = text.parse().ok().filter(|quota| (1..=QUOTA_MAX).contains(quota));
        quota.map(Self::Pending).ok_or_else(|| Self::out_of_bounds(text))
    }
}

impl Quota {
    fn out_of_bounds(value: impl std::fmt::Display) -> Invalid {
        Invalid::new("quota", value, format!("it is 1 to {QUOTA_MAX} pending jobs, or none"))
    }

    /// Refuses a number out of bounds.
    pub fn check(self) -> Result<(), Invalid> {
        match self {
            Self::Pending(quota) if !(1..=QUOTA_MAX).contains(&quota) => Err(Self::out_of_bounds(quota)),
            _ => Ok(()),
        }
    }

    /// The most that may be pending, where there is a bound.
    pub const fn pending(self) -> Option<u32> {
        match self {
            Self::Unlimited => None,
            Self::Pending(quota) => Some(quota),
        }
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
