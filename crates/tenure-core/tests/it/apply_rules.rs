//! What `apply` does, each rule by example.

use std::time::Duration;

use tenure_core::apply::{Effect, Event, Job, Refused, Rules, apply, loss_delay};
use tenure_core::backoff::{Backoff, Roll};
use tenure_core::lifecycle::{How, State};
use tenure_core::{Class, EventKind, LeaseNo, Timestamp};

use crate::one_job::{NOW, claimed, done, ending, fresh};

const L1: LeaseNo = LeaseNo(1);

/// A job on its `attempt`-th attempt, held by lease 1.
fn running(attempt: u16) -> Job {
    Job { state: State::Running, attempt, lease: Some(L1), ..fresh() }
}

fn fail(class: Class) -> Event {
    Event::Fail { lease: L1, class, retry_in: None, roll: Roll(0) }
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[test]
fn a_claim_charges_an_attempt_and_takes_the_ready_row() {
    let applied = done(&fresh(), &Event::Claim { lease: L1 });
    assert_eq!(applied.job, running(1));
    assert_eq!(applied.effects, [Effect::RemoveReady]);
}

#[test]
fn a_completed_job_has_succeeded_even_when_its_end_was_asked_for() {
    for cancel_requested in [false, true] {
        let applied = done(&Job { cancel_requested, ..running(1) }, &Event::Complete { lease: L1 });
        assert_eq!(applied.job.state, State::Succeeded);
        assert_eq!(applied.effects, [Effect::EndAttempt(How::Succeeded)]);
    }
}

#[test]
fn a_transient_error_is_tried_again_after_the_backoff() {
    let applied = done(&running(2), &fail(Class::Transient));
    let expected = Job { state: State::Retryable, attempt: 2, run_at: NOW.plus(seconds(20)), ..fresh() };
    assert_eq!(applied.job, expected);
    assert_eq!(applied.effects, [Effect::EndAttempt(How::Retry), Effect::PutReady]);
}

#[test]
fn a_handlers_own_delay_replaces_the_backoff() {
    let event = Event::Fail { lease: L1, class: Class::Transient, retry_in: Some(seconds(7)), roll: Roll(0) };
    assert_eq!(done(&running(1), &event).job.run_at, NOW.plus(seconds(7)));
}

#[test]
fn errors_end_a_job_by_class_attempt_and_policy() {
    use Class::{Dead, Permanent, Transient};
    for (class, attempt, backoff, how) in [
        (Transient, 4, Backoff::None, How::Retry),
        (Transient, 5, Backoff::None, How::Dead),
        (Permanent, 1, Backoff::None, How::Failed),
        (Permanent, 5, Backoff::None, How::Failed), // on the last attempt as well: failed, not dead
        (Dead, 1, Backoff::None, How::Dead),
        (Transient, 1, Backoff::Never, How::Failed),
        (Transient, 5, Backoff::Never, How::Failed),
        (Dead, 1, Backoff::Never, How::Dead),
    ] {
        let rules = Rules { backoff, ..Rules::default() };
        let applied = done(&Job { rules, ..running(attempt) }, &fail(class));
        assert_eq!(applied.job.state, how.leads_to(), "{class:?} {attempt}");
        assert_eq!(ending(&applied.effects), Some(how), "{class:?} {attempt}");
        assert_eq!(applied.job.attempt, attempt);
    }
}

#[test]
fn snoozed_and_released_attempts_are_not_charged() {
    for (event, how) in [
        (Event::Snooze { lease: L1, delay: seconds(90) }, How::Snoozed),
        (Event::Release { lease: L1, delay: seconds(90) }, How::Released),
    ] {
        // The last attempt: whoever only asks for later is never dead by it.
        let applied = done(&running(5), &event);
        assert_eq!(applied.job, Job { attempt: 4, run_at: NOW.plus(seconds(90)), ..fresh() });
        assert_eq!(applied.effects, [Effect::EndAttempt(how), Effect::PutReady]);
    }
}

#[test]
fn the_first_lost_lease_is_due_at_once_and_the_next_ones_wait_longer() {
    let waits = (0..=12).map(|losses| loss_delay(losses).as_secs()).collect::<Vec<_>>();
    assert_eq!(waits, [0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
    assert_eq!(loss_delay(u16::MAX), seconds(300));

    let once = done(&running(1), &Event::Lose { lease: L1 });
    assert_eq!(once.job, Job { losses: 1, ..fresh() });
    assert_eq!(once.effects, [Effect::EndAttempt(How::Lost), Effect::PutReady]);
    let twice = done(&claimed(&once.job, L1), &Event::Lose { lease: L1 }).job;
    assert_eq!(twice, Job { losses: 2, run_at: NOW.plus(seconds(1)), ..fresh() });
}

#[test]
fn one_loss_too_many_is_dead() {
    let rules = Rules { max_losses: 3, ..Rules::default() };
    let before = Job { losses: 1, rules, ..running(1) };
    assert_eq!(done(&before, &Event::Lose { lease: L1 }).job.state, State::Queued);
    let applied = done(&Job { losses: 2, ..before }, &Event::Lose { lease: L1 });
    assert_eq!((applied.job.state, applied.job.losses), (State::Dead, 3));
    assert_eq!(applied.effects, [Effect::EndAttempt(How::Dead)]);
}

#[test]
fn a_job_that_never_retries_is_still_tried_again_after_a_lost_lease() {
    let rules = Rules { backoff: Backoff::Never, ..Rules::default() };
    assert_eq!(done(&Job { rules, ..running(1) }, &Event::Lose { lease: L1 }).job.state, State::Queued);
}

#[test]
fn expired_is_not_lost_until_somebody_reclaims_it() {
    let late = NOW.plus(seconds(86_400));
    let applied = apply(&running(1), &Event::Complete { lease: L1 }, late).unwrap();
    assert_eq!(applied.job.state, State::Succeeded);
}

#[test]
fn a_job_nobody_holds_is_canceled_at_once() {
    for state in [State::Waiting, State::Queued, State::Retryable] {
        for force in [false, true] {
            let applied = done(&Job { state, ..fresh() }, &Event::Cancel { force });
            assert_eq!(applied.job.state, State::Canceled);
            assert_eq!(applied.effects, [Effect::RemoveReady, Effect::EndAttempt(How::Canceled)]);
        }
    }
}

#[test]
fn a_held_job_is_canceled_by_request_and_ends_with_whatever_would_put_it_back() {
    let asked = done(&running(1), &Event::Cancel { force: false });
    assert_eq!(asked.job, Job { cancel_requested: true, ..running(1) });
    assert_eq!(asked.effects, [Effect::RequestCancel]);
    for event in [
        Event::Acknowledge { lease: L1 },
        fail(Class::Transient),
        Event::Snooze { lease: L1, delay: seconds(1) },
        Event::Release { lease: L1, delay: Duration::ZERO },
        Event::Lose { lease: L1 },
    ] {
        let applied = done(&asked.job, &event);
        assert_eq!(applied.job.state, State::Canceled, "{event:?}");
        assert_eq!(applied.effects, [Effect::EndAttempt(How::Canceled)], "{event:?}");
    }
}

#[test]
fn an_error_that_is_final_anyway_stays_what_it_was_when_the_end_was_asked_for() {
    let asked = Job { cancel_requested: true, ..running(1) };
    assert_eq!(done(&asked, &fail(Class::Permanent)).job.state, State::Failed);
    assert_eq!(done(&asked, &fail(Class::Dead)).job.state, State::Dead);
}

#[test]
fn force_fences_the_holder_at_once() {
    let applied = done(&running(1), &Event::Cancel { force: true });
    assert_eq!((applied.job.state, applied.job.lease), (State::Canceled, None));
    assert_eq!(apply(&applied.job, &Event::Complete { lease: L1 }, NOW), Err(Refused::LeaseLost));
}

#[test]
fn a_ready_job_whose_end_was_asked_for_is_ended_instead_of_claimed() {
    let applied = done(&Job { cancel_requested: true, ..fresh() }, &Event::Claim { lease: L1 });
    assert_eq!((applied.job.state, applied.job.lease), (State::Canceled, None));
    assert_eq!(applied.effects, [Effect::RemoveReady, Effect::EndAttempt(How::Canceled)]);
}

#[test]
fn a_held_job_whose_end_was_asked_for_is_not_claimed_away_from_its_holder() {
    // Found by the property above: the claim ended the job and left its lease behind.
    let refused = apply(&Job { cancel_requested: true, ..running(1) }, &Event::Claim { lease: LeaseNo(2) }, NOW);
    assert_eq!(refused, Err(Refused::Illegal { from: State::Running, event: EventKind::Claim }));
}

#[test]
fn a_requeued_job_starts_again_but_for_its_fence() {
    for state in [State::Failed, State::Dead, State::Canceled] {
        let ended = Job { state, attempt: 5, losses: 3, cancel_requested: true, run_at: Timestamp::EPOCH, ..fresh() };
        let applied = done(&ended, &Event::Requeue);
        assert_eq!(applied.job, fresh());
        assert_eq!(applied.effects, [Effect::ReopenAttempt, Effect::ForgetCancelRequest, Effect::PutReady]);
    }
    let refused = apply(&Job { state: State::Succeeded, ..fresh() }, &Event::Requeue, NOW).unwrap_err();
    assert_eq!(refused.to_string(), "a succeeded job cannot Requeue");
}

#[test]
fn an_opened_job_is_due_now() {
    let waiting = Job { state: State::Waiting, run_at: Timestamp::EPOCH, ..fresh() };
    let applied = done(&waiting, &Event::Open);
    assert_eq!(applied.job, fresh());
    assert_eq!(applied.effects, [Effect::RemoveReady, Effect::PutReady]);
}

#[test]
fn a_waiting_job_is_not_claimed() {
    let refused = apply(&Job { state: State::Waiting, ..fresh() }, &Event::Claim { lease: L1 }, NOW);
    assert_eq!(refused, Err(Refused::Illegal { from: State::Waiting, event: EventKind::Claim }));
}
