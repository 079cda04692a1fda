//! A job to apply events to.

use tenure_core::apply::{Applied, Effect, Event, Job, Rules, apply};
use tenure_core::lifecycle::{How, State};
use tenure_core::{LeaseNo, Timestamp};

pub(crate) const NOW: Timestamp = Timestamp::from_micros(1_763_197_200_000_000);

pub(crate) fn fresh() -> Job {
    Job {
        state: State::Queued,
        attempt: 0,
        losses: 0,
        run_at: NOW,
        lease: None,
        cancel_requested: false,
        rules: Rules::default(),
    }
}

pub(crate) fn done(job: &Job, event: &Event) -> Applied {
    match apply(job, event, NOW) {
        Ok(applied) => applied,
        Err(refused) => panic!("{event:?} on {job:?}: {refused}"),
    }
}

pub(crate) fn claimed(job: &Job, lease: LeaseNo) -> Job {
    done(job, &Event::Claim { lease }).job
}

pub(crate) fn ending(effects: &[Effect]) -> Option<How> {
    effects.iter().find_map(|effect| match effect {
        Effect::EndAttempt(how) => Some(*how),
        Effect::RemoveReady
        | Effect::PutReady
        | Effect::RequestCancel
        | Effect::ForgetCancelRequest
        | Effect::ReopenAttempt => None,
    })
}
