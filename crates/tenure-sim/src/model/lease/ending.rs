//! Claim and report: how a job comes under a lease, and how its holder ends it.

use tenure_core::{How, State as Stands};
use tenure_store::lease::Ended;

use super::super::invariant::Invariant;
use super::mutant::Mutant;
use super::rules::{Rules, Store};
use super::state::{Grant, Grip, Lease, Request, World};
use super::step::{Heard, Jobs};

impl<const J: usize, const W: usize, const S: usize> World<J, W, S> {
    /// Ready rows go, one lease comes. A job whose cancel was requested is ended instead: request and retry may have
    /// passed each other, and here they meet again.
    pub(super) fn claim(&mut self, rules: &Rules, worker: usize, jobs: Jobs, lost: bool) -> Result<Heard, Invariant> {
        let asked = |job: &usize| self.jobs[*job].request == Request::Asked;
        let doomed: Jobs = jobs.each().filter(asked).collect();
        if !doomed.is_empty() && rules.is(Mutant::ClaimIgnoresRequest) {
            return Err(Invariant::I9);
        }
        for job in doomed.each() {
            self.jobs[job].ready = None;
            self.jobs[job].ended = Some(How::Canceled);
        }
        let granted: Jobs = jobs.each().filter(|job| !doomed.has(*job)).collect();
        if granted.is_empty() {
            return Ok(Heard::Claimed { lease: 0, granted, canceled: doomed });
        }
        let no = self.draw(rules)?;
        let mut lease = Lease { no, row: true, expired: false, owner: worker as u8, grants: [None; J] };
        for job in granted.each() {
            lease.grants[job] = Some(self.start(rules, job)?);
        }
        // The enabled steps leave a place free.
        if let Some(place) = self.leases.iter_mut().find(|lease| lease.no == 0) {
            *place = lease;
        }
        if !lost {
            self.hands[worker].lease = no;
            granted.each().for_each(|job| self.hands[worker].grips[job] = Grip::Runs);
        }
        Ok(Heard::Claimed { lease: no, granted, canceled: doomed })
    }

    fn draw(&mut self, rules: &Rules) -> Result<u16, Invariant> {
        let highest = self.leases.iter().filter(|lease| lease.row).map(|lease| lease.no).max().unwrap_or(0);
        let no = 1 + if rules.is(Mutant::FenceRestarts) { highest } else { self.drawn };
        if self.find(no).is_some() {
            return Err(Invariant::I4);
        }
        self.drawn = self.drawn.max(no);
        Ok(no)
    }

    fn start(&mut self, rules: &Rules, at: usize) -> Result<Grant, Invariant> {
        let job = &mut self.jobs[at];
        job.ready = None;
        job.attempt += 1;
        job.starts += 1;
        let grant = Grant { attempt: job.attempt, losses: job.losses, ended: None, in_tx: false };
        let shares = |lease: &Lease<J>| lease.grants[at].is_some_and(|other| other.attempt == grant.attempt);
        if rules.is(Mutant::FenceIsAttempt) && self.leases.iter().any(shares) {
            return Err(Invariant::I4);
        }
        Ok(grant)
    }

    /// One call about several jobs of one lease, each answered by itself.
    pub(super) fn report(
        &mut self,
        rules: &Rules,
        worker: usize,
        jobs: Jobs,
        ending: How,
        lost: bool,
    ) -> Result<Heard, Invariant> {
        let (no, mut answers, mut written) = (self.hands[worker].lease, [None; 8], 0);
        for job in jobs.each() {
            let answer = self.end(rules, no, job, ending)?;
            let first = match answer {
                Ended::Now(how) | Ended::Before(how) => Some(how),
                Ended::LeaseLost { .. } | Ended::Busy => None,
            };
            written += usize::from(matches!(answer, Ended::Now(_)));
            self.hands[worker].grips[job] = if lost { Grip::Unsure { ending, first } } else { Grip::No };
            answers[job] = Some(answer);
        }
        self.drop_emptied(rules, no, written);
        Ok(Heard::Ended(answers))
    }

    /// The same report again. I8: it hears what the first one did, as long as the job is there.
    pub(super) fn repeat(&mut self, rules: &Rules, worker: usize, job: usize, lost: bool) -> Result<Heard, Invariant> {
        let Grip::Unsure { ending, first } = self.hands[worker].grips[job] else { return Ok(Heard::Done) };
        let heard = self.report(rules, worker, Jobs::one(job), ending, lost)?;
        let Heard::Ended(answers) = heard else { return Ok(heard) };
        match (first, answers[job]) {
            (Some(how), Some(answer)) if self.jobs[job].there && answer != Ended::Before(how) => Err(Invariant::I8),
            _ => Ok(heard),
        }
    }

