//! What a model allows.

use tenure_core::How;

use super::mutant::Mutant;
use super::step::Jobs;

/// Limits, the store it stands for, and at most one thing done wrong.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Charged attempts before a retry is dead.
    pub max_attempts: u8,
    /// Lost leases before a job is dead.
    pub max_losses: u8,
    /// How often a job may be snoozed or released: nothing else bounds it.
    pub excused_max: u8,
    /// How often a job may be requeued.
    pub requeues_max: u8,
    /// What workers report. The others differ from one of these in their name only.
    pub endings: &'static [How],
    /// The jobs that operators touch. One is enough for a search: jobs are alike.
    pub operated: Jobs,
    /// Whether what has ended is pruned.
    pub prune: bool,
    /// Which of our stores.
    pub store: Store,
    /// Whether jobs come (a walk) or are there from the beginning (a search).
    pub enqueue: bool,
    /// Whether states that differ in nothing of interest are one (a search) or not (a walk).
    pub normal: bool,
    /// What is broken.
    pub mutant: Option<Mutant>,
}

/// Where our stores differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// Transactions stay open beside each other; a report drops the lease when it ended all of it.
    Postgres,
    /// One writer: a transaction is over before anybody else acts; any report drops a lease that is empty.
    Sqlite,
}

impl Rules {
    /// For a search: small, so that it ends.
    pub const fn searched(store: Store) -> Self {
        Self {
            max_attempts: 2,
            max_losses: 1,
            excused_max: 0,
            requeues_max: 0,
            endings: &[How::Succeeded, How::Retry, How::Snoozed],
            operated: Jobs::one(0),
            prune: true,
            store,
            enqueue: false,
            normal: true,
            mutant: None,
        }
    }

    /// The smallest search in which a mutant shows. Operators and retention are part of it where they are part of the
    /// mistake; otherwise the shortest story would be about them.
    pub const fn broken(mutant: Mutant) -> Self {
        let operated = match mutant {
            Mutant::ClaimIgnoresRequest | Mutant::RetryIgnoresRequest => Jobs::one(0),
            _ => Jobs(0),
        };
        let prune = matches!(mutant, Mutant::PruneBesideSibling);
        // A liveness search goes on to the end.
        let max_losses = if matches!(mutant, Mutant::RollbackUnreported | Mutant::RenewByWorker) { 1 } else { 2 };
        Self { max_losses, operated, prune, mutant: Some(mutant), ..Self::searched(Store::Postgres) }
    }

    /// For a walk beside a real store: everything, without end.
    pub const fn walked(store: Store) -> Self {
        Self {
            max_attempts: 2,
            max_losses: 3,
            excused_max: 100,
            requeues_max: 100,
            endings: &[How::Succeeded, How::Retry, How::Failed, How::Dead, How::Canceled, How::Snoozed, How::Released],
            operated: Jobs(u8::MAX),
            enqueue: true,
            normal: false,
            ..Self::searched(store)
        }
    }

    pub(super) fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }
}
