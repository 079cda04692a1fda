//! When the loop looks: not one by one, not without end, and for what it lost as well.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::How;
use tenure_worker::{State, Worker};
use tokio::sync::Semaphore;

use crate::bench::{Task, watch};
use crate::flaky::{Fault, Verb};
use crate::reports::flaky;

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_claim_is_given_back_though_every_slot_is_taken() {
    let (bench, flaky) = flaky().await;
    flaky.fail(Verb::Claim, Fault::ReplyLost, 1);
    let lost = bench.enqueue(1).await;
    bench.enqueue(2).await;
    let gate = Arc::new(Semaphore::new(0));
    async fn handler(_: Task, State(gate): State<Arc<Semaphore>>) {
        gate.acquire().await.unwrap().forget();
    }
    let worker =
        Worker::builder(&bench.store).state(Arc::clone(&gate)).queue("default", 1).handle(handler).build().unwrap();
    let mut in_time = false;
    let stop = async {
        let given_back = watch("it is given back", async || {
            bench.show(lost).await.attempts.first().is_some_and(|attempt| attempt.how == How::Released)
        });
        in_time = tokio::time::timeout(Duration::from_secs(5), given_back).await.is_ok();
        gate.add_permits(10);
    };
    worker.run_until(stop).await.unwrap();
    assert!(in_time, "it waits for the end of its lease");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_cannot_wake_is_polled_no_more_often_for_it() {
    let (bench, flaky) = flaky().await;
    flaky.fail(Verb::Wait, Fault::LostBefore, u32::MAX);
    let worker =
        Worker::builder(&bench.store).poll_every(Duration::from_secs(40)).handle(|_: Task| async {}).build().unwrap();
    worker.run_until(tokio::time::sleep(Duration::from_secs(2))).await.unwrap();
    let claims = flaky.claims().len();
    assert!(claims <= 4, "{claims} looks in two seconds");
}

#[tokio::test(flavor = "multi_thread")]
async fn slots_are_refilled_together_also_after_a_rest() {
    let (bench, flaky) = flaky().await;
    // One slot of sixteen is free every other millisecond; a fourth of them is worth a claim.
    let handler = |job: Task| async move {
        tokio::time::sleep(Duration::from_millis(10 + job.n % 16)).await;
    };
    let worker = Worker::builder(&bench.store).queue("default", 16).handle(handler).build().unwrap();
    let mut looked = 0;
    let stop = async {
        watch("it has looked in vain", async || flaky.claims().len() > 1).await;
        bench.client.enqueue_many((0..400).map(|n| Task { n })).await.unwrap();
        looked = flaky.claims().len();
        watch("all are done", async || {
            let queues = tenure_store::AdminStore::list_queues(&bench.inner).await.unwrap();
            queues.iter().map(|queue| queue.due + queue.running).sum::<u64>() == 0
        })
        .await;
    };
    worker.run_until(stop).await.unwrap();
    let single = flaky.claims()[looked..].iter().filter(|limit| **limit == 1).count();
    assert!(single < 40, "{single} claims for a single slot: {:?}", flaky.claims());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_rests_long_can_be_woken_all_the_time() {
    let (bench, flaky) = flaky().await;
    let worker =
        Worker::builder(&bench.store).poll_every(Duration::from_secs(80)).handle(|_: Task| async {}).build().unwrap();
    // A store keeps the request for two seconds at most.
    worker.run_until(tokio::time::sleep(Duration::from_millis(4_500))).await.unwrap();
    let (pushes, claims) = (flaky.pushes(), flaky.claims().len());
    assert!(pushes >= 4 && claims <= 3, "{pushes} requests and {claims} looks in four seconds");
}
