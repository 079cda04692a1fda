//! The alphabet: everything that can happen, one store call each.

use std::fmt;

use tenure_core::How;
use tenure_store::lease::Ended;

/// Jobs as a set of bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Jobs(pub u8);

/// One thing that happens. `worker` and `job` are places in the world's arrays; `lost` means that the store did it and the
/// worker never heard.
#[expect(missing_docs, reason = "what the fields are is said above")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    /// A producer stores a new job.
    Enqueue { job: u8 },
    /// A worker takes these ready jobs under one new lease.
    Claim { worker: u8, jobs: Jobs, lost: bool },
    /// A worker reports these jobs of its lease in one call.
    Report { worker: u8, jobs: Jobs, ending: How, lost: bool },
    /// A worker reports again what had no answer, or for the first time what a transaction left undone.
    Repeat { worker: u8, job: u8, lost: bool },
    /// A handler completes its job in a transaction of its own and leaves that open.
    Begin { worker: u8, job: u8 },
    /// It commits.
    Commit { worker: u8, job: u8 },
    /// It rolls back, or the server does.
    Rollback { worker: u8, job: u8 },
    /// All three at once, where there is one writer only.
    CompleteIn { worker: u8, job: u8, kept: bool },
    /// After a handler said `Completed` its worker looks for the attempt.
    Look { worker: u8, job: u8 },
    /// The server ends the transaction of a process that died.
    Abort { lease: u16, job: u8 },
    /// A heartbeat that comes late: the lease was overdue.
    Renew { worker: u8 },
    /// The keeper drops the lease whose jobs have all ended.
    Drop { worker: u8 },
    /// A worker gives back what lost claim replies left to it.
    ReleaseUnknown { worker: u8 },
    /// `kill -9`; another process takes its place.
    Crash { worker: u8 },
    /// Time passes over one lease. A pause, a slow network and a skewed clock look like this.
    Expire { lease: u16 },
    /// Whoever comes along takes back what overdue leases hold.
    Reclaim,
    /// An operator ends a job, or asks its holder to.
    Cancel { job: u8, force: bool },
    /// An operator asks a running job's holder, in a transaction that stays open.
    Ask { job: u8 },
    /// That transaction commits.
    CommitAsk { job: u8 },
    /// An operator revives an ended job.
    Requeue { job: u8 },
    /// Retention deletes what has ended.
    Prune,
    /// A reaper of two statements reads what is overdue (a mutant's).
    ReaperReads { lease: u16 },
    /// And writes what it read.
    ReaperWrites,
}

/// What the one who took a step hears.
#[expect(missing_docs, reason = "named after what they hold")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// Done, nothing to tell.
    Done,
    /// The number of the new lease (zero: none was needed), what was granted, and what was ended instead.
    Claimed { lease: u16, granted: Jobs, canceled: Jobs },
    /// Each job of a report by itself; those not reported are `None`.
    Ended([Option<Ended>; 8]),
    /// A completion inside a transaction was refused.
    LeaseLost,
    /// What was found.
    Found(Option<How>),
    /// Jobs that were given back or taken back.
    Back(Jobs),
    /// The holder is asked.
    Requested,
}

