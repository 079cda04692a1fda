//! Schedules: what workers fire, however many of them there are.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::cron::Missed;
use tenure_core::{JobId, Json, KindName, NewJob, QueueName, State, Timestamp};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::operate::{Quota, SetQueue};
use tenure_store::schedule::{FireRecord, ScheduleSet};
use tenure_store::{AdminStore, IntoStore, JobStore, Store, StoreError};
use tenure_worker::{Client, Schedule, Worker};

use crate::bench::{Bench, Task, watch};
use crate::flaky::{Fault, Flaky, Verb};

const SECOND: Duration = Duration::from_secs(1);

/// A store whose clock stands still.
async fn still() -> (SqliteStore, ManualClock) {
    let clock = ManualClock::new(Timestamp::parse("clock", "2026-01-01T00:00:00Z").unwrap());
    let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
    let store = SqliteStore::in_memory(options).unwrap();
    store.migrate().await.unwrap();
    (store, clock)
}

fn worker(store: &Arc<dyn Store>) -> Worker {
    Worker::builder(store).queue("default", 2).handle(|_: Task| async {}).build().unwrap()
}

fn each_second() -> Schedule {
    Schedule::new("pulse", "* * * * * *")
}

async fn fires(client: &Client) -> Vec<FireRecord> {
    client.show_schedule("pulse").await.unwrap().1
}

#[tokio::test]
async fn of_two_workers_one_fires_each_second() {
    let (store, clock) = still().await;
    let (client, shared) = (Client::new(&store), store.clone().into_store());
    let (first, second) = (worker(&shared), worker(&shared));
    assert_eq!(client.set_schedule(each_second(), Task { n: 1 }).await.unwrap(), ScheduleSet::Created);
    let mut succeeded = 0;
    for _ in 0..30 {
        clock.advance(SECOND);
        let (one, other) = tokio::join!(first.run_until_idle(), second.run_until_idle());
        succeeded += one.unwrap().succeeded + other.unwrap().succeeded;
    }
    let fires = fires(&client).await;
    let times: BTreeSet<Timestamp> = fires.iter().map(|fire| fire.fire_at).collect();
    let jobs: BTreeSet<JobId> = fires.iter().map(|fire| fire.job).collect();
    assert_eq!((times.len(), jobs.len(), succeeded), (30, 30, 30));
    assert!(fires.iter().all(|fire| fire.state == Some(State::Succeeded)), "{fires:?}");
}

/// A queue that is full for a moment costs no fire: the grace of one is longer than the wait.
#[tokio::test]
async fn a_fire_into_a_full_queue_comes_when_there_is_room() {
    let (store, clock) = still().await;
    let (client, shared) = (Client::new(&store), store.clone().into_store());
    let full = QueueName::new("full").unwrap();
    let quota = Some(Quota::Pending(1));
    store.set_queue(SetQueue { quota, ..SetQueue::new(full.clone(), SECOND * 60) }).await.unwrap();
    let before = JobId::from_parts(store.now().await.unwrap(), [7; 10]);
    let job = NewJob { queue: full, ..NewJob::new(before, KindName::new("task").unwrap(), Json::null()) };
    store.enqueue_jobs(vec![job]).await.unwrap();
    client.set_schedule(Schedule::new("pulse", "0 * * * * *").queue("full"), Task { n: 2 }).await.unwrap();
    clock.advance(SECOND * 60);
    worker(&shared).run_until_idle().await.unwrap();
    assert!(fires(&client).await.is_empty());
    client.cancel(before).await.unwrap();
    clock.advance(SECOND * 5);
    worker(&shared).run_until_idle().await.unwrap();
    assert_eq!(fires(&client).await.len(), 1);
}

/// The whole process, by the machine's own clock.
#[tokio::test(flavor = "multi_thread")]
async fn running_workers_fire_by_themselves() {
    let bench = Bench::new().await;
    bench.client.set_schedule(each_second(), Task { n: 1 }).await.unwrap();
    let enough = watch("two jobs of it have succeeded", async || {
        fires(&bench.client).await.iter().filter(|fire| fire.state == Some(State::Succeeded)).count() >= 2
    });
    let stop = Arc::new(tokio::sync::Notify::new());
    let other = worker(&bench.store).run_until({
        let stop = Arc::clone(&stop);
        async move { stop.notified().await }
    });
    let one = worker(&bench.store).run_until(async {
        enough.await;
        stop.notify_one();
    });
    let (one, other) = tokio::join!(one, other);
    let fires = fires(&bench.client).await;
    let times: BTreeSet<Timestamp> = fires.iter().map(|fire| fire.fire_at).collect();
    assert_eq!(times.len(), fires.len());
    assert!(one.unwrap().claimed + other.unwrap().claimed <= fires.len() as u64);
}

#[tokio::test]
async fn a_fire_whose_reply_is_lost_is_not_repeated() {
    let (store, clock) = still().await;
    let client = Client::new(&store);
    let flaky = Flaky::new(store);
    let worker = worker(&flaky.clone().into_store());
    client.set_schedule(each_second(), Task { n: 1 }).await.unwrap();
    worker.run_until_idle().await.unwrap();
    clock.advance(SECOND);
    flaky.fail(Verb::Fire, Fault::ReplyLost, 1);
    let lost = worker.run_until_idle().await;
    assert!(matches!(lost, Err(StoreError::Unavailable(..))), "{lost:?}");
    let summary = worker.run_until_idle().await.unwrap();
    assert_eq!((summary.succeeded, fires(&client).await.len()), (1, 1));
}

