//! Handlers that are told to stop: canceled, too slow, or both deaf and slow.

use std::time::Duration;

use tenure_core::How;
use tenure_core::State as JobState;
use tenure_worker::{Ctx, Fail, HandleOptions, State, Stop, Worker};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::bench::{Bench, Task, watch};

#[tokio::test(flavor = "multi_thread")]
async fn a_running_job_is_canceled_when_its_handler_acknowledges() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let (told, mut started) = unbounded_channel();
    async fn handler(_: Task, State(told): State<UnboundedSender<()>>, ctx: Ctx) -> Result<(), Fail> {
        told.send(()).unwrap();
        assert_eq!(ctx.stopped().await, Stop::Canceled);
        ctx.check()
    }
    let worker = Worker::builder(&bench.store).state(told).handle(handler).build().unwrap();
    let canceled = async {
        started.recv().await;
        bench.client.cancel(job).await.unwrap();
        bench.until(job, JobState::Canceled).await;
    };
    worker.run_until(canceled).await.unwrap();
    assert_eq!(bench.show(job).await.attempts[0].how, How::Canceled);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_does_not_listen_is_dropped_after_its_grace() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let (told, mut started) = unbounded_channel();
    async fn handler(_: Task, State(told): State<UnboundedSender<()>>) -> Result<(), Fail> {
        told.send(()).unwrap();
        std::future::pending().await
    }
    let worker = Worker::builder(&bench.store).state(told).handle(handler).cancel_grace(Duration::from_millis(10));
    let canceled = async {
        started.recv().await;
        bench.client.cancel(job).await.unwrap();
        bench.until(job, JobState::Canceled).await;
    };
    worker.build().unwrap().run_until(canceled).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_has_a_timeout_and_what_overruns_it_is_tried_again() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let handler = |_: Task, ctx: Ctx| async move {
        if ctx.attempt() == 1 { std::future::pending().await } else { Ok::<(), Fail>(()) }
    };
    let options = HandleOptions::new().timeout(Duration::from_millis(20));
    let worker = Worker::builder(&bench.store).handle_with(handler, options).cancel_grace(Duration::from_millis(10));
    bench.run_until_state(worker.build().unwrap(), job, JobState::Retryable).await;
    let error = bench.show(job).await.attempts[0].error.clone().unwrap();
    assert!(error.as_str().contains("\"code\":\"timeout\"") && error.as_str().contains("20ms"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_finishes_after_its_timeout_but_in_its_grace_has_finished() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let handler = |_: Task, ctx: Ctx| async move {
        assert_eq!(ctx.stopped().await, Stop::Timeout);
    };
    let worker =
        Worker::builder(&bench.store).handle_with(handler, HandleOptions::new().timeout(Duration::from_millis(5)));
    bench.run_until_state(worker.build().unwrap(), job, JobState::Succeeded).await;
}

#[test]
fn a_handler_that_blocks_every_thread_beyond_its_time_is_given_up_by_the_keeper() {
    // One runtime thread, and the handler never lets go of it: only the keeper's own thread can act.
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = std::sync::Arc::new(std::sync::Mutex::new(released));
    let watcher = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let bench = watcher.block_on(Bench::new());
    let job = watcher.block_on(bench.enqueue(1));
    let handler = move |_: Task| {
        let released = std::sync::Arc::clone(&released);
        async move {
            // An error is the sender that went: the test is over.
            let _ = released.lock().unwrap().recv();
        }
    };
    let options = HandleOptions::new().timeout(Duration::from_millis(20));
    let worker = Worker::builder(&bench.store).handle_with(handler, options).cancel_grace(Duration::from_millis(20));
    let worker = worker.build().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(worker.run_until(async {
            let _ = stopped.await;
        }))
    });
    watcher.block_on(bench.until(job, JobState::Retryable));
    release.send(()).unwrap();
    watcher.block_on(watch("the late report was refused", async || !bench.refused_rows().await.is_empty()));
    stop.send(()).unwrap();
    let summary = running.join().unwrap().unwrap();
    assert_eq!((summary.succeeded, summary.refused), (0, 1));
}
