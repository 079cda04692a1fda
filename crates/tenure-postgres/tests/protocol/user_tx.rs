//! The port's `UserTx` over the transactions of tokio-postgres and deadpool.

use std::time::Duration;

use tenure_contract::fixture::success;
use tenure_core::journal::JournalEvent;
use tenure_core::{How, NewJob};
use tenure_postgres::deadpool_postgres::{Manager, Pool};
use tenure_postgres::tokio_postgres::NoTls;
use tenure_store::enqueue::Enqueued;
use tenure_store::lease::Ended;
use tenure_store::user_tx::{CompleteJob, UserTx};
use tenure_store::{LeaseStore, StoreError};

use crate::scene::Scene;

/// What a library built on the port writes: the store follows from the transaction.
fn complete<S, X: UserTx<S>>(tx: X, request: CompleteJob) -> X::Reply<Result<(), StoreError>> {
    tx.complete_job(request, |answer| answer)
}

fn enqueue<S, X: UserTx<S>>(tx: X, job: &NewJob) -> X::Reply<Result<Vec<Enqueued>, StoreError>> {
    tx.enqueue_jobs(vec![job.clone()], |answer| answer)
}

fn pool(scene: &Scene) -> Pool {
    let config = scene.database.url.parse().expect("a URL");
    Pool::builder(Manager::new(config, NoTls)).max_size(1).build().expect("a pool")
}

/// Every handle, shared and exclusive; the reply can be sent to another thread.
#[tokio::test]
async fn every_handle_enqueues_and_completes() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 4).await;
    let request = |n: usize| CompleteJob::new(worker, lease, jobs[n]);
    let new: Vec<NewJob> = (0..4).map(|_| scene.new_job()).collect();
    fn is_send<T: Send>(reply: T) -> T {
        reply
    }

    let mut client = scene.client().await;
    let mut tx = client.transaction().await.expect("begin");
    complete(&tx, request(0)).await.expect("complete");
    is_send(complete(&mut tx, request(1))).await.expect("complete");
    assert_eq!(enqueue(&tx, &new[0]).await.expect("enqueue"), [Enqueued::Created(new[0].id)]);
    assert_eq!(enqueue(&mut tx, &new[1]).await.expect("enqueue"), [Enqueued::Created(new[1].id)]);
    // What a refusal travels through: a batch of none does nothing and leaves the transaction as it is.
    let refused = tx.enqueue_jobs(Vec::new(), |stored| stored.map(|stored| stored.len()));
    assert_eq!(refused.await.expect("an empty batch"), 0);
    tx.commit().await.expect("commit");

    let mut client = pool(&scene).get().await.expect("connect");
    let mut tx = client.transaction().await.expect("begin");
    complete(&tx, request(2)).await.expect("complete");
    is_send(complete(&mut tx, request(3))).await.expect("complete");
    assert_eq!(enqueue(&tx, &new[2]).await.expect("enqueue"), [Enqueued::Created(new[2].id)]);
    assert_eq!(enqueue(&mut tx, &new[3]).await.expect("enqueue"), [Enqueued::Created(new[3].id)]);
    tx.commit().await.expect("commit");

    assert_eq!(scene.store.find_endings(worker, lease, jobs).await.expect("find"), [Some(How::Succeeded); 4]);
    for job in new {
        assert_eq!(scene.state(job.id).await, "queued");
    }
    scene.assert_sound().await;
}

/// A stale completion leaves nothing, not even a refusal: its transaction can only be rolled back.
#[tokio::test]
async fn a_stale_completion_leaves_no_row() {
    let scene = Scene::new().await;
    let (one, two) = (scene.worker("one").await, scene.worker("two").await);
    let (lease, jobs) = scene.claim_batch(one, 1).await;
    scene.advance(Duration::from_secs(61));
    scene.store.reclaim_jobs(None, 10).await.expect("reclaim");
    let (next, _) = scene.claim_one(two).await;
    let stale = CompleteJob::new(one, lease, jobs[0]);
    let mut client = scene.client().await;
    let tx = client.transaction().await.expect("begin");
    assert!(matches!(complete(&tx, stale).await, Err(StoreError::LeaseLost(job)) if job == jobs[0]));
    assert!(enqueue(&tx, &scene.new_job()).await.is_err(), "the transaction is aborted");
    // Postgres answers the commit of an aborted transaction by rolling it back.
    tx.commit().await.expect("commit");
    assert_eq!(scene.end(two, next, jobs[0], success()).await, Ended::Now(How::Succeeded));
    assert!(scene.journal().await.iter().all(|row| row.event != JournalEvent::Refused));
    scene.assert_sound().await;
}
