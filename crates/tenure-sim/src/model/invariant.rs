//! What must hold in every state, by the ids that mutants and tests cite.

use std::fmt;

/// A promise of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Invariant {
    /// At most one accepted completion.
    I1,
    /// Only the current grant is listened to.
    I2,
    /// The end is the end.
    I3,
    /// Fences only grow.
    I4,
    /// A job that kills its workers does not do so for ever.
    I5,
    /// Permits of a gate.
    I6,
    /// R1 and R2 of docs/ARCHITECTURE.md: the counts and the fan-in of a run.
    I7,
    /// A lost reply is found again.
    I8,
    /// A cancel meets its job.
    I9,
    /// The breaker of a gate.
    I11,
    /// S1 of docs/ARCHITECTURE.md: the fires of a schedule.
    I12,
    /// L1 and L2 of docs/ARCHITECTURE.md: ready, under one live lease, or ended.
    I10,
    /// Liveness.
    L,
}

impl Invariant {
    /// What it says.
    pub const fn says(self) -> &'static str {
        match self {
            Self::I1 => "a job is completed at most once",
            Self::I2 => "no report of a stale grant is accepted",
            Self::I3 => "an ended job changes by an operator's word only",
            Self::I4 => "no two grants share a fence",
            Self::I5 => "a job is started a bounded number of times",
            Self::I6 => "permits in use are the live leases, never more than the limit",
            Self::I7 => "a run counts what its members are, and its consolidate opens once, after all of them",
            Self::I8 => "a repeated report is answered with what the first one did",
            Self::I9 => "a job whose cancel was requested is neither put back nor handed out",
            Self::I11 => "one probe tries a half-open breaker, and no word from before moves it",
            Self::I12 => "a fire has one job at most, in its time, and none that was decided on is lost",
            Self::I10 => "a job is in exactly one place",
            Self::L => "from everywhere healthy steps alone lead to the end",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}
