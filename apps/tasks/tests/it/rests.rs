//! How long a worker rests and waits, by a clock that runs on whenever nothing else is to be done: the times are exact on
//! any machine, and none of them is waited for. The store is in memory, so nothing happens beside the worker's thread.

use std::time::Duration;

use kit::testing::Place;
use tasks::state::State;
use tasks::trace::{Heard, Of};
use tasks::traced::Traced;
use tasks::{Settings, worker};
use tenure::row;

/// A timer of tokio fires within a millisecond, also one of no time at all.
const TIMER: Duration = Duration::from_millis(2);

/// A worker whose clock is not the machine's.
fn start(place: &Place) -> Traced {
    let worker = worker(&place.database, &Settings::default()).unwrap().build().unwrap();
    let make = async move || {
        tokio::time::pause();
        Ok(worker)
    };
    Traced::start(make).unwrap()
}

/// How long the loop was in a state, each time that it left it.
fn stays(heard: &[Heard], state: State) -> Vec<Duration> {
    let mut since = None;
    let mut stays = Vec::new();
    for Heard { of, at } in heard {
        if let Of::Loop { from, to } = of {
            if *from == state {
                stays.extend(since.take().map(|since| *at - since));
            }
            if *to == state {
                since = Some(*at);
            }
        }
    }
    stays
}

/// Give or take a tenth.
fn is_about(stay: Duration, millis: u64) -> bool {
    let millis = Duration::from_millis(millis);
    stay >= millis.mul_f64(0.9) && stay <= millis.mul_f64(1.1) + TIMER
}

/// Shows: S3.17 S3.34 S3.37 S3.42
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_error_wait_is_five_seconds_and_then_it_connects_again() {
    let place = Place::sqlite(tasks::TABLES).await;
    place.database.execute("alter table worker rename to worker_away", row![]).await.unwrap();
    let traced = start(&place);
    traced.steps().until("five waits", |heard| stays(heard, State::ErrorWait).len() >= 5).await.unwrap();
    place.database.execute("alter table worker_away rename to worker", row![]).await.unwrap();
    let polls = |heard: &[Heard]| heard.iter().any(|heard| matches!(heard.of, Of::Loop { to: State::Polling, .. }));
    traced.steps().until("a look", polls).await.unwrap();
    let heard = traced.steps().heard();
    traced.stop().await.unwrap();
    let waits = stays(&heard, State::ErrorWait);
    assert!(waits.iter().all(|wait| is_about(*wait, 5_000)), "{waits:?}");
    for (at, heard_at) in heard.iter().enumerate() {
        if let Of::Loop { to: State::ErrorWait, .. } = heard_at.of {
            let then = heard.get(at + 1).map(|next| &next.of);
            let connects = Of::Loop { from: State::ErrorWait, to: State::Connecting };
            assert!(then.is_none_or(|then| *then == connects), "{then:?}");
        }
    }
}

/// Each rest is twice the one before, until the poll interval of a second, and stays that long. Once a second the worker
/// tells the store that somebody waits, and looks once more without any rest: those zeros are no rests.
///
/// Shows: S3.07 S3.08 S3.36
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rests_double_until_the_poll_interval_and_stay_there() {
    let place = Place::sqlite(tasks::TABLES).await;
    let traced = start(&place);
    traced.steps().until("forty rests", |heard| stays(heard, State::Idle).len() >= 40).await.unwrap();
    let heard = traced.steps().heard();
    traced.stop().await.unwrap();
    let mut rests = stays(&heard, State::Idle);
    rests.retain(|rest| *rest > TIMER);
    assert!(rests.len() >= 15, "{rests:?}");
    let expected = [125, 250, 500].into_iter().chain(std::iter::repeat(1_000));
    assert!(rests.iter().zip(expected).all(|(rest, millis)| is_about(*rest, millis)), "{rests:?}");
    for state in [State::Backoff, State::Connecting, State::Recovery] {
        assert!(stays(&heard, state).iter().all(|stay| *stay < Duration::from_millis(100)), "{state} is no sleep");
    }
}
