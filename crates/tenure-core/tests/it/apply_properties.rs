//! What `apply` keeps for any sequence of events.

use std::time::Duration;

use proptest::prelude::*;
use tenure_core::apply::{Applied, Effect, Event, Job, Refused, Rules, apply};
use tenure_core::backoff::{Backoff, Count, Jitter, Roll};
use tenure_core::lifecycle::{State, next};
use tenure_core::{Class, EventKind, LeaseNo, Timestamp};

use crate::one_job::{NOW, claimed, done, ending, fresh};

/// An event whose lease is not chosen yet: it depends on what happened before.
#[derive(Debug, Clone)]
struct Step {
    verb: Verb,
    /// Who speaks: the holder, or somebody with a number from the past or the future.
    stale: Option<i64>,
    later: Duration,
}

#[derive(Debug, Clone)]
enum Verb {
    Open,
    Claim,
    Complete,
    Fail(Class, Option<Duration>, u32),
    Snooze(Duration),
    Release(Duration),
    Acknowledge,
    Lose,
    Cancel(bool),
    Requeue,
}

fn any_delay() -> impl Strategy<Value = Duration> {
    prop_oneof![Just(Duration::ZERO), (0..100_000_u64).prop_map(Duration::from_millis), Just(Duration::MAX)]
}

fn any_class() -> impl Strategy<Value = Class> {
    prop_oneof![4 => Just(Class::Transient), 1 => Just(Class::Permanent), 1 => Just(Class::Dead)]
}

fn any_verb() -> impl Strategy<Value = Verb> {
    prop_oneof![
        8 => Just(Verb::Claim),
        4 => (any_class(), prop::option::of(any_delay()), any::<u32>()).prop_map(|(c, d, r)| Verb::Fail(c, d, r)),
        3 => Just(Verb::Lose),
        2 => any_delay().prop_map(Verb::Snooze),
        2 => any_delay().prop_map(Verb::Release),
        1 => any::<bool>().prop_map(Verb::Cancel),
        1 => Just(Verb::Complete),
        1 => Just(Verb::Acknowledge),
        1 => Just(Verb::Open),
        2 => Just(Verb::Requeue),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let stale = prop::option::weighted(0.2, 0..50_i64);
    let later = (0..10_000_u64).prop_map(Duration::from_millis);
    (any_verb(), stale, later).prop_map(|(verb, stale, later)| Step { verb, stale, later })
}

fn any_backoff() -> impl Strategy<Value = Backoff> {
    let (base, cap) = (Duration::from_secs(1), Duration::from_secs(1_024));
    prop_oneof![
        Just(Backoff::Never),
        Just(Backoff::None),
        Just(Backoff::Fixed { delay: base, jitter: Jitter::NONE }),
        Just(Backoff::Exponential { base, cap, by: Count::Attempts, jitter: Jitter::NONE }),
        Just(Backoff::Steps(vec![base, cap])),
        Just(Backoff::default()),
    ]
}

fn any_job() -> impl Strategy<Value = Job> {
    let state = prop_oneof![3 => Just(State::Queued), 1 => Just(State::Waiting)];
    (state, 1..5_u16, 1..8_u16, any_backoff()).prop_map(|(state, max_attempts, max_losses, backoff)| Job {
        state,
        rules: Rules { max_attempts, max_losses, backoff },
        ..fresh()
    })
}

/// The event of a step, spoken under `lease`; a claim gets the next number.
fn event(verb: &Verb, lease: LeaseNo, new: LeaseNo) -> Event {
    match *verb {
        Verb::Open => Event::Open,
        Verb::Claim => Event::Claim { lease: new },
        Verb::Complete => Event::Complete { lease },
        Verb::Fail(class, retry_in, roll) => Event::Fail { lease, class, retry_in, roll: Roll(roll) },
        Verb::Snooze(delay) => Event::Snooze { lease, delay },
        Verb::Release(delay) => Event::Release { lease, delay },
        Verb::Acknowledge => Event::Acknowledge { lease },
        Verb::Lose => Event::Lose { lease },
        Verb::Cancel(force) => Event::Cancel { force },
        Verb::Requeue => Event::Requeue,
    }
}

/// The lease an event speaks for, if it speaks for one.
fn speaks_for(event: &Event) -> Option<LeaseNo> {
    match *event {
        Event::Complete { lease }
        | Event::Fail { lease, .. }
        | Event::Snooze { lease, .. }
        | Event::Release { lease, .. }
        | Event::Acknowledge { lease }
        | Event::Lose { lease } => Some(lease),
        Event::Open | Event::Claim { .. } | Event::Cancel { .. } | Event::Requeue => None,
    }
}

/// The steps of the lifecycle an event may be.
fn kinds(event: &Event) -> &'static [EventKind] {
    use EventKind::{Bury, Cancel, Claim, Complete, Exhaust, Lose, Open, Reject, Release, Requeue, Retry, Snooze};
    match event {
        Event::Open => &[Open],
        Event::Claim { .. } => &[Claim, Cancel],
        Event::Complete { .. } => &[Complete],
        Event::Fail { .. } => &[Retry, Reject, Exhaust, Bury, Cancel],
        Event::Snooze { .. } => &[Snooze, Cancel],
        Event::Release { .. } => &[Release, Cancel],
        Event::Acknowledge { .. } | Event::Cancel { .. } => &[Cancel],
        Event::Lose { .. } => &[Lose, Exhaust, Cancel],
        Event::Requeue => &[Requeue],
    }
}

