//! The writer thread: its order, its deaths, and what it commits together.

use std::sync::{Arc, Mutex, mpsc};

use tenure_core::name::QueueName;
use tenure_store::lease::RenewLeases;
use tenure_store::operate::{LEASE_TTL_DEFAULT, PauseQueue, SetQueue};
use tenure_store::{AdminStore, JobStore, LeaseStore, StoreError};

use crate::fixture::{Fixture, new_job, word};

/// Occupies the writer until the sender is dropped; everything asked meanwhile waits in its queue.
pub(crate) fn occupy(fixture: &Fixture) -> (mpsc::Sender<()>, tokio::task::JoinHandle<()>) {
    let (free, wait) = mpsc::channel::<()>();
    let store = fixture.store.clone();
    let task = tokio::spawn(async move {
        let closed = store
            .transaction(move |_| {
                let _ = wait.recv();
                Ok::<_, StoreError>(())
            })
            .await;
        closed.unwrap();
    });
    (free, task)
}

#[tokio::test]
async fn a_renewal_overtakes_bulk_that_came_before_it() {
    let fixture = Fixture::file().await;
    fixture.enqueue(1).await;
    let lease = fixture.claim(1).await.unwrap().lease;
    let order = Arc::new(Mutex::new(Vec::new()));
    let (free, occupied) = occupy(&fixture);
    tokio::task::yield_now().await;

    let mut tasks = Vec::new();
    for _ in 0..3 {
        let (store, order) = (fixture.store.clone(), Arc::clone(&order));
        let jobs = (0..500).map(|_| new_job(fixture.clock.now())).collect();
        tasks.push(tokio::spawn(async move {
            store.enqueue_jobs(jobs).await.unwrap();
            order.lock().unwrap().push("bulk");
        }));
    }
    let (store, renewed, worker) = (fixture.store.clone(), Arc::clone(&order), fixture.worker);
    tasks.push(tokio::spawn(async move {
        let answer = store.renew_leases(RenewLeases { worker, leases: vec![lease] }).await.unwrap();
        assert_eq!(answer.leases, [lease]);
        renewed.lock().unwrap().push("renewal");
    }));
    // One thread runs all tasks: after this each of them has queued its turn.
    tokio::task::yield_now().await;
    drop(free);
    occupied.await.unwrap();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*order.lock().unwrap(), ["renewal", "bulk", "bulk", "bulk"]);
}

#[tokio::test]
async fn one_refused_verb_takes_no_neighbour_with_it() {
    let fixture = Fixture::file().await;
    for queue in ["a", "b"] {
        let made = SetQueue::new(QueueName::new(queue).unwrap(), LEASE_TTL_DEFAULT);
        fixture.store.set_queue(made).await.unwrap();
    }
    let (free, occupied) = occupy(&fixture);
    tokio::task::yield_now().await;
    let job = new_job(fixture.clock.now());
    let id = job.id;
    let pause = |name: &str| PauseQueue { queue: QueueName::new(name).unwrap(), paused: true, word: word() };
    // These wait together and share one commit; the second is refused after it began.
    let unknown = tenure_store::operate::OpenJob {
        sight: Default::default(),
        job: new_job(fixture.clock.now()).id,
        word: word(),
    };
    let (store, queue_a, queue_b) = (&fixture.store, pause("a"), pause("b"));
    let group = async {
        tokio::join!(
            store.enqueue_jobs(vec![job]),
            store.open_job(unknown),
            store.pause_queue(queue_a),
            store.pause_queue(queue_b)
        )
    };
    let free_later = async {
        tokio::task::yield_now().await;
        drop(free);
    };
    let ((enqueued, refused, a, b), ()) = tokio::join!(group, free_later);
    occupied.await.unwrap();
    assert_eq!(enqueued.unwrap()[0].job(), id);
    assert!(matches!(refused, Err(StoreError::NotFound(_))));
    a.unwrap();
    b.unwrap();
    assert_eq!(fixture.store.list_queues().await.unwrap().iter().filter(|queue| queue.paused).count(), 2);
}

#[tokio::test]
async fn the_writer_survives_a_panic_and_rolls_back() {
    for fixture in [Fixture::file().await, Fixture::memory().await] {
        let store = fixture.store.clone();
        let job = new_job(fixture.clock.now());
        let panicked = tokio::spawn(async move {
            store
                .transaction(move |tx| -> Result<(), StoreError> {
                    tx.enqueue(vec![job])?;
                    panic!("a bug of the user's")
                })
                .await
        });
        assert!(panicked.await.unwrap_err().is_panic(), "the panic goes on in the caller");
        assert!(fixture.claim(1).await.is_none(), "nothing was kept");
        assert_eq!(fixture.enqueue(1).await.len(), 1, "the store goes on");
    }
}

#[tokio::test]
async fn the_last_handle_closes_the_file() {
    let fixture = Fixture::file().await;
    let path = fixture.path();
    let clone = fixture.store.clone();
    let Fixture { store, directory, .. } = fixture;
    drop(store);
    assert!(path.with_extension("db-wal").exists(), "a clone keeps it open");
    drop(clone);
    assert!(!path.with_extension("db-wal").exists(), "closing the last connection removes the log");
    drop(directory);
}

#[tokio::test]
async fn the_last_handle_may_go_inside_a_transaction() {
    let fixture = Fixture::file().await;
    let Fixture { store, directory, .. } = fixture;
    let (own, (sent, received)) = (store.clone(), mpsc::channel::<()>());
    let work = tokio::spawn(async move {
        store
            .transaction(move |_| {
                let _ = received.recv();
                drop(own);
                Ok::<_, StoreError>(())
            })
            .await
    });
    tokio::task::yield_now().await;
    work.abort();
    // The caller is gone; the closure on the writer thread holds the last handle.
    let _ = work.await;
    drop(sent);
    drop(directory);
}
