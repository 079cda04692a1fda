//! The other ways out of a lease: a user's transaction, losing it, giving it back.

use tenure_core::How;

use super::super::invariant::Invariant;
use super::enabled::can_be_reclaimed;
use super::mutant::Mutant;
use super::rules::Rules;
use super::state::{Grip, NOBODY, Request, World};
use super::step::{Heard, Jobs};

impl<const J: usize, const W: usize, const S: usize> World<J, W, S> {
    /// The attempt is inserted in an open transaction, which holds the lease for key share.
    pub(super) fn begin(&mut self, worker: usize, job: usize) -> Heard {
        let at = self.find(self.hands[worker].lease).filter(|at| self.leases[*at].holds(job));
        let grip = &mut self.hands[worker].grips[job];
        let Some(grant) = at.and_then(|at| self.leases[at].grants[job].as_mut()) else {
            // The handler fails, and its worker will say so.
            *grip = Grip::Unsure { ending: How::Retry, first: None };
            return Heard::LeaseLost;
        };
        grant.in_tx = true;
        *grip = Grip::InTx;
        Heard::Done
    }

    /// The attempt becomes visible.
    pub(super) fn commit(&mut self, worker: usize, job: usize) -> Result<Heard, Invariant> {
        let no = self.hands[worker].lease;
        self.abort(no, job);
        self.hands[worker].grips[job] = Grip::AfterTx;
        if let Some(at) = self.find(no) {
            self.is_current(at, job, How::Succeeded)?;
            self.write(at, job, How::Succeeded)?;
        }
        Ok(Heard::Done)
    }

    /// It was never there; the handler says `Completed` all the same.
    pub(super) fn roll_back(&mut self, worker: usize, job: usize) -> Heard {
        self.hands[worker].grips[job] = Grip::AfterTx;
        self.abort(self.hands[worker].lease, job)
    }

    /// The server ends a transaction.
    pub(super) fn abort(&mut self, no: u16, job: usize) -> Heard {
        if let Some(grant) = self.find(no).and_then(|at| self.leases[at].grants[job].as_mut()) {
            grant.in_tx = false;
        }
        Heard::Done
    }

    /// Begin and commit, or begin and roll back, with nobody between.
    pub(super) fn complete_in(&mut self, worker: usize, job: usize, kept: bool) -> Result<Heard, Invariant> {
        match self.begin(worker, job) {
            Heard::Done if kept => self.commit(worker, job),
            Heard::Done => Ok(self.roll_back(worker, job)),
            refused => Ok(refused),
        }
    }

    /// `Completed` is not believed: what is not there is a transient failure.
    pub(super) fn look(&mut self, rules: &Rules, worker: usize, job: usize) -> Heard {
        let found = self.grant(self.hands[worker].lease, job).and_then(|grant| grant.ended);
        self.hands[worker].grips[job] = match found {
            None if !rules.is(Mutant::RollbackUnreported) => Grip::Unsure { ending: How::Retry, first: None },
            _ => Grip::No,
        };
        Heard::Found(found)
    }

    /// By its number; overdue is not lost.
    pub(super) fn renew(&mut self, worker: usize) -> Heard {
        if let Some(at) = self.find(self.hands[worker].lease) {
            self.leases[at].expired = false;
        }
        Heard::Done
    }

    /// An emptied lease goes.
    pub(super) fn drop_lease(&mut self, worker: usize) -> Heard {
        if let Some(at) = self.find(self.hands[worker].lease) {
            self.leases[at].row = false;
        }
        Heard::Done
    }

    /// The process is gone and remembers nothing; what it held stays until somebody takes it back.
    pub(super) fn crash(&mut self, worker: u8) -> Heard {
        self.hands[usize::from(worker)] = Self::new(false).hands[0];
        self.leases.iter_mut().filter(|lease| lease.owner == worker).for_each(|lease| lease.owner = NOBODY);
        Heard::Done
    }

    /// Nobody renewed it in time.
    pub(super) fn expire(&mut self, no: u16) -> Heard {
        if let Some(at) = self.find(no) {
            self.leases[at].expired = true;
        }
        Heard::Done
    }

    /// One call: overdue leases that nobody has locked, a `lost` attempt for what they still hold, and the row goes.
    pub(super) fn reclaim(&mut self, rules: &Rules) -> Result<Heard, Invariant> {
        let mut back = Jobs(0);
        for at in 0..S {
            if can_be_reclaimed(rules, &self.leases[at]) {
                for job in (0..J).filter(|job| self.leases[at].holds(*job)).collect::<Jobs>().each() {
                    self.lose(rules, at, job)?;
                    back = back.with(job);
                }
                self.leases[at].row = false;
            }
        }
        Ok(Heard::Back(back))
    }

    fn lose(&mut self, rules: &Rules, at: usize, job: usize) -> Result<(), Invariant> {
        let known = &mut self.jobs[job];
        known.losses += u8::from(!rules.is(Mutant::LossNotCounted));
        let how = match known.request {
            _ if known.losses >= rules.max_losses => How::Dead,
            Request::Asked => How::Canceled,
            Request::No | Request::Open => How::Lost,
        };
        self.write(at, job, how)
    }

    /// A worker gives back, uncharged, what it holds under leases it never heard of.
    pub(super) fn release_unknown(&mut self, rules: &Rules, worker: u8) -> Result<Heard, Invariant> {
        let (mut back, known) = (Jobs(0), self.hands[usize::from(worker)].lease);
        for at in 0..S {
            let lease = &self.leases[at];
            if !lease.row || lease.owner != worker || lease.no == known || rules.is(Mutant::RenewByWorker) {
                continue;
            }
            for job in (0..J).filter(|job| self.leases[at].holds(*job)).collect::<Jobs>().each() {
                let asked = self.jobs[job].request == Request::Asked;
                self.write(at, job, if asked { How::Canceled } else { How::Released })?;
                back = back.with(job);
            }
            self.leases[at].row = false;
        }
        Ok(Heard::Back(back))
    }

    /// A snapshot of what is overdue.
    pub(super) fn reaper_reads(&mut self, no: u16) -> Heard {
        self.reaper = no;
        Heard::Done
    }

    /// Written by id, whatever has happened since.
    pub(super) fn reaper_writes(&mut self) -> Result<Heard, Invariant> {
        let no = std::mem::take(&mut self.reaper);
        let Some(at) = self.find(no) else { return Ok(Heard::Done) };
        let mut back = Jobs(0);
        for job in (0..J).filter(|job| self.leases[at].grants[*job].is_some()).collect::<Jobs>().each() {
            if self.jobs[job].ready.is_none() {
                self.is_current(at, job, How::Lost)?;
                self.write(at, job, How::Lost)?;
                back = back.with(job);
            }
        }
        self.leases[at].row = false;
        Ok(Heard::Back(back))
    }
}