/// Whether a job in this state has a row in `ready`.
fn is_ready(state: State) -> bool {
    matches!(state, State::Waiting | State::Queued | State::Retryable)
}

fn check_sound(job: &Job) -> Result<(), TestCaseError> {
    prop_assert_eq!(job.lease.is_some(), job.state == State::Running, "L1 {:?}", job);
    prop_assert!(job.attempt <= job.rules.max_attempts, "{:?}", job);
    prop_assert!(job.losses <= job.rules.max_losses, "{:?}", job);
    // Nothing puts a job back while its end is asked for.
    prop_assert!(!(job.cancel_requested && is_ready(job.state)), "{:?}", job);
    Ok(())
}

fn check_change(before: &Job, event: &Event, now: Timestamp, applied: &Applied) -> Result<(), TestCaseError> {
    let Applied { job: after, effects } = applied;
    let changed = before.state != after.state;
    let has = |effect: Effect| effects.contains(&effect);

    if changed {
        let legal = kinds(event).iter().any(|kind| next(before.state, *kind) == Some(after.state));
        prop_assert!(legal, "{:?} -> {:?} by {:?}", before.state, after.state, event);
    } else {
        prop_assert_eq!((before.state, effects.as_slice()), (State::Running, [Effect::RequestCancel].as_slice()));
    }
    if before.state.is_terminal() {
        prop_assert_eq!(event, &Event::Requeue);
    }

    // A ready row goes when the job leaves and comes when it returns; opening does both.
    prop_assert_eq!(has(Effect::RemoveReady), changed && is_ready(before.state));
    prop_assert_eq!(has(Effect::PutReady), changed && matches!(after.state, State::Queued | State::Retryable));
    if has(Effect::PutReady) {
        prop_assert!(after.run_at >= now, "{} < {}", after.run_at, now);
    }

    // An attempt row comes with every end of an attempt and with every operator's ending, and says where it leads.
    let ended = changed && (before.state == State::Running || after.state.is_terminal());
    prop_assert_eq!(ending(effects).is_some(), ended);
    if let Some(how) = ending(effects) {
        prop_assert_eq!(how.leads_to(), after.state);
        let charged = if how.is_uncharged() { before.attempt - 1 } else { before.attempt };
        prop_assert_eq!(after.attempt, charged);
    }

    // Losses are counted, whatever becomes of the job.
    let lost = u16::from(matches!(event, Event::Lose { .. }));
    let losses = if *event == Event::Requeue { 0 } else { before.losses + lost };
    prop_assert_eq!(after.losses, losses);

    if before.cancel_requested && before.state == State::Running && changed {
        prop_assert!(after.state.is_terminal(), "put back although its end was asked for: {:?}", after);
    }
    prop_assert_eq!(has(Effect::ReopenAttempt), *event == Event::Requeue);
    prop_assert_eq!(has(Effect::ForgetCancelRequest), *event == Event::Requeue);
    prop_assert_eq!(&before.rules, &after.rules);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_sequence_of_events_keeps_the_invariants(
        start in any_job(), steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let (mut job, mut now, mut last) = (start, NOW, 0);
        for step in steps {
            now = now.plus(step.later);
            let lease = step.stale.map(LeaseNo).or(job.lease).unwrap_or(LeaseNo(last));
            let event = event(&step.verb, lease, LeaseNo(last + 1));
            let answer = apply(&job, &event, now);
            if speaks_for(&event).is_some_and(|lease| job.lease != Some(lease)) {
                prop_assert_eq!(&answer, &Err(Refused::LeaseLost));
            }
            match answer {
                Ok(applied) => {
                    check_change(&job, &event, now, &applied)?;
                    check_sound(&applied.job)?;
                    last += i64::from(applied.job.lease.is_some() && job.lease.is_none());
                    job = applied.job;
                }
                Err(Refused::LeaseLost) => prop_assert!(speaks_for(&event).is_some_and(|l| job.lease != Some(l))),
                Err(Refused::Illegal { from, event: kind }) => {
                    prop_assert_eq!(from, job.state);
                    prop_assert!(kinds(&event).contains(&kind), "{:?} refused as {:?}", event, kind);
                    prop_assert_eq!(next(from, kind), None);
                }
            }
        }
    }

    #[test]
    fn a_stale_lease_changes_no_job_in_any_state(
        state in prop::sample::select(State::ALL.to_vec()), verb in any_verb(), held in 1..100_i64, stale in 1..100_i64,
    ) {
        prop_assume!(held != stale);
        let lease = (state == State::Running).then_some(LeaseNo(held));
        let job = Job { state, lease, attempt: 1, ..fresh() };
        let event = event(&verb, LeaseNo(stale), LeaseNo(200));
        if speaks_for(&event).is_some() {
            prop_assert_eq!(apply(&job, &event, NOW), Err(Refused::LeaseLost));
        }
    }

    #[test]
    fn a_job_that_only_fails_or_loses_its_lease_ends(job in any_job(), losses: u64, roll: u32) {
        let mut job = Job { state: State::Queued, ..job };
        let bound = job.rules.max_attempts + job.rules.max_losses;
        let mut claims = 0_u16;
        while !job.state.is_terminal() {
            prop_assert!(claims < bound, "{:?}", job);
            let lease = LeaseNo(claims.into());
            job = claimed(&job, lease);
            let fail = Event::Fail { lease, class: Class::Transient, retry_in: None, roll: Roll(roll) };
            let event = if losses >> (claims % 64) & 1 == 1 { Event::Lose { lease } } else { fail };
            job = done(&job, &event).job;
            claims += 1;
        }
    }
}
