//! Wake-ups.

use std::time::Duration;

use tenure_core::name::QueueName;
use tenure_core::new_job::Due;
use tenure_sqlite::SqliteStore;
use tenure_store::operate::{LEASE_TTL_DEFAULT, PauseQueue, SetQueue};
use tenure_store::{AdminStore, JobStore, WakeStore};

use crate::fixture::{Fixture, new_job, options, word};

fn waiter(store: &SqliteStore) -> tokio::task::JoinHandle<()> {
    let store = store.clone();
    tokio::spawn(async move { store.wait_for_work(&[QueueName::default()]).await.unwrap() })
}

#[tokio::test]
async fn an_enqueue_wakes_who_waits_and_what_is_due_needs_no_waiting() {
    for fixture in [Fixture::memory().await, Fixture::file().await] {
        let waiting = waiter(&fixture.store);
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        fixture.enqueue(1).await;
        waiting.await.unwrap();
        // The job is still there: waiting again returns at once, so no wake-up is ever missed.
        waiter(&fixture.store).await.unwrap();
    }
}

#[tokio::test]
async fn work_of_another_process_is_noticed() {
    let fixture = Fixture::file().await;
    let other = SqliteStore::open(fixture.path(), options(&fixture.clock)).unwrap();
    let waiting = waiter(&other);
    fixture.enqueue(1).await;
    waiting.await.unwrap();
}

#[tokio::test]
async fn a_paused_queue_wakes_nobody_until_it_is_resumed() {
    let fixture = Fixture::memory().await;
    let pause = |paused| PauseQueue { queue: QueueName::default(), paused, word: word() };
    fixture.store.set_queue(SetQueue::new(QueueName::default(), LEASE_TTL_DEFAULT)).await.unwrap();
    fixture.store.pause_queue(pause(true)).await.unwrap();
    let waiting = waiter(&fixture.store);
    fixture.enqueue(1).await;
    for _ in 0..5 {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished());
    fixture.store.pause_queue(pause(false)).await.unwrap();
    waiting.await.unwrap();
}

#[tokio::test]
async fn a_scheduled_job_on_a_file_is_noticed_when_it_is_due() {
    let fixture = Fixture::file().await;
    let mut job = new_job(fixture.clock.now());
    job.due = Due::After(Duration::from_secs(60));
    fixture.store.enqueue_jobs(vec![job]).await.unwrap();
    let waiting = waiter(&fixture.store);
    fixture.clock.advance(Duration::from_secs(61));
    waiting.await.unwrap();
}
