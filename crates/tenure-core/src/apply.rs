//! What an event does to a job: the new job and the effects, decided as data.
//!
//! A store does not decide anything by itself: it looks the job up, lets the rules below speak (in Rust here, in SQL
//! there, held equal by the scripts of the contract suite) and writes the [`Effect`]s in one transaction.
//!
//! Terms: a job is *held* while a lease lists it. Whatever its holder says carries the lease number, and a number that
//! is not the job's current one changes nothing ([`Refused::LeaseLost`]). Expired is not lost: until somebody reclaims
//! the lease, its holder may still report.

use std::time::Duration;

use crate::backoff::{Backoff, Roll};
use crate::classify::Class;
use crate::id::LeaseNo;
use crate::lifecycle::{EventKind, How, State, next};
use crate::time::Timestamp;

/// The part of a job that changes, and the rules it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Where it stands.
    pub state: State,
    /// Attempts charged so far, the running one included.
    pub attempt: u16,
    /// Leases lost so far.
    pub losses: u16,
    /// Not before this.
    pub run_at: Timestamp,
    /// The lease that holds it. L1: set exactly while `state` is running.
    pub lease: Option<LeaseNo>,
    /// Somebody asked for its end; the holder is told and nothing puts it back into the queue.
    pub cancel_requested: bool,
    /// Set at enqueue, never changed.
    pub rules: Rules,
}

/// The limits and the retry policy a job carries from its enqueue on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Charged attempts before a transient error is final.
    pub max_attempts: u16,
    /// Lost leases before the job is dead. More than attempts, so that neighbours of a poison job survive it.
    pub max_losses: u16,
    /// When to try again.
    pub backoff: Backoff,
}

/// Losses allowed beyond `max_attempts` unless a job says otherwise.
pub const SPARE_LOSSES: u16 = 3;
/// Attempts of a job that says nothing.
pub const MAX_ATTEMPTS_DEFAULT: u16 = 5;

impl Default for Rules {
    fn default() -> Self {
        Self {
            max_attempts: MAX_ATTEMPTS_DEFAULT,
            max_losses: MAX_ATTEMPTS_DEFAULT + SPARE_LOSSES,
            backoff: Backoff::default(),
        }
    }
}

/// Something that happens to a job. What a holder says carries its lease number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// What a waiting job waited for is there.
    Open,
    /// A worker takes it under lease `lease`.
    Claim {
        /// The new lease; larger than any before.
        lease: LeaseNo,
    },
    /// The holder did it.
    Complete {
        /// The holder's lease.
        lease: LeaseNo,
    },
    /// The holder met an error of this class.
    Fail {
        /// The holder's lease.
        lease: LeaseNo,
        /// What the error means.
        class: Class,
        /// Delay chosen by the handler instead of the job's backoff.
        retry_in: Option<Duration>,
        /// Random bits for jitter.
        roll: Roll,
    },
    /// The holder wants it later.
    Snooze {
        /// The holder's lease.
        lease: LeaseNo,
        /// How much later.
        delay: Duration,
    },
    /// The holder gives it back.
    Release {
        /// The holder's lease.
        lease: LeaseNo,
        /// Due again after this; zero on shutdown.
        delay: Duration,
    },
    /// The holder ends it, usually because a cancel was requested.
    Acknowledge {
        /// The holder's lease.
        lease: LeaseNo,
    },
    /// The lease expired and is reclaimed.
    Lose {
        /// The expired lease.
        lease: LeaseNo,
    },
    /// An operator wants it ended: a held job by request, or at once with `force`.
    Cancel {
        /// Fence the holder instead of asking it.
        force: bool,
    },
    /// An operator revives it: attempts and losses start again, the fence does not.
    Requeue,
}

/// A job after an event, and what a store writes for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The job now.
    pub job: Job,
    /// What to write, in one transaction.
    pub effects: Vec<Effect>,
}

/// One write of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The waiting row goes: it was claimed or ended.
    RemoveReady,
    /// A waiting row comes, due at the job's new `run_at`.
    PutReady,
    /// An attempt row comes under the lease that ends (an operator's ending draws a number of its own).
    EndAttempt(How),
    /// The holder is asked to stop.
    RequestCancel,
    /// A request that was never met is forgotten.
    ForgetCancelRequest,
    /// The last attempt is final no longer.
    ReopenAttempt,
}

/// Why an event changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The report came from a lease that does not hold the job (any more).
    #[error("the lease no longer holds the job")]
    LeaseLost,
    /// The lifecycle has no such step.
    #[error("a {} job cannot {event:?}", .from.as_str())]
    Illegal {
        /// Where the job stands.
        from: State,
        /// What was tried.
        event: EventKind,
    },
}

