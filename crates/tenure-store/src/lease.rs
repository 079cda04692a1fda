//! What workers ask and hear: claim, renew, end, reclaim.

use std::time::Duration;

use tenure_core::apply::Rules;
use tenure_core::gate::HOLD_MAX;
use tenure_core::name::{GateName, KindName, QueueName, TenantName, WorkerName};
use tenure_core::{Health, How, Invalid, JobId, Json, LeaseNo, Part, Priority, Timestamp, WorkerId};

use crate::usage::check_usage;

/// Most jobs one lease lists: a claim asks for 1 to this many.
pub const LEASE_JOBS_MAX: u32 = 256;
/// KiB of payloads after which a claim takes no further job. A claim takes at least one.
pub const CLAIM_KIB_MAX: u32 = 8 << 10;
/// Largest result, in bytes of JSON.
pub const RESULT_BYTES_MAX: usize = 1 << 20;
/// Longest error text kept, in bytes; the rest is cut off with a mark.
pub const ERROR_BYTES_MAX: usize = 8 << 10;
/// Largest error document that a store takes, in bytes. Lists read the errors of all their rows.
const STORED_ERROR_BYTES_MAX: usize = 64 << 10;

/// Take due jobs of a queue.
#[derive(Debug, Clone)]
pub struct ClaimJobs {
    /// Who takes them.
    pub worker: WorkerId,
    /// From where.
    pub queue: QueueName,
    /// At most this many, 1..=[`LEASE_JOBS_MAX`].
    pub limit: u32,
    /// Begin with the least urgent. A worker asks so every eighth time ([`ClaimJobs::turn`]), and low priorities move
    /// on however many urgent jobs there are.
    pub lowest_first: bool,
}

/// Of so many claims of a queue one begins with the least urgent jobs.
pub const LOWEST_FIRST_EVERY: u64 = 8;

/// A batch of jobs under one lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The fence of everything the holder will say about them.
    pub lease: LeaseNo,
    /// How long the lease lasts from the moment the claim was *sent*.
    pub ttl: Duration,
    /// The jobs, most urgent first. Empty when all that was due had a cancel request.
    pub jobs: Vec<ClaimedJob>,
    /// Jobs ended instead of handed out, because their cancel was requested.
    pub canceled: Vec<JobId>,
}

/// One job in its holder's hands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedJob {
    /// Its id.
    pub id: JobId,
    /// Whose it is.
    pub tenant: TenantName,
    /// What it asks for.
    pub kind: KindName,
    /// For its handler.
    pub payload: Json,
    /// How urgent it was.
    pub priority: Priority,
    /// The number of this attempt; 1 is the first.
    pub attempt: u16,
    /// Leases lost before.
    pub losses: u16,
    /// Limits and retry policy.
    pub rules: Rules,
    /// Trace context to continue.
    pub trace: Option<String>,
    /// The gate it passed.
    pub gate: Option<GateName>,
    /// What it is of a run.
    pub part: Option<Part>,
    /// When it was due.
    pub run_at: Timestamp,
    /// When it was enqueued.
    pub created_at: Timestamp,
}

/// Push deadlines out.
#[derive(Debug, Clone)]
pub struct RenewLeases {
    /// The holder.
    pub worker: WorkerId,
    /// By number, never "all of mine": that would keep alive what a lost reply left behind.
    pub leases: Vec<LeaseNo>,
}

/// What a renewal did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Renewed {
    /// Leases that are good for another time as long as they were claimed with, from the moment the renewal was *sent*.
    pub leases: Vec<LeaseNo>,
    /// Jobs under these leases that somebody asked to cancel.
    pub cancel_requested: Vec<JobId>,
}

/// Report how jobs of one lease ended.
#[derive(Debug, Clone)]
pub struct EndJobs {
    /// The holder.
    pub worker: WorkerId,
    /// Its lease.
    pub lease: LeaseNo,
    /// Each job once.
    pub jobs: Vec<EndJob>,
}

/// Report how one job ended.
#[derive(Debug, Clone)]
pub struct EndJob {
    /// The job.
    pub job: JobId,
    /// How.
    pub ending: Ending,
    /// What it says of the gate it passed.
    pub gate: GateWord,
}

/// What a holder says of its gate, apart from how its job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GateWord {
    /// How the resource did. `None`: as the ending tells.
    pub health: Option<Health>,
    /// The ending tells nothing either: the resource was not called.
    pub silent: bool,
    /// The resource asked for silence: nothing passes for this long, at most [`HOLD_MAX`].
    pub hold: Option<Duration>,
}

/// How an attempt ended, as core decided from what the holder said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// Done.
    Succeeded {
        /// What the handler returned.
        result: Option<Json>,
        /// What it used.
        usage: Option<Json>,
    },
    /// Try again after `delay`. Stored as dead when the attempts are used up all the same.
    Retry {
        /// From now, by the store's clock.
        delay: Duration,
        /// What went wrong.
        error: Json,
    },
    /// A permanent error.
    Failed {
        /// What went wrong.
        error: Json,
    },
    /// Dead now.
    Dead {
        /// What went wrong.
        error: Json,
    },
    /// The holder stopped because it was asked to, or decided so.
    Canceled {
        /// Why, if there is more to say.
        error: Option<Json>,
    },
    /// Later, uncharged.
    Snoozed {
        /// From now, by the store's clock.
        delay: Duration,
    },
    /// Given back, uncharged.
    Released {
        /// From now, by the store's clock.
        delay: Duration,
    },
}

