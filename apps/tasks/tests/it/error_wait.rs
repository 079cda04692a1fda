//! ErrorWait from each state of the loop in which the database is spoken to. What breaks is a table that is not there for
//! a while; the database itself is, so that each verb can be broken alone.
//!
//! Connecting, Processing and both reports are in `steps`, where the database itself goes away. The other two speak to
//! nobody: nothing can go wrong in Startup, which only begins, nor in Claiming, which hands a task over to its slot in memory.

use std::time::Duration;

use kit::testing::Place;
use tasks::state::State::{self, ErrorWait};
use tasks::state::Step;
use tasks::task::Status;
use tasks::trace::{Heard, Of};
use tasks::traced::Traced;
use tenure::row;

use crate::scene::Scene;

kit::on_each_store! {
    tasks::TABLES;
    recovery_and_polling_break_and_the_loops_go_on,
}

/// Shows: S3.33
async fn recovery_and_polling_break_and_the_loops_go_on(place: Place) {
    let mut scene = Scene::new(place).await;
    scene.settings.recovery = Duration::from_millis(10);
    let recovers = scene.trace("recovers");
    // The next recovery of this one is an hour away, so its look is the first to meet the trouble.
    scene.settings.recovery = Duration::from_secs(3_600);
    let looks = scene.trace("looks");
    for traced in [&recovers, &looks] {
        until_taken(traced, (State::Backoff, State::Idle)).await;
    }
    let [away, back] = match scene.place.database.is_postgres() {
        true => ["alter table tenure.lease rename to away", "alter table tenure.away rename to lease"],
        false => ["alter table lease rename to away", "alter table away rename to lease"],
    };
    scene.place.database.execute(away, row![]).await.unwrap();
    // Who finds something needs a lease for it.
    let task = scene.fetch("words-7").await;
    until_taken(&recovers, (State::Recovery, ErrorWait)).await;
    until_taken(&looks, (State::Polling, ErrorWait)).await;
    scene.place.database.execute(back, row![]).await.unwrap();
    for traced in [&recovers, &looks] {
        until_taken(traced, (ErrorWait, State::Connecting)).await;
    }
    scene.until(task, Status::Done).await;
    recovers.stop().await.unwrap();
    looks.stop().await.unwrap();
}

/// On Postgres a worker that rests says so in the queue's row; SQLite needs no such word. A trigger refuses it.
///
/// Shows: S3.33
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn backoff_and_idle_break_where_they_speak_to_the_database() {
    let mut scene = Scene::new(Place::postgres(tasks::TABLES).await).await;
    scene.settings.poll = Duration::from_secs(3_600);
    // Longer than the second in which nobody says again that they rest: who comes out of it says so anew.
    scene.settings.error_wait = Duration::from_millis(1_200);
    let database = &scene.place.database;
    database.make_tables(REFUSE).await.unwrap();
    let rests = scene.trace("rests");
    until_taken(&rests, (State::Backoff, State::Idle)).await;
    database.make_tables(REFUSE_ON).await.unwrap();
    // The one that rests says so again every second; the one that starts says so for the first time.
    let starts = scene.trace("starts");
    until_taken(&rests, (State::Idle, ErrorWait)).await;
    until_taken(&starts, (State::Backoff, ErrorWait)).await;
    database.make_tables(REFUSE_OFF).await.unwrap();
    for traced in [&rests, &starts] {
        until_taken(traced, (ErrorWait, State::Connecting)).await;
    }
    let task = scene.fetch("words-7").await;
    scene.until(task, Status::Done).await;
    rests.stop().await.unwrap();
    starts.stop().await.unwrap();
}

const REFUSE: &str = "create function refuse_rest() returns trigger language plpgsql as
    $$ begin raise exception 'nobody may rest'; end $$";
/// Nobody has said so just now: whoever comes next says it.
const REFUSE_ON: &str = "update tenure.queue set idle_until = to_timestamp(0);
    create trigger refuse_rest before update of idle_until on tenure.queue
    for each row execute function refuse_rest()";
const REFUSE_OFF: &str = "drop trigger refuse_rest on tenure.queue";

async fn until_taken(traced: &Traced, (begin, end): Step) {
    let is_it = |heard: &Heard| matches!(heard.of, Of::Loop { from, to } if (from, to) == (begin, end));
    traced.steps().until(&format!("{begin} -> {end}"), |heard| heard.iter().any(is_it)).await.unwrap();
}
