//! Which steps are possible, and which of them need no fault.

use tenure_core::How;

use super::mutant::Mutant;
use super::rules::{Rules, Store};
use super::state::{Grip, Hand, Lease, Request, World};
use super::step::{Jobs, Step};

/// Everything that can happen next.
pub(super) fn steps<const J: usize, const W: usize, const S: usize>(
    rules: &Rules,
    world: &World<J, W, S>,
    next: &mut Vec<Step>,
) {
    for worker in 0..W {
        of_worker(rules, world, worker, next);
    }
    for lease in world.leases.iter().filter(|lease| lease.row || lease.is_locked()) {
        of_lease(rules, world, lease, next);
    }
    if world.leases.iter().any(|lease| can_be_reclaimed(rules, lease)) && !rules.is(Mutant::ReaperInTwoSteps) {
        next.push(Step::Reclaim);
    }
    if world.reaper > 0 {
        next.push(Step::ReaperWrites);
    }
    for job in 0..J {
        of_operator(rules, world, job, next);
    }
    if rules.prune && (0..J).any(|job| can_be_pruned(rules, world, job)) {
        next.push(Step::Prune);
    }
}

fn of_worker<const J: usize, const W: usize, const S: usize>(
    rules: &Rules,
    world: &World<J, W, S>,
    at: usize,
    next: &mut Vec<Step>,
) {
    let (worker, hand) = (at as u8, &world.hands[at]);
    let unknown = |lease: &&Lease<J>| lease.row && lease.owner == worker && lease.no != hand.lease;
    let mut unknown = world.leases.iter().filter(unknown).peekable();
    if hand.lease > 0 || unknown.peek().is_some() {
        next.push(Step::Crash { worker });
    }
    if unknown.peek().is_some() && unknown.all(|lease| can_be_excused(rules, world, lease)) {
        next.push(Step::ReleaseUnknown { worker });
    }
    if hand.lease > 0 {
        of_hand(rules, world, worker, hand, next);
    } else if world.leases[S - 1].no == 0 {
        let ready: Jobs = (0..J).filter(|job| world.jobs[*job].ready.is_some()).collect();
        if rules.normal && (0..at).any(|other| is_fresh(world, other)) && is_fresh(world, at) {
            return;
        }
        for jobs in ready.subsets().filter(|jobs| !rules.normal || is_first_of_alikes(rules, world, *jobs)) {
            next.extend([false, true].map(|lost| Step::Claim { worker, jobs, lost }));
        }
    }
}

/// Of workers that have nothing the first one speaks for all.
fn is_fresh<const J: usize, const W: usize, const S: usize>(world: &World<J, W, S>, worker: usize) -> bool {
    world.hands[worker].lease == 0 && world.leases.iter().all(|lease| !lease.row || usize::from(lease.owner) != worker)
}

/// Of jobs that are alike, and that no lease names, the first ones speak for all. One that operators touch is not like
/// one that they do not.
fn is_first_of_alikes<const J: usize, const W: usize, const S: usize>(
    rules: &Rules,
    world: &World<J, W, S>,
    jobs: Jobs,
) -> bool {
    let named = |job: usize| world.leases.iter().any(|lease| lease.grants[job].is_some());
    let seen = |job: usize| (world.jobs[job], rules.operated.has(job));
    let alike = |one: usize, other: usize| seen(one) == seen(other) && !named(one) && !named(other);
    jobs.each().all(|job| (0..job).all(|other| jobs.has(other) || !alike(job, other)))
}

/// A worker that knows its lease.
fn of_hand<const J: usize, const W: usize, const S: usize>(
    rules: &Rules,
    world: &World<J, W, S>,
    worker: u8,
    hand: &Hand<J>,
    next: &mut Vec<Step>,
) {
    if let Some(lease) = world.find(hand.lease).map(|at| &world.leases[at]).filter(|lease| lease.row) {
        if lease.expired {
            next.push(Step::Renew { worker });
        }
        let is_done = hand.grips.iter().all(|grip| *grip == Grip::No);
        let may_go = lease.is_emptied() || rules.is(Mutant::DropHeldLease);
        if (is_done || rules.is(Mutant::DropHeldLease)) && may_go && !lease.is_locked() {
            next.push(Step::Drop { worker });
        }
    }
    let running: Jobs = (0..J).filter(|job| hand.grips[*job] == Grip::Runs).collect();
    for ending in rules.endings.iter().copied() {
        for jobs in running.subsets() {
            let lossy = !rules.normal || ending != How::Snoozed;
            let excused = jobs.each().all(|job| world.jobs[job].excused < rules.excused_max);
            if excused || !matches!(ending, How::Snoozed | How::Released) {
                next.push(Step::Report { worker, jobs, ending, lost: false });
                if lossy {
                    next.push(Step::Report { worker, jobs, ending, lost: true });
                }
            }
        }
    }
    for (at, grip) in hand.grips.iter().enumerate() {
        let job = at as u8;
        match (*grip, rules.store) {
            (Grip::No, _) => {}
            (Grip::Runs, Store::Postgres) => next.push(Step::Begin { worker, job }),
            (Grip::Runs, Store::Sqlite) => {
                next.extend([true, false].map(|kept| Step::CompleteIn { worker, job, kept }));
            }
            (Grip::InTx, _) => next.extend([Step::Commit { worker, job }, Step::Rollback { worker, job }]),
            (Grip::AfterTx, _) => next.push(Step::Look { worker, job }),
            (Grip::Unsure { first, .. }, _) => {
                next.push(Step::Repeat { worker, job, lost: false });
                if first.is_none() {
                    next.push(Step::Repeat { worker, job, lost: true });
                }
            }
        }
    }
}

