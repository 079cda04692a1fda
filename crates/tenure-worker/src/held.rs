//! What this process holds: leases, the attempts under them, and until when it may act on them.
//!
//! The loop puts leases in, slots take their jobs out, the keeper pushes deadlines. **The right to act ends at the local
//! deadline**: the moment the last accepted claim or renewal was *sent*, plus the lease time, minus a margin. The
//! database counts from when it got that request, which is later, so the handlers here are told before anybody else may
//! take the job, whatever the network does. Only this machine's monotonic clock is used.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_core::{JobId, LeaseNo};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::ctx::{Ctx, Stop};

/// Everything this process holds.
#[derive(Default)]
pub(crate) struct Held {
    leases: Mutex<Leases>,
    /// Something was put in.
    pub(crate) changed: Notify,
    /// Some attempt was told to stop: it may wait in line, where nobody listens for it.
    pub(crate) told: Notify,
}

#[derive(Default)]
struct Leases {
    by_no: BTreeMap<LeaseNo, Lease>,
    /// Emptied, and still to be deleted in the store.
    emptied: Vec<LeaseNo>,
}

struct Lease {
    ttl: Duration,
    renew_every: Duration,
    deadline: Instant,
    renew_at: Instant,
    /// In the order of their ids: what is told to many is told in the same order on every run of a simulation.
    jobs: BTreeMap<JobId, Job>,
    size: usize,
}

struct Job {
    ctx: Ctx,
    /// A handler that has a timeout, and that blocks its thread, is given up by the keeper then.
    times_out_at: Option<Instant>,
}

/// A lease as it was claimed.
pub(crate) struct Taken {
    pub(crate) lease: LeaseNo,
    pub(crate) ttl: Duration,
    pub(crate) renew_every: Duration,
    /// When the claim was sent.
    pub(crate) sent: Instant,
}

/// How often a lease of this time is renewed.
pub(crate) fn renew_every(wanted: Option<Duration>, ttl: Duration) -> Duration {
    wanted.unwrap_or(ttl / 3).min(ttl / 2)
}

/// The local deadline of a request sent at `sent`.
pub(crate) fn deadline(sent: Instant, ttl: Duration) -> Instant {
    // A timer of this machine may be late by a few milliseconds, on a busy one by more.
    let margin = (ttl / 50).max(Duration::from_millis(20)).min(ttl / 2);
    sent + ttl - margin
}

impl Held {
    pub(crate) fn take(&self, taken: &Taken, jobs: &[Ctx]) {
        let Taken { lease, ttl, renew_every, sent } = *taken;
        let jobs: BTreeMap<JobId, Job> =
            jobs.iter().map(|ctx| (ctx.job_id(), Job { ctx: ctx.clone(), times_out_at: None })).collect();
        let size = jobs.len();
        let held = Lease { ttl, renew_every, deadline: deadline(sent, ttl), renew_at: sent + renew_every, jobs, size };
        self.lock().by_no.insert(lease, held);
        self.changed.notify_one();
    }

    /// A handler starts that may run until `times_out_at` at most; or it has ended, and only its report is on its way.
    pub(crate) fn limit(&self, ctx: &Ctx, times_out_at: Option<Instant>) {
        if let Some(job) = self.lock().by_no.get_mut(&ctx.fence()).and_then(|lease| lease.jobs.get_mut(&ctx.job_id())) {
            job.times_out_at = times_out_at;
        }
    }

    /// These jobs are done with, whatever became of them. `together`: how many ended in the same report; a report that
    /// ends all of a lease also deletes it in the store.
    pub(crate) fn settle(&self, lease: LeaseNo, jobs: &[JobId], together: usize) {
        let mut leases = self.lock();
        let Some(held) = leases.by_no.get_mut(&lease) else { return };
        for job in jobs {
            held.jobs.remove(job);
        }
        if held.jobs.is_empty() {
            let deleted = together >= held.size;
            leases.by_no.remove(&lease);
            if !deleted {
                leases.emptied.push(lease);
            }
        }
    }