/// Decides the new job and the effects. Time and randomness arrive as arguments; nothing panics.
pub fn apply(job: &Job, event: &Event, now: Timestamp) -> Result<Applied, Refused> {
    match *event {
        Event::Open => put_back(job, EventKind::Open, now, vec![Effect::RemoveReady, Effect::PutReady]),
        // Only a job that could be claimed: one that is held is its holder's to end.
        Event::Claim { .. } if job.cancel_requested && step(job, EventKind::Claim).is_ok() => end_unheld(job),
        Event::Claim { lease } => claim(job, lease),
        Event::Complete { lease } => end_held(job, lease, How::Succeeded, EventKind::Complete, now),
        Event::Acknowledge { lease } => end_held(job, lease, How::Canceled, EventKind::Cancel, now),
        Event::Fail { lease, class, retry_in, roll } => {
            let (how, event, delay) = decide_failure(job, class, retry_in, roll);
            end_held(job, lease, how, event, now.plus(delay))
        }
        Event::Snooze { lease, delay } => end_held(job, lease, How::Snoozed, EventKind::Snooze, now.plus(delay)),
        Event::Release { lease, delay } => end_held(job, lease, How::Released, EventKind::Release, now.plus(delay)),
        Event::Lose { lease } => {
            let losses = job.losses.saturating_add(1);
            let (how, event) = match losses >= job.rules.max_losses {
                true => (How::Dead, EventKind::Exhaust),
                false => (How::Lost, EventKind::Lose),
            };
            let job = Job { losses, ..job.clone() };
            end_held(&job, lease, how, event, now.plus(loss_delay(losses)))
        }
        Event::Cancel { force: false } if job.state == State::Running => {
            Ok(Applied { job: Job { cancel_requested: true, ..job.clone() }, effects: vec![Effect::RequestCancel] })
        }
        Event::Cancel { force: true } if job.state == State::Running => {
            let lease = job.lease.ok_or(Refused::LeaseLost)?;
            end_held(job, lease, How::Canceled, EventKind::Cancel, now)
        }
        Event::Cancel { .. } => end_unheld(job),
        Event::Requeue => {
            let fresh = Job { attempt: 0, losses: 0, cancel_requested: false, ..job.clone() };
            let effects = vec![Effect::ReopenAttempt, Effect::ForgetCancelRequest, Effect::PutReady];
            put_back(&fresh, EventKind::Requeue, now, effects)
        }
    }
}

/// How a failed attempt ends, and after which delay it may be tried again.
pub fn decide_failure(job: &Job, class: Class, retry_in: Option<Duration>, roll: Roll) -> (How, EventKind, Duration) {
    let rules = &job.rules;
    match class {
        Class::Permanent => (How::Failed, EventKind::Reject, Duration::ZERO),
        Class::Dead => (How::Dead, EventKind::Bury, Duration::ZERO),
        Class::Transient if rules.backoff == Backoff::Never => (How::Failed, EventKind::Reject, Duration::ZERO),
        Class::Transient if job.attempt >= rules.max_attempts => (How::Dead, EventKind::Exhaust, Duration::ZERO),
        Class::Transient => {
            let delay = retry_in.unwrap_or_else(|| rules.backoff.delay(job.attempt.into(), roll));
            (How::Retry, EventKind::Retry, delay)
        }
    }
}

/// Wait before the next try after the `losses`-th lost lease: none after the first, then 1 s doubling up to 5 minutes.
/// A deploy loses a lease once; a job that kills its worker loses one after the other.
pub fn loss_delay(losses: u16) -> Duration {
    match losses {
        0 | 1 => Duration::ZERO,
        n => Duration::from_secs((1_u64 << (n - 2).min(9)).min(300)),
    }
}

fn claim(job: &Job, lease: LeaseNo) -> Result<Applied, Refused> {
    let state = step(job, EventKind::Claim)?;
    let job = Job { state, attempt: job.attempt.saturating_add(1), lease: Some(lease), ..job.clone() };
    Ok(Applied { job, effects: vec![Effect::RemoveReady] })
}

/// Ends the attempt under `lease`. A requested cancel wins over everything that would put the job back.
fn end_held(job: &Job, lease: LeaseNo, how: How, event: EventKind, run_at: Timestamp) -> Result<Applied, Refused> {
    if job.lease != Some(lease) {
        return Err(Refused::LeaseLost);
    }
    let (how, event) = match job.cancel_requested && !how.is_final() {
        true => (How::Canceled, EventKind::Cancel),
        false => (how, event),
    };
    let state = step(job, event)?;
    let mut effects = vec![Effect::EndAttempt(how)];
    if !state.is_terminal() {
        effects.push(Effect::PutReady);
    }
    let attempt = if how.is_uncharged() { job.attempt.saturating_sub(1) } else { job.attempt };
    let run_at = if state.is_terminal() { job.run_at } else { run_at };
    Ok(Applied { job: Job { state, attempt, run_at, lease: None, ..job.clone() }, effects })
}

/// Cancels a job that nobody holds.
fn end_unheld(job: &Job) -> Result<Applied, Refused> {
    let state = step(job, EventKind::Cancel)?;
    let effects = vec![Effect::RemoveReady, Effect::EndAttempt(How::Canceled)];
    Ok(Applied { job: Job { state, ..job.clone() }, effects })
}

fn put_back(job: &Job, event: EventKind, now: Timestamp, effects: Vec<Effect>) -> Result<Applied, Refused> {
    let state = step(job, event)?;
    Ok(Applied { job: Job { state, run_at: now, ..job.clone() }, effects })
}

fn step(job: &Job, event: EventKind) -> Result<State, Refused> {
    next(job.state, event).ok_or(Refused::Illegal { from: job.state, event })
}
