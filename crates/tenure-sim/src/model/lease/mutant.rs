//! Ways to break the protocol, each one switch, each copied from somebody who shipped it.

use super::super::invariant::Invariant;

/// One thing done differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// Oban's basic engine, graphile-worker, pgmq: `where id = $1`.
    CompleteById,
    /// River, pg-boss: `where id = $1 and state = 'running'`.
    CompleteIfRunning,
    /// Procrastinate: `status in ('todo', 'doing')`.
    CompleteIfOpen,
    /// What Oban's snooze takes back cannot fence; awa's ADR-013 says so.
    FenceIsAttempt,
    /// wavect/semaprax#192, and SQLite's row ids without `autoincrement`: the next number comes from the rows that are
    /// there.
    FenceRestarts,
    /// riverqueue/river#1302: the rescuer reads, then writes by id.
    ReaperInTwoSteps,
    /// A crash that costs nothing: sidekiq#3400, faktory#99, and every queue whose poison jobs come back for ever.
    LossNotCounted,
    /// ATTACK S4, in an earlier form of this protocol: retention looks at the job alone.
    PruneBesideSibling,
    /// ATTACK S7: no lease row, so it must be lost.
    NoLookUp,
    /// ATTACK S10: a claim that does not look for requests.
    ClaimIgnoresRequest,
    /// ATTACK S10: a retry that does not look for requests.
    RetryIgnoresRequest,
    /// ATTACK S5: `Completed` is believed, and the lease renewed for ever.
    RollbackUnreported,
    /// ATTACK: neither the lock on the lease nor the key (job, lease) stands between reclaim and an open completion.
    ReclaimOverOpenTx,
    /// ATTACK, 702 violations: what follows an ending comes from what was asked instead of what was inserted.
    FollowUpFromInput,
    /// A heartbeat per process, not per lease: what a lost claim reply left behind is kept alive. rails/solid_queue#748 has
    /// jobs that a living worker holds for ever.
    RenewByWorker,
    /// procrastinate#1518: the row that says who holds a job goes before the job.
    DropHeldLease,
}

impl Mutant {
    /// Every one, and the invariant that must notice.
    pub const ALL: &[(Self, Invariant)] = &[
        (Self::CompleteById, Invariant::I2),
        (Self::CompleteIfRunning, Invariant::I2),
        (Self::CompleteIfOpen, Invariant::I2),
        (Self::FenceIsAttempt, Invariant::I4),
        (Self::FenceRestarts, Invariant::I4),
        (Self::ReaperInTwoSteps, Invariant::I3),
        (Self::LossNotCounted, Invariant::I5),
        (Self::PruneBesideSibling, Invariant::I1),
        (Self::NoLookUp, Invariant::I8),
        (Self::ClaimIgnoresRequest, Invariant::I9),
        (Self::RetryIgnoresRequest, Invariant::I9),
        (Self::RollbackUnreported, Invariant::L),
        (Self::ReclaimOverOpenTx, Invariant::I2),
        (Self::FollowUpFromInput, Invariant::I10),
        (Self::RenewByWorker, Invariant::L),
        (Self::DropHeldLease, Invariant::I10),
    ];

    /// Its line in the table.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CompleteById => "complete by id only (Oban basic, graphile, pgmq)",
            Self::CompleteIfRunning => "complete if running (River, pg-boss)",
            Self::CompleteIfOpen => "complete unless ended (Procrastinate)",
            Self::FenceIsAttempt => "the fence is the attempt (Oban snooze, awa ADR-013)",
            Self::FenceRestarts => "the fence restarts (semaprax#192, rowid reuse)",
            Self::ReaperInTwoSteps => "reaper writes what it read (river#1302)",
            Self::LossNotCounted => "a crash costs nothing (sidekiq#3400, faktory#99)",
            Self::PruneBesideSibling => "prune beside a living sibling (ATTACK S4)",
            Self::NoLookUp => "no lease row means lease lost (ATTACK S7)",
            Self::ClaimIgnoresRequest => "claim ignores cancel requests (ATTACK S10)",
            Self::RetryIgnoresRequest => "retry ignores cancel requests (ATTACK S10)",
            Self::RollbackUnreported => "rolled back and nobody reports (ATTACK S5)",
            Self::ReclaimOverOpenTx => "reclaim over an open transaction (ATTACK)",
            Self::FollowUpFromInput => "follow-up from the input (ATTACK, 702)",
            Self::RenewByWorker => "renew by worker, not by lease (solid_queue#748)",
            Self::DropHeldLease => "holder's row goes first (procrastinate#1518)",
        }
    }
}
