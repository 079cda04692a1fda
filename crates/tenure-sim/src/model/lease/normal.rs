//! One state for all that differ in nothing anybody will ever look at. Without this there would be no end of them.
//!
//! A walk beside a real store does without: it wants to compare even what nobody looks at.

use tenure_core::How;

use super::state::{Grip, Job, Lease, NOBODY, World};

impl<const J: usize, const W: usize, const S: usize> World<J, W, S> {
    /// Brings a state into its normal form.
    pub(super) fn normalise(&mut self, keep_attempts: bool) {
        for at in 0..J {
            self.jobs[at] = self.jobs[at].normal();
        }
        for at in 0..S {
            let lease = &self.leases[at];
            let grips = self.hands.iter().find(|hand| hand.lease == lease.no && lease.no > 0).map(|hand| hand.grips);
            let kept = self.reaper == lease.no;
            self.leases[at].normalise(&grips.unwrap_or([Grip::No; J]), kept, keep_attempts);
        }
        self.renumber();
    }

    /// Only the order of lease numbers and their equality matter: they get the smallest ones in the same order.
    fn renumber(&mut self) {
        let mut kept = 0;
        for at in 0..S {
            let old = self.leases[at].no;
            if old > 0 {
                kept += 1;
                self.leases[at].no = kept;
                // In order, and a new number is never above its old one: none is taken twice on the way.
                self.hands.iter_mut().filter(|hand| hand.lease == old).for_each(|hand| hand.lease = kept);
                if self.reaper == old {
                    self.reaper = kept;
                }
            }
        }
        self.drawn = kept;
    }
}

impl Job {
    /// What an ended job has counted matters to nobody: a requeue begins anew, and forgets a request.
    fn normal(self) -> Self {
        let Some(how) = self.ended else { return self };
        Self {
            ended: Some(if how == How::Succeeded { how } else { How::Dead }),
            attempt: 0,
            losses: 0,
            starts: 0,
            excused: 0,
            request: self.request.forgotten(),
            ..self
        }
    }
}

impl<const J: usize> Lease<J> {
    /// An attempt that nobody will ask about is just an ended one; without its lease's row it is nothing at all.
    fn normalise(&mut self, grips: &[Grip; J], kept: bool, keep_attempts: bool) {
        if !self.row {
            self.expired = false;
            self.owner = NOBODY;
        }
        for (grant, grip) in self.grants.iter_mut().zip(grips) {
            let Some(known) = grant else { continue };
            let asked = *grip != Grip::No || known.in_tx || kept;
            if known.ended.is_some() && !keep_attempts {
                (known.attempt, known.losses) = (0, 0);
            }
            if known.ended.is_some() && !asked {
                known.ended = Some(How::Succeeded);
            }
            if !self.row && !asked {
                *grant = None;
            }
        }
    }
}