    /// One ending by the holder of lease `no`: the key (job, lease) decides.
    fn end(&mut self, rules: &Rules, no: u16, job: usize, ending: How) -> Result<Ended, Invariant> {
        let Some((at, grant)) = self.find(no).and_then(|at| Some((at, self.leases[at].grants[job]?))) else {
            return Ok(Ended::LeaseLost { how: None });
        };
        let own = grant.ended.filter(|how| is_answered_by(ending, *how));
        if own.is_some() || !self.accepts(rules, at, job, grant) {
            if rules.is(Mutant::FollowUpFromInput) && self.leases[at].row && !ending.is_final() {
                self.jobs[job].ready = Some(ending.leads_to());
            }
            return Ok(match (own, grant.ended) {
                (Some(_), _) if rules.is(Mutant::NoLookUp) && !self.leases[at].row => Ended::LeaseLost { how: None },
                (Some(how), _) => Ended::Before(how),
                (None, how) => Ended::LeaseLost { how },
            });
        }
        self.is_current(at, job, ending)?;
        let how = match ending {
            How::Retry if grant.attempt >= rules.max_attempts => How::Dead,
            how if how.is_final() => how,
            _ if self.jobs[job].request == Request::Asked && !rules.is(Mutant::RetryIgnoresRequest) => How::Canceled,
            how => how,
        };
        self.write(at, job, how)?;
        Ok(Ended::Now(how))
    }

    /// Whether the store lets the holder of this lease end the job. Ours: the row is there, lists it, and no attempt is.
    fn accepts(&self, rules: &Rules, at: usize, job: usize, grant: Grant) -> bool {
        let holder = self.holder(job).map(|holder| &self.leases[holder]);
        match rules.mutant {
            Some(Mutant::CompleteById) => true,
            Some(Mutant::CompleteIfRunning) => holder.is_some(),
            Some(Mutant::CompleteIfOpen) => self.jobs[job].ended.is_none(),
            Some(Mutant::FenceIsAttempt) => {
                holder.is_some_and(|lease| lease.grants[job].is_some_and(|held| held.attempt == grant.attempt))
            }
            _ => self.leases[at].holds(job),
        }
    }

    /// I1, I2, I3: only the current grant of an open job may end it.
    pub(super) fn is_current(&self, at: usize, job: usize, ending: How) -> Result<(), Invariant> {
        let known = &self.jobs[job];
        if !known.there || known.ended.is_some() {
            let again = ending == How::Succeeded && known.completions > 0;
            return Err(if again { Invariant::I1 } else { Invariant::I3 });
        }
        if self.holder(job) == Some(at) { Ok(()) } else { Err(Invariant::I2) }
    }

    /// Inserts the attempt; what follows comes from it. I9: a request that is there is met.
    pub(super) fn write(&mut self, at: usize, job: usize, how: How) -> Result<(), Invariant> {
        let Some(grant) = self.leases[at].grants[job].as_mut() else { return Ok(()) };
        grant.ended = Some(how);
        let (grant, job) = (*grant, &mut self.jobs[job]);
        if !how.is_final() && job.request == Request::Asked {
            return Err(Invariant::I9);
        }
        job.attempt = grant.attempt - u8::from(how.is_uncharged());
        job.excused += u8::from(matches!(how, How::Snoozed | How::Released));
        job.completions += u8::from(how == How::Succeeded);
        match how.leads_to() {
            state @ (Stands::Queued | Stands::Retryable) => job.ready = Some(state),
            _ => job.ended = Some(how),
        }
        Ok(())
    }

    /// The lease goes with a report that ended all of it (Postgres), or that finds all of it ended (SQLite).
    fn drop_emptied(&mut self, rules: &Rules, no: u16, written: usize) {
        let Some(at) = self.find(no) else { return };
        let lease = &mut self.leases[at];
        let emptied = match rules.store {
            Store::Postgres => written == lease.grants.iter().flatten().count(),
            Store::Sqlite => lease.is_emptied(),
        };
        lease.row &= !emptied;
    }
}

/// Whether what was written is this report's own, or what the rules made of it.
fn is_answered_by(ending: How, how: How) -> bool {
    how == ending || (how == How::Canceled && !ending.is_final()) || (how == How::Dead && ending == How::Retry)
}
