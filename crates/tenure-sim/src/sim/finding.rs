//! What a run found wrong.

use std::fmt;

/// A rule that must hold in every run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// No (job, fence) is executed twice.
    RanTwice,
    /// A handler runs only under a lease that the journal knows.
    RanWithoutGrant,
    /// A handler is stopped before its lease ends, as the store's clock sees it.
    RanPastDeadline,
    /// No two handlers of one job run at once, while clocks and machines behave and nobody uses force.
    RanSideBySide,
    /// A living worker keeps what it runs, until it is told to stop.
    GivenAway,
    /// What a worker heard as accepted is in the journal, under the lease that held the job then.
    StaleAccepted,
    /// What a handler writes in its completing transaction is there once, and only with the completion.
    Effects,
    /// A request that was repeated is one job.
    EnqueuedTwice,
    /// A schedule's fires follow one another, and each has one job.
    Fires,
    /// An acknowledged job is there.
    JobLost,
    /// No more jobs are inside a gate than it allows, and its permits are what leases say.
    TooManyInside,
    /// Every job ends in a bounded time once the faults are over.
    NotEnded,
    /// No more failed attempts and no more lost leases than the job allows.
    TooManyTries,
    /// The store finds no broken invariant, whenever it looks.
    Invariant,
    /// The journal is sealed, and replays through the lifecycle.
    Journal,
    /// A worker that is told to stop does so within its grace period and a second.
    StoppedLate,
    /// A worker ends only when it is told to.
    WorkerEnded,
    /// Both runs of a seed give the same trace.
    NotRepeatable,
}

/// A rule that did not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Which.
    pub rule: Rule,
    /// Where, and what was seen.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.text)
    }
}
