//! A waker beside the store: it wakes, it is told, and without it there is the poll.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::State as JobState;
use tenure_store::Waker;
use tenure_store::waker::ManualWaker;
use tenure_worker::{Client, Ctx, Worker};

use crate::bench::{Bench, Task, watch};
use crate::flaky::{Fault, Verb};
use crate::reports::flaky;

/// Nobody lives to see it: whatever is found was not found by polling.
const NEVER: Duration = Duration::from_secs(86_400);

fn shared(waker: &ManualWaker) -> Arc<dyn Waker> {
    Arc::new(waker.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_neither_polls_nor_hears_its_store_is_woken() {
    let (bench, flaky) = flaky().await;
    flaky.fail(Verb::Wait, Fault::LostBefore, u32::MAX);
    let waker = ManualWaker::default();
    let worker = Worker::builder(&bench.store)
        .poll_every(NEVER)
        .waker(shared(&waker))
        .handle(|_: Task| async {})
        .build()
        .unwrap();
    let stop = async {
        // It looks once, says that it is idle, and looks once more; after this it rests.
        watch("it rests", async || flaky.claims().len() >= 2 && waker.waiting() > 1).await;
        for n in 0..10 {
            let job = bench.enqueue(n).await;
            waker.wake();
            bench.until(job, JobState::Succeeded).await;
        }
    };
    worker.run_until(stop).await.unwrap();
    assert_eq!(waker.waiters(), 1, "one waiter for life: another one would not know what was said before it was made");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waker_that_says_nothing_leaves_the_poll() {
    let (bench, flaky) = flaky().await;
    flaky.fail(Verb::Wait, Fault::LostBefore, u32::MAX);
    let waker = ManualWaker::default();
    let worker = Worker::builder(&bench.store)
        .poll_every(Duration::from_millis(10))
        .waker(shared(&waker))
        .handle(|_: Task| async {})
        .build()
        .unwrap();
    let stop = async {
        watch("it has looked in vain", async || flaky.claims().len() >= 3).await;
        let job = bench.enqueue(1).await;
        bench.until(job, JobState::Succeeded).await;
    };
    worker.run_until(stop).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_client_and_a_handler_store_is_published_once() {
    let bench = Bench::new().await;
    let waker = ManualWaker::default();
    let client = Client::new(&bench.inner).with_waker(shared(&waker));
    let first = client.enqueue(Task { n: 0 }).unique("one").await.unwrap().job();
    assert_eq!(client.enqueue(Task { n: 0 }).unique("one").await.unwrap().job(), first);
    assert_eq!(waker.published(), [first], "what was there before is no news");
    async fn handler(job: Task, ctx: Ctx) {
        if job.n == 0 {
            ctx.client().enqueue_many([Task { n: 1 }, Task { n: 2 }]).await.unwrap();
        }
    }
    let worker = Worker::builder(&bench.inner).waker(shared(&waker)).handle(handler).build().unwrap();
    assert_eq!(worker.run_until_idle().await.unwrap().succeeded, 3);
    assert_eq!(waker.published().len(), 3);
}
