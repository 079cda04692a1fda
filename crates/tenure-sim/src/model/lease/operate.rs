//! Producers, operators and retention.

use tenure_core::{How, State as Stands};

use super::super::invariant::Invariant;
use super::enabled::can_be_pruned;
use super::rules::Rules;
use super::state::{Job, Request, World};
use super::step::{Heard, Jobs};

impl<const J: usize, const W: usize, const S: usize> World<J, W, S> {
    /// A new job, due at once.
    pub(super) fn enqueue(&mut self, job: usize) -> Heard {
        self.jobs[job] = Job::enqueued();
        Heard::Done
    }

    /// Ends a job nobody holds; asks the holder of a running one, or fences it by force with the key of its grant.
    pub(super) fn cancel(&mut self, job: usize, force: bool) -> Result<Heard, Invariant> {
        if self.jobs[job].ready.take().is_some() {
            self.jobs[job].ended = Some(How::Canceled);
            return Ok(Heard::Done);
        }
        match self.holder(job) {
            Some(at) if force => self.write(at, job, How::Canceled).map(|()| Heard::Done),
            _ => {
                self.jobs[job].request = Request::Asked;
                Ok(Heard::Requested)
            }
        }
    }

    /// Asks in a transaction that stays open: whoever ends the attempt meanwhile does not see it.
    pub(super) fn ask(&mut self, job: usize) -> Heard {
        self.jobs[job].request = Request::Open;
        Heard::Requested
    }

    /// The request becomes visible, wherever the job is by now.
    pub(super) fn commit_ask(&mut self, job: usize) -> Heard {
        let job = &mut self.jobs[job];
        job.request = if job.there { Request::Asked } else { Request::No };
        Heard::Done
    }

    /// A new life: attempts and losses start again, a request is forgotten, the fence is not.
    pub(super) fn requeue(&mut self, job: usize) -> Heard {
        let old = self.jobs[job];
        let request = old.request.forgotten();
        self.jobs[job] = Job {
            ready: Some(Stands::Queued),
            request,
            requeues: old.requeues + 1,
            completions: old.completions,
            ..Job::enqueued()
        };
        Heard::Done
    }

    /// Everything that has ended goes, attempts included.
    pub(super) fn prune(&mut self, rules: &Rules) -> Heard {
        let gone: Jobs = (0..J).filter(|job| can_be_pruned(rules, self, *job)).collect();
        for job in gone.each() {
            self.jobs[job] = self.jobs[job].pruned();
            self.leases.iter_mut().filter_map(|lease| lease.grants[job].as_mut()).for_each(|grant| grant.ended = None);
        }
        Heard::Back(gone)
    }
}
