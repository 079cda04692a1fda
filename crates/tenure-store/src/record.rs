//! Jobs, queues and findings as people read them.

use std::time::Duration;

use tenure_core::apply::Rules;
use tenure_core::name::{GateName, KindName, QueueName, TenantName, check_text};
use tenure_core::run::Part;
use tenure_core::{How, Invalid, JobId, Json, LeaseNo, Priority, State, Timestamp};

/// Whose jobs a caller may see and touch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Sight {
    /// Every tenant's: an operator.
    #[default]
    All,
    /// One tenant's; everything else does not exist.
    Tenant(TenantName),
}

impl Sight {
    /// The one tenant that is seen; `None` for all.
    pub const fn tenant(&self) -> Option<&TenantName> {
        match self {
            Self::All => None,
            Self::Tenant(tenant) => Some(tenant),
        }
    }
}

/// Whether the database itself keeps tenants apart, beside what each statement asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecondWall {
    /// What a tenant asks for runs with no right to see another's.
    Stands,
    /// It could, and does not: why.
    Missing(&'static str),
    /// This store has none.
    None,
}

/// One line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobSummary {
    /// Its id.
    pub id: JobId,
    /// Whose it is.
    pub tenant: TenantName,
    /// Where it waits.
    pub queue: QueueName,
    /// What it asks for.
    pub kind: KindName,
    /// How urgent it is.
    pub priority: Priority,
    /// The gate it passes.
    pub gate: Option<GateName>,
    /// Where it stands.
    pub state: State,
    /// Attempts charged.
    pub attempt: u16,
    /// Attempts allowed.
    pub max_attempts: u16,
    /// When it is or was due.
    pub run_at: Timestamp,
    /// When it was enqueued.
    pub created_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Who holds it.
    pub locked_by: Option<String>,
    /// The last error.
    pub error: Option<Json>,
}

/// One job in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// What a list shows of it.
    pub summary: JobSummary,
    /// For its handler.
    pub payload: Json,
    /// Limits and retry policy.
    pub rules: Rules,
    /// Leases lost.
    pub losses: u16,
    /// Trace context.
    pub trace: Option<String>,
    /// Where its producer wants to be told how it ended.
    pub callback_url: Option<String>,
    /// What it is of its run, if it is a part of one.
    pub part: Option<Part>,
    /// The lease that holds it.
    pub lease: Option<LeaseNo>,
    /// When that lease ends unless renewed.
    pub lease_expires_at: Option<Timestamp>,
    /// When that lease was last renewed.
    pub heartbeat_at: Option<Timestamp>,
    /// Whether its holder was asked to stop.
    pub cancel_requested: bool,
    /// Ended attempts, oldest first.
    pub attempts: Vec<AttemptRecord>,
}

/// One ended attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Its fence.
    pub lease: LeaseNo,
    /// Its number at the time.
    pub attempt: u16,
    /// How it ended.
    pub how: How,
    /// Who held it.
    pub worker: Option<String>,
    /// When it was claimed; `None` for an ending without a lease.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
    /// What went wrong.
    pub error: Option<Json>,
    /// What the handler returned.
    pub result: Option<Json>,
    /// What it used.
    pub usage: Option<Json>,
}

/// Which jobs to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFilter {
    /// What the caller may see.
    pub sight: Sight,
    /// Only these.
    pub state: Option<State>,
    /// Only these.
    pub queue: Option<QueueName>,
    /// Only these.
    pub kind: Option<KindName>,
    /// Only jobs older than this id: the last one of the page before.
    pub before: Option<JobId>,
    /// Only this job and newer ones. With `before` it lists the jobs whose id begins alike: see [`JobId::beginning`].
    pub from: Option<JobId>,
    /// Running, and not renewed for this long.
    pub stuck_for: Option<Duration>,
    /// Only jobs created then or later. They are found by the time in their ids, give or take an hour: one whose producer
    /// had a clock that was further off is left out.
    pub since: Option<Timestamp>,
    /// Only jobs created before, found likewise.
    pub until: Option<Timestamp>,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