    /// Whether this process may still act under the lease.
    pub(crate) fn holds(&self, lease: LeaseNo) -> bool {
        self.lock().by_no.get(&lease).is_some_and(|held| Instant::now() < held.deadline)
    }

    /// Every lease number that is not to be given back as unknown.
    pub(crate) fn known(&self) -> Vec<LeaseNo> {
        let leases = self.lock();
        leases.by_no.keys().copied().chain(leases.emptied.iter().copied()).collect()
    }

    /// Every attempt that is held.
    pub(crate) fn attempts(&self) -> Vec<Ctx> {
        self.lock().by_no.values().flat_map(|lease| lease.jobs.values().map(|job| job.ctx.clone())).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().by_no.is_empty()
    }

    /// Leases to renew now; asked again after `again` unless they come back.
    pub(crate) fn to_renew(&self, again: Duration) -> Vec<LeaseNo> {
        let now = Instant::now();
        let mut leases = self.lock();
        let due = leases.by_no.iter_mut().filter(|(_, held)| held.renew_at <= now);
        due.map(|(no, held)| {
            held.renew_at = now + again.min(held.ttl / 10);
            *no
        })
        .collect()
    }

    /// These renewals, sent at `sent`, were accepted.
    pub(crate) fn renewed(&self, numbers: &[LeaseNo], sent: Instant) {
        let mut leases = self.lock();
        for no in numbers {
            if let Some(held) = leases.by_no.get_mut(no) {
                held.deadline = deadline(sent, held.ttl);
                held.renew_at = sent + held.renew_every;
                held.jobs.values().for_each(|job| job.ctx.set_deadline(held.deadline));
            }
        }
    }

    /// Cancel was requested for these jobs: their handlers are told.
    pub(crate) fn cancel(&self, jobs: &[JobId]) {
        let leases = self.lock();
        for job in jobs {
            leases.by_no.values().filter_map(|held| held.jobs.get(job)).for_each(|held| held.ctx.tell(Stop::Canceled));
        }
        if !jobs.is_empty() {
            self.told.notify_one();
        }
    }

    /// Lets go of leases whose deadline has passed and tells their handlers. Answers the attempts.
    pub(crate) fn fence(&self) -> Vec<Ctx> {
        let now = Instant::now();
        let mut leases = self.lock();
        let over: Vec<LeaseNo> =
            leases.by_no.iter().filter(|(_, held)| held.deadline <= now).map(|(no, _)| *no).collect();
        let fenced = over.iter().filter_map(|no| leases.by_no.remove(no)).flat_map(|held| held.jobs.into_values());
        let fenced: Vec<Ctx> = fenced.map(|job| job.ctx).collect();
        fenced.iter().for_each(|ctx| ctx.tell(Stop::LeaseLost));
        if !fenced.is_empty() {
            self.told.notify_one();
        }
        fenced
    }

    /// Attempts whose handlers are beyond their time.
    pub(crate) fn overdue(&self) -> Vec<Ctx> {
        let now = Instant::now();
        let leases = self.lock();
        let jobs = leases.by_no.values().flat_map(|held| held.jobs.values());
        jobs.filter(|job| job.times_out_at.is_some_and(|at| at <= now)).map(|job| job.ctx.clone()).collect()
    }

    /// When the next lease must be let go of.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.lock().by_no.values().map(|held| held.deadline).min()
    }

    /// Emptied leases, to be deleted in the store.
    pub(crate) fn take_emptied(&self) -> Vec<LeaseNo> {
        std::mem::take(&mut self.lock().emptied)
    }

    /// They could not be deleted now.
    pub(crate) fn put_back_emptied(&self, leases: Vec<LeaseNo>) {
        self.lock().emptied.extend(leases);
    }

    fn lock(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