fn of_lease<const J: usize, const W: usize, const S: usize>(
    rules: &Rules,
    world: &World<J, W, S>,
    lease: &Lease<J>,
    next: &mut Vec<Step>,
) {
    if lease.row && !lease.expired {
        next.push(Step::Expire { lease: lease.no });
    }
    if lease.row && lease.expired && rules.is(Mutant::ReaperInTwoSteps) && world.reaper == 0 {
        next.push(Step::ReaperReads { lease: lease.no });
    }
    for job in (0..J).filter(|job| lease.grants[*job].is_some_and(|grant| grant.in_tx)) {
        let owned = world.hands.iter().any(|hand| hand.lease == lease.no && hand.grips[job] == Grip::InTx);
        if !owned {
            next.push(Step::Abort { lease: lease.no, job: job as u8 });
        }
    }
}

fn of_operator<const J: usize, const W: usize, const S: usize>(
    rules: &Rules,
    world: &World<J, W, S>,
    at: usize,
    next: &mut Vec<Step>,
) {
    let (job, known) = (at as u8, &world.jobs[at]);
    if !rules.operated.has(at) {
        return;
    }
    if known.request == Request::Open {
        next.push(Step::CommitAsk { job });
    }
    if !known.there {
        // An operator's transaction may still have the old one in it.
        if rules.enqueue && known.request == Request::No && world.leases.iter().all(|lease| lease.grants[at].is_none())
        {
            next.push(Step::Enqueue { job });
        }
        return;
    }
    if let Some(how) = known.ended {
        if how != How::Succeeded && known.requeues < rules.requeues_max {
            next.push(Step::Requeue { job });
        }
        return;
    }
    let holder = world.holder(at).map(|lease| &world.leases[lease]);
    // Somebody's open transaction ends it: whoever wants to do so by force waits.
    if holder.is_none_or(|lease| !lease.grants[at].is_some_and(|grant| grant.in_tx)) {
        next.push(Step::Cancel { job, force: true });
    }
    if known.request == Request::No {
        next.push(Step::Cancel { job, force: false });
        if holder.is_some() && rules.store == Store::Postgres {
            next.push(Step::Ask { job });
        }
    }
}

/// Overdue, and nobody has it locked.
pub(super) fn can_be_reclaimed<const J: usize>(rules: &Rules, lease: &Lease<J>) -> bool {
    lease.row && lease.expired && (!lease.is_locked() || rules.is(Mutant::ReclaimOverOpenTx))
}

/// Ended, and no lease named by its attempts is there: a report repeated under it would be accepted anew.
pub(super) fn can_be_pruned<const J: usize, const W: usize, const S: usize>(
    rules: &Rules,
    world: &World<J, W, S>,
    job: usize,
) -> bool {
    let listed = world.leases.iter().any(|lease| lease.row && lease.grants[job].is_some());
    world.jobs[job].there && world.jobs[job].ended.is_some() && (!listed || rules.is(Mutant::PruneBesideSibling))
}

fn can_be_excused<const J: usize, const W: usize, const S: usize>(
    rules: &Rules,
    world: &World<J, W, S>,
    lease: &Lease<J>,
) -> bool {
    let allowed = (0..J).filter(|job| lease.holds(*job)).all(|job| world.jobs[job].excused < rules.excused_max);
    allowed && !rules.is(Mutant::RenewByWorker)
}

/// Whether a step needs neither a fault nor an operator: those are the steps that must be enough to come to an end.
pub(super) fn is_healthy<const J: usize, const W: usize, const S: usize>(
    rules: &Rules,
    world: &World<J, W, S>,
    step: Step,
) -> bool {
    match step {
        Step::Claim { lost, .. } | Step::Report { lost, .. } | Step::Repeat { lost, .. } => !lost,
        Step::CompleteIn { kept, .. } => kept,
        Step::Begin { .. } | Step::Commit { .. } | Step::Look { .. } | Step::Abort { .. } => true,
        Step::Drop { .. } | Step::ReleaseUnknown { .. } | Step::Reclaim | Step::CommitAsk { .. } => true,
        Step::ReaperReads { .. } | Step::ReaperWrites => true,
        // A living holder renews in time what it knows; what nobody knows runs out by itself.
        Step::Expire { lease } => world.find(lease).is_some_and(|at| {
            let lease = &world.leases[at];
            let renewed = rules.is(Mutant::RenewByWorker) && usize::from(lease.owner) < W;
            !world.is_known(lease) && !renewed
        }),
        Step::Rollback { .. } | Step::Renew { .. } | Step::Crash { .. } | Step::Enqueue { .. } => false,
        Step::Cancel { .. } | Step::Ask { .. } | Step::Requeue { .. } | Step::Prune => false,
    }
}