impl Step {
    /// The kind of step, for counters.
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Enqueue { .. } => "enqueue",
            Self::Claim { lost: false, .. } => "claim",
            Self::Claim { lost: true, .. } => "claim, reply lost",
            Self::Report { lost: false, .. } => "report",
            Self::Report { lost: true, .. } => "report, reply lost",
            Self::Repeat { .. } => "repeat",
            Self::Begin { .. } => "begin",
            Self::Commit { .. } => "commit",
            Self::Rollback { .. } => "rollback",
            Self::CompleteIn { kept: true, .. } => "complete in a transaction",
            Self::CompleteIn { kept: false, .. } => "complete in a transaction, rolled back",
            Self::Look { .. } => "look",
            Self::Abort { .. } => "abort",
            Self::Renew { .. } => "renew",
            Self::Drop { .. } => "drop",
            Self::ReleaseUnknown { .. } => "release unknown",
            Self::Crash { .. } => "crash",
            Self::Expire { .. } => "expire",
            Self::Reclaim => "reclaim",
            Self::Cancel { force: false, .. } => "cancel",
            Self::Cancel { force: true, .. } => "force cancel",
            Self::Ask { .. } => "ask",
            Self::CommitAsk { .. } => "commit the request",
            Self::Requeue { .. } => "requeue",
            Self::Prune => "prune",
            Self::ReaperReads { .. } => "reaper reads",
            Self::ReaperWrites => "reaper writes",
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lost = |lost: bool| if lost { ", and the reply is lost" } else { "" };
        match *self {
            Self::Enqueue { job } => write!(f, "{} is enqueued", J(job)),
            Self::Claim { worker, jobs, lost: l } => write!(f, "{} claims {jobs}{}", W(worker), lost(l)),
            Self::Report { worker, jobs, ending, lost: l } => {
                write!(f, "{} reports {jobs} {}{}", W(worker), ending.as_str(), lost(l))
            }
            Self::Repeat { worker, job, lost: l } => write!(f, "{} reports {} again{}", W(worker), J(job), lost(l)),
            Self::Begin { worker, job } => write!(f, "{} completes {} in an open transaction", W(worker), J(job)),
            Self::Commit { worker, job } => write!(f, "{} commits the completion of {}", W(worker), J(job)),
            Self::Rollback { worker, job } => write!(f, "{} rolls the completion of {} back", W(worker), J(job)),
            Self::CompleteIn { worker, job, kept: true } => {
                write!(f, "{} completes {} in a transaction", W(worker), J(job))
            }
            Self::CompleteIn { worker, job, kept: false } => {
                write!(f, "{} completes {} in a transaction and rolls it back", W(worker), J(job))
            }
            Self::Look { worker, job } => write!(f, "{} looks whether {} was completed", W(worker), J(job)),
            Self::Abort { lease, job } => {
                write!(f, "the server rolls back what a dead worker left of {} under lease {lease}", J(job))
            }
            Self::Renew { worker } => write!(f, "{} renews its overdue lease", W(worker)),
            Self::Drop { worker } => write!(f, "{} drops its lease", W(worker)),
            Self::ReleaseUnknown { worker } => write!(f, "{} gives back leases it never heard of", W(worker)),
            Self::Crash { worker } => write!(f, "{} is killed", W(worker)),
            Self::Expire { lease } => write!(f, "lease {lease} expires"),
            Self::Reclaim => write!(f, "overdue leases are reclaimed"),
            Self::Cancel { job, force } => {
                write!(f, "an operator cancels {}{}", J(job), if force { " by force" } else { "" })
            }
            Self::Ask { job } => write!(f, "an operator asks for the end of {}, not committed yet", J(job)),
            Self::CommitAsk { job } => write!(f, "the request to end {} is committed", J(job)),
            Self::Requeue { job } => write!(f, "an operator requeues {}", J(job)),
            Self::Prune => write!(f, "what has ended is pruned"),
            Self::ReaperReads { lease } => write!(f, "a reaper reads overdue lease {lease}"),
            Self::ReaperWrites => write!(f, "the reaper puts back what it read"),
        }
    }
}

impl fmt::Display for Heard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => Ok(()),
            Self::Claimed { lease, canceled: Jobs(0), .. } => write!(f, " (lease {lease})"),
            Self::Claimed { lease, granted, canceled } => write!(f, " (lease {lease}: {granted}; ended: {canceled})"),
            Self::Ended(answers) => {
                for (job, answer) in answers.iter().enumerate() {
                    match answer {
                        None => {}
                        Some(Ended::Now(how)) => write!(f, " ({} is {})", J(job as u8), how.as_str())?,
                        Some(Ended::Before(how)) => write!(f, " ({} was {} before)", J(job as u8), how.as_str())?,
                        Some(Ended::LeaseLost { .. }) => write!(f, " ({}: lease lost)", J(job as u8))?,
                        Some(Ended::Busy) => write!(f, " ({}: busy)", J(job as u8))?,
                    }
                }
                Ok(())
            }
            Self::LeaseLost => write!(f, " (lease lost)"),
            Self::Found(None) => write!(f, " (it was not)"),
            Self::Found(Some(how)) => write!(f, " ({})", how.as_str()),
            Self::Back(jobs) => write!(f, " ({jobs})"),
            Self::Requested => write!(f, " (its holder is asked)"),
        }
    }
}

/// A job's name in a story.
struct J(u8);
/// A worker's name in a story.
struct W(u8);

impl fmt::Display for J {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "J{}", self.0 + 1)
    }
}

impl fmt::Display for W {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "W{}", self.0 + 1)
    }
}

impl Jobs {
    /// One job.
    pub const fn one(job: usize) -> Self {
        Self(1 << job)
    }

    /// Whether it is among them.
    pub const fn has(self, job: usize) -> bool {
        self.0 & (1 << job) != 0
    }

    /// With one more.
    #[must_use]
    pub const fn with(self, job: usize) -> Self {
        Self(self.0 | (1 << job))
    }

    /// How many.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn each(self) -> impl Iterator<Item = usize> {
        (0..8).filter(move |job| self.has(*job))
    }

    /// Every set of one or more of them.
    pub fn subsets(self) -> impl Iterator<Item = Self> {
        (1..=self.0).map(Self).filter(move |set| set.0 & !self.0 == 0)
    }
}

impl FromIterator<usize> for Jobs {
    fn from_iter<I: IntoIterator<Item = usize>>(jobs: I) -> Self {
        jobs.into_iter().fold(Self(0), Self::with)
    }
}

impl fmt::Display for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.each().map(|job| J(job as u8).to_string()).collect();
        write!(f, "{}", if names.is_empty() { "nothing".into() } else { names.join(" and ") })
    }
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
