//! The lease protocol as a machine.
//!
//! ```text
//!            ready row                       lease row, never rewritten                 attempt row
//!           ┌─────────┐  claim: delete      ┌──────────────────────────┐  end: insert  ┌────────────────┐
//! enqueue ─►│   J1    │────────────────────►│ no 7 · W1 · J1 J2 · until│──────────────►│ key (J1, 7)    │──► final:
//!           └─────────┘  and insert         └──────────────────────────┘  the key      │ how it ended   │    the end
//!             ▲  ▲                             │ overdue       ▲          decides      └────────────────┘
//!             │  │                             ▼               │ key share                 │
//!             │  └── reclaim: insert `lost` on conflict do     │                           │ retry, snooze, release
//!             │      nothing, delete the row; skip what is ────┘ a user's open transaction │
//!             │      locked                                      that completes J1         │
//!             └────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Terms. A *grant* is one job under one lease. Who may speak for a job is decided by the store alone, by two facts: the
//! lease row lists the job, and no attempt row of key (job, lease) is there. A worker's memory ([`state::Hand`]) is
//! what it believes, and the whole point is that this may be old.
//!
//! Time is abstract: [`Step::Expire`] may happen to any lease at any moment, so pauses, slow networks and clocks that run
//! apart are all in it; a worker that takes no step is frozen. A reply may be lost after the store did what was asked
//! (`lost`); then the worker repeats itself, or, for a claim, never hears of the lease. A crash is a process that forgets
//! everything; its open transaction is ended by the server, some time later.
//!
//! On failure: whatever a stale worker says finds no row to stand on. Its report is answered with how the grant ended
//! (`Before` when that was its own report, `LeaseLost` otherwise) and changes nothing.
//!
//! [`Store`] holds the two differences between our stores: whether a user's transaction can stay open beside other
//! writers, and whether an emptied lease goes with any report or only with one that ended all of it.

mod enabled;
mod ending;
mod leave;
mod mutant;
mod normal;
mod operate;
mod rules;
pub mod state;
mod step;

pub use mutant::Mutant;
pub use rules::{Rules, Store};
pub use step::{Heard, Jobs, Step};

use super::invariant::Invariant;
use super::search::Machine;
use state::World;

/// `J` jobs, `W` workers, at most `S` leases at a time.
#[derive(Debug, Clone, Copy)]
pub struct Leases<const J: usize, const W: usize, const S: usize> {
    /// What is allowed, and what is broken.
    pub rules: Rules,
}

impl<const J: usize, const W: usize, const S: usize> Leases<J, W, S> {
    /// Takes a step and says what its taker hears.
    pub fn hear(&self, world: &mut World<J, W, S>, step: Step) -> Result<Heard, Invariant> {
        let rules = &self.rules;
        let heard = match step {
            Step::Enqueue { job } => world.enqueue(job.into()),
            Step::Claim { worker, jobs, lost } => world.claim(rules, worker.into(), jobs, lost)?,
            Step::Report { worker, jobs, ending, lost } => world.report(rules, worker.into(), jobs, ending, lost)?,
            Step::Repeat { worker, job, lost } => world.repeat(rules, worker.into(), job.into(), lost)?,
            Step::Begin { worker, job } => world.begin(worker.into(), job.into()),
            Step::Commit { worker, job } => world.commit(worker.into(), job.into())?,
            Step::Rollback { worker, job } => world.roll_back(worker.into(), job.into()),
            Step::CompleteIn { worker, job, kept } => world.complete_in(worker.into(), job.into(), kept)?,
            Step::Look { worker, job } => world.look(rules, worker.into(), job.into()),
            Step::Abort { lease, job } => world.abort(lease, job.into()),
            Step::Renew { worker } => world.renew(worker.into()),
            Step::Drop { worker } => world.drop_lease(worker.into()),
            Step::ReleaseUnknown { worker } => world.release_unknown(rules, worker)?,
            Step::Crash { worker } => world.crash(worker),
            Step::Expire { lease } => world.expire(lease),
            Step::Reclaim => world.reclaim(rules)?,
            Step::Cancel { job, force } => world.cancel(job.into(), force)?,
            Step::Ask { job } => world.ask(job.into()),
            Step::CommitAsk { job } => world.commit_ask(job.into()),
            Step::Requeue { job } => world.requeue(job.into()),
            Step::Prune => world.prune(rules),
            Step::ReaperReads { lease } => world.reaper_reads(lease),
            Step::ReaperWrites => world.reaper_writes()?,
        };
        self.check(world)?;
        world.forget();
        if rules.normal {
            world.normalise(rules.is(Mutant::FenceIsAttempt));
        }
        Ok(heard)
    }

    /// What can be asked of a state by itself.
    fn check(&self, world: &World<J, W, S>) -> Result<(), Invariant> {
        for (at, job) in world.jobs.iter().enumerate().filter(|(_, job)| job.there) {
            if job.completions > 1 {
                return Err(Invariant::I1);
            }
            if job.starts > self.rules.max_attempts + self.rules.max_losses - 1 + job.excused {
                return Err(Invariant::I5);
            }
            if world.places(at) != 1 {
                return Err(Invariant::I10);
            }
        }
        Ok(())
    }
}

impl<const J: usize, const W: usize, const S: usize> Machine for Leases<J, W, S> {
    type State = World<J, W, S>;
    type Step = Step;

    fn start(&self) -> World<J, W, S> {
        World::new(!self.rules.enqueue)
    }

    fn steps(&self, world: &World<J, W, S>, next: &mut Vec<Step>) {
        enabled::steps(&self.rules, world, next);
    }

    fn take(&self, world: &mut World<J, W, S>, step: Step) -> Result<(), Invariant> {
        self.hear(world, step).map(|_| ())
    }

    fn is_healthy(&self, world: &World<J, W, S>, step: Step) -> bool {
        enabled::is_healthy(&self.rules, world, step)
    }

    fn is_over(&self, world: &World<J, W, S>) -> bool {
        world.jobs.iter().all(|job| !job.there || job.ended.is_some())
    }

    fn tell(&self, world: &World<J, W, S>, step: Step) -> String {
        match self.hear(&mut world.clone(), step) {
            Ok(heard) => format!("{step}{heard}"),
            Err(broken) => format!("{step}: breaks {broken}"),
        }
    }
}
