//! Which rows of the journal are asked for, newest first.

use std::time::Duration;

use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::{Invalid, JobId, Timestamp};

/// Most rows that one list looks at.
pub const LOOKED_AT_MAX: u32 = 20_000;
/// Rows that a list looks at in one go.
pub const LOOKED_AT_PAGE: u32 = 1_000;
/// How far the time of a row may be from the times of its neighbours: a verb may wait for a lock with its time in hand.
pub const DISORDER_MAX: Duration = Duration::from_secs(60);
/// Under which names the details of a row name what it is about.
pub const SUBJECTS: [&str; 8] = ["queue", "gate", "schedule", "key", "tenant", "endpoint", "run", "worker"];

/// Which rows to list; what is not said is not asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalFilter {
    /// Only these; empty: all.
    pub events: Vec<JournalEvent>,
    /// Only what this one asked for.
    pub actor: Option<String>,
    /// Only what names this job.
    pub job: Option<JobId>,
    /// Only what names this queue, gate, schedule, key, tenant, endpoint, run or worker in its details.
    pub subject: Option<String>,
    /// Only what people and rules did: rows that no worker wrote under a lease.
    pub acts_only: bool,
    /// Only rows from then on.
    pub since: Option<Timestamp>,
    /// Only rows before.
    pub until: Option<Timestamp>,
    /// Only rows with a smaller id: the `next` of the page before.
    pub before: Option<i64>,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

/// What a list found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JournalFound {
    /// Newest first.
    pub rows: Vec<JournalRow>,
    /// How many rows were looked at.
    pub looked_at: u32,
    /// Where to go on, as `before`; `None` when nothing is left.
    pub next: Option<i64>,
}

impl Default for JournalFilter {
    fn default() -> Self {
        Self {
            events: Vec::new(),
            actor: None,
            job: None,
            subject: None,
            acts_only: false,
            since: None,
            until: None,
            before: None,
            limit: 20,
        }
    }
}

impl JournalFilter {
    /// Refuses a page that is empty or too large, and words that are no text.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::operate::check_batch(self.limit)?;
        self.actor.iter().try_for_each(|actor| tenure_core::name::check_text("actor", actor))?;
        self.subject.iter().try_for_each(|subject| tenure_core::name::check_text("subject", subject))
    }

    /// Whether a row is asked for, whatever its id and its subject: details are for the store to read.
    pub fn matches(&self, row: &JournalRow) -> bool {
        (self.events.is_empty() || self.events.contains(&row.event))
            && self.actor.as_ref().is_none_or(|actor| row.actor.as_ref() == Some(actor))
            && self.job.is_none_or(|job| row.jobs.contains(&job))
            && (!self.acts_only || is_act(row))
            && self.since.is_none_or(|since| row.at >= since)
            && self.until.is_none_or(|until| row.at < until)
    }
}

/// Whether people or rules did it: no worker wrote it under a lease.
pub fn is_act(row: &JournalRow) -> bool {
    row.lease.is_none() || row.worker.is_none()
}