impl Default for JobFilter {
    fn default() -> Self {
        Self {
            sight: Sight::All,
            state: None,
            queue: None,
            kind: None,
            before: None,
            from: None,
            stuck_for: None,
            since: None,
            until: None,
            limit: 20,
        }
    }
}

impl JobFilter {
    /// Refuses a page that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::operate::check_batch(self.limit)
    }

    /// Between which ids its jobs are, the first one included: an id is made when its job is, give or take an hour.
    pub fn ids(&self) -> (Option<JobId>, Option<JobId>) {
        const SLACK: Duration = Duration::from_secs(3_600);
        let from = self.since.map(|since| JobId::from_parts(since.minus(SLACK), [0; 10]));
        let until = self.until.map(|until| JobId::from_parts(until.plus(SLACK), [0xff; 10]));
        (from.into_iter().chain(self.from).max(), until.into_iter().chain(self.before).min())
    }

    /// Whether a job of this age is meant.
    pub fn meets(&self, created_at: Timestamp) -> bool {
        self.since.is_none_or(|since| created_at >= since) && self.until.is_none_or(|until| created_at < until)
    }
}

/// Most jobs that one search looks into.
pub const SEARCHED_MAX: u32 = 10_000;
/// Most bytes of payloads that one search reads, give or take a page.
pub const SEARCHED_BYTES_MAX: u64 = 64 << 20;
/// Jobs that a search looks into at a time.
pub const SEARCHED_PAGE: u32 = 250;

/// What a search found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobsFound {
    /// Newest first.
    pub jobs: Vec<JobSummary>,
    /// How many jobs were looked into.
    pub looked_at: u32,
    /// Where to go on, as `before`; `None` when nothing is left.
    pub next: Option<JobId>,
}

/// Refuses a text to search for that is none.
pub fn check_search(text: &str) -> Result<(), Invalid> {
    check_text("text", text)
}

/// A queue and what is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRecord {
    /// Its name.
    pub name: QueueName,
    /// Whether claims are stopped.
    pub paused: bool,
    /// Whether each tenant has a line of its own.
    pub fair: bool,
    /// How many jobs may be pending, of each tenant where it is fair, of all where it is not.
    pub quota: Option<u32>,
    /// How long a lease lasts without renewal.
    pub lease_ttl: Duration,
    /// Due and claimable.
    pub due: u64,
    /// Waiting for their time or for an opening.
    pub scheduled: u64,
    /// Of these, those that wait for an opening.
    pub waiting: u64,
    /// Of those that are due or scheduled, those that failed before and are tried again.
    pub retryable: u64,
    /// Under a lease.
    pub running: u64,
    /// When the job that waits longest became due.
    pub oldest_due: Option<Timestamp>,
}

/// How many attempts of one kind ended one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndingCount {
    /// Where.
    pub queue: QueueName,
    /// Of what.
    pub kind: KindName,
    /// How.
    pub how: How,
    /// How many.
    pub count: u64,
}

/// Longest time that endings are counted over: the count walks over each of them.
pub const ENDINGS_WITHIN_MAX: Duration = Duration::from_secs(7 * 86_400);
/// Most lines a count of endings answers; kinds are the user's to invent.
pub const ENDING_COUNTS_MAX: u32 = 10_000;

impl EndingCount {
    /// Refuses to count over nothing or over more than a week.
    pub fn check_within(within: Duration) -> Result<(), Invalid> {
        if !within.is_zero() && within <= ENDINGS_WITHIN_MAX {
            return Ok(());
        }
        let value = tenure_core::duration::format(within);
        Err(Invalid::new("within", value, "endings are counted over more than nothing and at most 7d"))
    }
}

/// A step of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    /// 1, 2, 3 …
    pub version: i32,
    /// What it is for.
    pub name: String,
    /// Whether this store has it.
    pub applied: bool,
}

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which, by its id in docs/ARCHITECTURE.md.
    pub invariant: String,
    /// Where.
    pub job: Option<JobId>,
    /// What was seen.
    pub detail: String,
}