#[tokio::test]
async fn a_fire_that_did_not_come_through_is_tried_again() {
    let (store, clock) = still().await;
    let client = Client::new(&store);
    let flaky = Flaky::new(store);
    let worker = worker(&flaky.clone().into_store());
    client.set_schedule(each_second(), Task { n: 1 }).await.unwrap();
    worker.run_until_idle().await.unwrap();
    clock.advance(SECOND);
    flaky.fail(Verb::Fire, Fault::LostBefore, 1);
    assert!(worker.run_until_idle().await.is_err());
    let summary = worker.run_until_idle().await.unwrap();
    assert_eq!((summary.succeeded, fires(&client).await.len()), (1, 1));
}

/// One transaction for a page of fires; and a tenant with one due schedule is in the first page of another's hundreds.
#[tokio::test]
async fn hundreds_of_due_schedules_are_fired_in_few_transactions_tenants_in_turn() {
    let (store, clock) = still().await;
    let client = Client::new(&store);
    let noisy = client.clone().for_tenant("noisy".parse().unwrap());
    for n in 0..250 {
        noisy.set_schedule(Schedule::new(&format!("n{n}"), "0 * * * * *"), Task { n }).await.unwrap();
    }
    client.set_schedule(Schedule::new("pulse", "0 * * * * *"), Task { n: 1 }).await.unwrap();
    let flaky = Flaky::new(store);
    let shared = flaky.clone().into_store();
    let worker = Worker::builder(&shared).queue("default", 20).handle(|_: Task| async {}).build().unwrap();
    worker.run_until_idle().await.unwrap();
    let before = flaky.fires().len();
    clock.advance(SECOND * 60);
    let summary = worker.run_until_idle().await.unwrap();
    let batches = flaky.fires().split_off(before);
    let sizes: Vec<usize> = batches.iter().map(Vec::len).collect();
    assert_eq!((sizes, summary.succeeded), (vec![100, 100, 51], 251));
    let pulse = client.show_schedule("pulse").await.unwrap().0.id;
    assert!(batches[0].contains(&pulse), "{:?}", batches[0]);
    assert_eq!(fires(&client).await.len(), 1);
}

/// Whatever the store says of one batch, each schedule of it has its own chance.
#[tokio::test]
async fn a_batch_that_the_store_refuses_is_fired_one_by_one() {
    let (store, clock) = still().await;
    let client = Client::new(&store);
    for name in ["a", "b", "pulse"] {
        client.set_schedule(Schedule::new(name, "0 * * * * *"), Task { n: 1 }).await.unwrap();
    }
    let flaky = Flaky::new(store);
    let worker = worker(&flaky.clone().into_store());
    worker.run_until_idle().await.unwrap();
    clock.advance(SECOND * 60);
    flaky.fail(Verb::Fire, Fault::Corrupt, 1);
    let summary = worker.run_until_idle().await.unwrap();
    assert_eq!((summary.succeeded, fires(&client).await.len()), (3, 1));
    assert_eq!(flaky.hits(Verb::Fire, Fault::Corrupt), 1);
}

#[tokio::test]
async fn a_client_sets_pauses_lists_and_removes() {
    let (store, clock) = still().await;
    let client = Client::new(&store);
    let nightly = || {
        let draft = Schedule::new("nightly", "0 0 3 * * *").zone("Europe/Berlin").make_up_missed();
        draft.grace(SECOND * 90).queue("slow").gate("source:ebay").max_attempts(2)
    };
    assert_eq!(client.set_schedule(nightly(), Task { n: 7 }).await.unwrap(), ScheduleSet::Created);
    assert_eq!(client.set_schedule(nightly(), Task { n: 7 }).await.unwrap(), ScheduleSet::Same);
    assert_eq!(client.set_schedule(nightly(), Task { n: 8 }).await.unwrap(), ScheduleSet::Changed);
    let listed = client.schedules().await.unwrap();
    let (timing, template) = (listed[0].timing.clone().unwrap(), &listed[0].template);
    assert_eq!((timing.missed, timing.grace, timing.zone.name()), (Missed::Once, SECOND * 90, "Europe/Berlin"));
    assert_eq!((template.queue.as_str(), template.payload.as_str()), ("slow", "{\"n\":8}"));
    assert_eq!((template.rules.max_attempts, template.rules.max_losses), (2, 5));
    assert_eq!(template.gate.as_ref().unwrap().as_str(), "source:ebay");
    // Three in the morning in Berlin.
    assert_eq!(listed[0].next(), Some(clock.now().plus(SECOND * 2 * 3_600)));
    client.pause_schedule("nightly").await.unwrap();
    assert!(client.show_schedule("nightly").await.unwrap().0.paused);
    client.resume_schedule("nightly").await.unwrap();
    let other = client.clone().for_tenant("acme".parse().unwrap());
    assert!(matches!(other.remove_schedule("nightly").await, Err(StoreError::NotFound(_))));
    client.remove_schedule("nightly").await.unwrap();
    assert_eq!(client.schedules().await.unwrap(), []);
}

#[tokio::test]
async fn what_was_said_wrongly_is_refused_by_its_name() {
    let (store, _) = still().await;
    let client = Client::new(&store);
    for (field, draft) in [
        ("schedule", Schedule::new("a b", "@daily")),
        ("cron minute", Schedule::new("s", "60 * * * *")),
        ("zone", Schedule::new("s", "@daily").zone("Berlin")),
        ("queue", Schedule::new("s", "@daily").queue("")),
        ("max_attempts", Schedule::new("s", "@daily").max_attempts(0)),
    ] {
        match client.set_schedule(draft, Task { n: 1 }).await {
            Err(StoreError::Invalid(invalid)) => assert_eq!(invalid.field, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    assert_eq!(client.schedules().await.unwrap(), []);
}