/// The answer to one report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Written now. `how` differs from the report when a requested cancel won over putting the job back, or when a
    /// retry had no attempts left.
    Now(How),
    /// Written before by this very report, whose reply was lost.
    Before(How),
    /// The lease no longer holds the job. `how` tells how the grant ended, where that is known.
    LeaseLost {
        /// `lost` when reclaimed, `canceled` when fenced by force.
        how: Option<How>,
    },
    /// Not written: somebody's open transaction is ending this very attempt. Ask again.
    Busy,
}

/// One job taken back from an expired lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reclaimed {
    /// The job.
    pub job: JobId,
    /// The lease that expired.
    pub lease: LeaseNo,
    /// Who held it, for the log.
    pub worker: Option<WorkerName>,
    /// `lost` when it is queued again, `dead` when its losses are used up, `canceled` when that was requested.
    pub how: How,
}

/// Refuses to be asked about more jobs than a lease can list.
pub fn check_listed(jobs: &[JobId]) -> Result<(), Invalid> {
    if jobs.len() <= LEASE_JOBS_MAX as usize {
        return Ok(());
    }
    Err(Invalid::new("jobs", jobs.len(), format!("a lease lists at most {LEASE_JOBS_MAX} jobs")))
}

impl ClaimJobs {
    /// Most urgent first.
    pub const fn new(worker: WorkerId, queue: QueueName, limit: u32) -> Self {
        Self { worker, queue, limit, lowest_first: false }
    }

    /// A worker's `turn`-th claim of a queue: most urgent first, but every eighth time the other way round.
    pub const fn turn(worker: WorkerId, queue: QueueName, limit: u32, turn: u64) -> Self {
        let lowest_first = turn % LOWEST_FIRST_EVERY == LOWEST_FIRST_EVERY - 1;
        Self { worker, queue, limit, lowest_first }
    }

    /// The priorities in the order they are looked at.
    pub fn order(&self) -> [Priority; 4] {
        let mut order = Priority::ALL;
        if self.lowest_first {
            order.reverse();
        }
        order
    }

    /// Refuses a limit outside of 1..=256.
    pub fn check(&self) -> Result<(), Invalid> {
        if (1..=LEASE_JOBS_MAX).contains(&self.limit) {
            return Ok(());
        }
        Err(Invalid::new("limit", self.limit, format!("a claim takes 1 to {LEASE_JOBS_MAX} jobs")))
    }
}

impl EndJob {
    /// A report that says nothing else of the gate.
    pub fn new(job: JobId, ending: Ending) -> Self {
        Self { job, ending, gate: GateWord::default() }
    }

    /// How the resource behind the gate did: as the holder says, else well when the job succeeded and badly when it is to
    /// be tried again. A permanent error is usually the job's own, and whoever gives a job back knows nothing.
    pub fn health(&self) -> Option<Health> {
        self.gate.health.or(match self.ending {
            _ if self.gate.silent => None,
            Ending::Succeeded { .. } => Some(Health::Healthy),
            Ending::Retry { .. } => Some(Health::Unhealthy),
            _ => None,
        })
    }

    /// For how long the resource asked for silence.
    pub fn hold(&self) -> Option<Duration> {
        self.gate.hold.map(|hold| hold.min(HOLD_MAX))
    }
}

impl EndJobs {
    /// Refuses a report that names a job twice, names none, or carries more than can be stored.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.jobs.is_empty() || self.jobs.len() > LEASE_JOBS_MAX as usize {
            return Err(Invalid::new("report", self.jobs.len(), format!("it names 1 to {LEASE_JOBS_MAX} jobs")));
        }
        let mut ids: Vec<JobId> = self.jobs.iter().map(|end| end.job).collect();
        ids.sort_unstable();
        if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Invalid::new("report", twice[0], "it names each job once"));
        }
        self.jobs.iter().try_for_each(|end| end.ending.check())
    }
}

impl Ending {
    /// How the attempt ends, as reported.
    pub const fn how(&self) -> How {
        match self {
            Self::Succeeded { .. } => How::Succeeded,
            Self::Retry { .. } => How::Retry,
            Self::Failed { .. } => How::Failed,
            Self::Dead { .. } => How::Dead,
            Self::Canceled { .. } => How::Canceled,
            Self::Snoozed { .. } => How::Snoozed,
            Self::Released { .. } => How::Released,
        }
    }

    /// The wait before the job is due again; zero where it is not put back.
    pub const fn delay(&self) -> Duration {
        match self {
            Self::Retry { delay, .. } | Self::Snoozed { delay } | Self::Released { delay } => *delay,
            Self::Succeeded { .. } | Self::Failed { .. } | Self::Dead { .. } | Self::Canceled { .. } => Duration::ZERO,
        }
    }

    /// The error, the result and the usage to store.
    pub const fn details(&self) -> (Option<&Json>, Option<&Json>, Option<&Json>) {
        match self {
            Self::Succeeded { result, usage } => (None, result.as_ref(), usage.as_ref()),
            Self::Retry { error, .. } | Self::Failed { error } | Self::Dead { error } => (Some(error), None, None),
            Self::Canceled { error } => (error.as_ref(), None, None),
            Self::Snoozed { .. } | Self::Released { .. } => (None, None, None),
        }
    }

    /// Whether a stored ending `how` is this report's own: the reply was lost, or the rules turned it into another.
    pub fn is_answered_by(&self, how: How) -> bool {
        let put_back = !self.how().is_final();
        how == self.how()
            || (put_back && how == How::Canceled)
            || (matches!(self, Self::Retry { .. }) && how == How::Dead)
    }

    fn check(&self) -> Result<(), Invalid> {
        let (error, result, usage) = self.details();
        error.map_or(Ok(()), |error| error.check_bytes("error", STORED_ERROR_BYTES_MAX))?;
        result.map_or(Ok(()), |result| result.check_bytes("result", RESULT_BYTES_MAX))?;
        usage.map_or(Ok(()), check_usage)
    }
}
