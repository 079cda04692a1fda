//! What a slot survives: handlers that never stop, destructors that panic, reports that take their time.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{How, State as JobState};
use tenure_worker::{Attempt, Completed, Ctx, Fail, HandleOptions, State, Stop, Worker};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::bench::{Bench, Task, watch};
use crate::flaky::{Fault, Verb};
use crate::reports::flaky;

#[tokio::test(flavor = "multi_thread")]
async fn a_success_on_its_way_is_not_overruled_by_the_handlers_timeout() {
    let (bench, flaky) = flaky().await;
    // The handler is done at once; its report gets through two seconds later, long after its time would have been over.
    flaky.fail(Verb::Succeed, Fault::LostBefore, 10);
    let job = bench.enqueue(1).await;
    let options = HandleOptions::new().timeout(Duration::from_millis(100));
    let worker = Worker::builder(&bench.store)
        .cancel_grace(Duration::ZERO)
        .handle_with(|_: Task| async {}, options)
        .build()
        .unwrap();
    let ended = watch("it ended", async || !bench.show(job).await.attempts.is_empty());
    let summary = worker.run_until(ended).await.unwrap();
    let hows: Vec<How> = bench.show(job).await.attempts.iter().map(|attempt| attempt.how).collect();
    assert_eq!((hows, summary.refused), (vec![How::Succeeded], 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_whose_destructor_panics_is_reported_like_any_other() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("cannot be dropped here");
        }
    }
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let handler = |_: Task| async {
        let _bomb = Bomb;
        std::future::pending::<()>().await;
    };
    let options = HandleOptions::new().timeout(Duration::from_millis(10));
    let worker =
        Worker::builder(&bench.store).cancel_grace(Duration::ZERO).handle_with(handler, options).build().unwrap();
    let ended = async {
        let look = watch("it ended", async || !bench.show(job).await.attempts.is_empty());
        let _ = tokio::time::timeout(Duration::from_secs(5), look).await;
    };
    let summary = tokio::time::timeout(Duration::from_secs(10), worker.run_until(ended)).await.unwrap().unwrap();
    assert_eq!(bench.show(job).await.attempts.first().map(|attempt| attempt.how), Some(How::Retry));
    assert_eq!((summary.failed, summary.released), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_is_always_ready_is_stopped_by_its_timeout() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    // Every poll uses up what tokio lets a task do in one go, and then timers polled after it are not looked at.
    async fn handler(_: Task) {
        let ready = Semaphore::new(1);
        loop {
            drop(ready.acquire().await);
        }
    }
    let options = HandleOptions::new().timeout(Duration::from_millis(50));
    let worker = Worker::builder(&bench.store)
        .cancel_grace(Duration::ZERO)
        .grace(Duration::ZERO)
        .handle_with(handler, options)
        .build()
        .unwrap();
    let ended = async {
        let look = watch("it ended", async || !bench.show(job).await.attempts.is_empty());
        let _ = tokio::time::timeout(Duration::from_secs(5), look).await;
    };
    let summary = worker.run_until(ended).await.unwrap();
    assert_eq!((summary.failed, summary.released), (1, 0));
    let record = bench.show(job).await;
    let error = record.attempts[0].error.as_ref().unwrap();
    assert!(error.as_str().contains("ran longer than"), "the slot stopped it, not the keeper: {error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_nobody_can_look_up_is_reported_all_the_same() {
    let (bench, flaky) = flaky().await;
    flaky.fail(Verb::FindEndings, Fault::Corrupt, u32::MAX);
    let job = bench.enqueue(1).await;
    async fn handler(
        _: Task,
        State(store): State<tenure_sqlite::SqliteStore>,
        attempt: Attempt,
    ) -> Result<Completed, Fail> {
        store.transaction(move |tx| attempt.complete_in(tx)).await
    }
    let worker = Worker::builder(&bench.store).state(bench.inner.clone()).handle(handler).build().unwrap();
    let mut over = None;
    let stop = async {
        bench.until(job, JobState::Succeeded).await;
        over = Some(tokio::time::Instant::now());
    };
    let summary = worker.run_until(stop).await.unwrap();
    assert!(over.unwrap().elapsed() < Duration::from_secs(5), "the slot was never free again");
    assert_eq!((summary.succeeded, summary.refused), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handlers_of_a_worker_that_is_dropped_stop_though_the_store_is_silent() {
    let (bench, flaky) = flaky().await;
    flaky.fail(Verb::ReleaseUnknown, Fault::Hang, u32::MAX);
    bench.enqueue(1).await;
    let (told, mut heard) = unbounded_channel();
    async fn handler(_: Task, State(told): State<UnboundedSender<Ctx>>, ctx: Ctx) {
        told.send(ctx).unwrap();
        std::future::pending::<()>().await;
    }
    let worker = Worker::builder(&bench.store).state(told).handle(handler).build().unwrap();
    let mut running = None;
    tokio::select! {
        _ = worker.run_until(std::future::pending()) => {}
        ctx = heard.recv() => running = ctx,
    }
    let stopped = tokio::time::timeout(Duration::from_secs(2), running.as_ref().unwrap().stopped()).await;
    assert_eq!(stopped, Ok(Stop::LeaseLost), "nobody renews any more, so nobody may go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_in_memory_is_given_back_as_soon_as_the_worker_is_told_to_stop() {
    let bench = Bench::new().await;
    let jobs = [bench.enqueue(1).await, bench.enqueue(2).await];
    let (told, mut started) = unbounded_channel();
    let gate = Arc::new(Semaphore::new(0));
    type Ends = (UnboundedSender<()>, Arc<Semaphore>);
    async fn handler(_: Task, State((told, gate)): State<Ends>) {
        told.send(()).unwrap();
        gate.acquire().await.unwrap().forget();
    }
    let worker = Worker::builder(&bench.store)
        .state((told, Arc::clone(&gate)))
        .queue("default", 1)
        .prefetch(1)
        .grace(Duration::from_secs(8))
        .handle(handler)
        .build()
        .unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(worker.run_until(async {
        let _ = stopped.await;
    }));
    started.recv().await;
    stop.send(()).unwrap();
    let given_back = watch("the one that waits is given back", async || {
        let (one, other) = (bench.show(jobs[0]).await, bench.show(jobs[1]).await);
        one.attempts.iter().chain(&other.attempts).any(|attempt| attempt.how == How::Released)
    });
    let at_once = tokio::time::timeout(Duration::from_secs(3), given_back).await;
    gate.add_permits(2);
    let summary = running.await.unwrap().unwrap();
    assert!(at_once.is_ok(), "it waited behind a job that has eight seconds to finish");
    assert_eq!((summary.succeeded, summary.released), (1, 1));
}

#[tokio::test]
async fn no_handler_starts_under_a_lease_that_is_over() {
    let bench = Bench::new().await;
    bench.lease_ttl(Duration::from_secs(1)).await;
    let jobs = [bench.enqueue(1).await, bench.enqueue(2).await];
    // Nobody renews here, and the first takes longer than the lease of both.
    let handler = |job: Task| async move {
        if job.n == 1 {
            tokio::time::sleep(Duration::from_millis(1_100)).await;
        }
    };
    let worker = Worker::builder(&bench.store).handle(handler).build().unwrap();
    worker.run_until_idle().await.unwrap();
    let record = bench.show(jobs[1]).await;
    let hows: Vec<How> = record.attempts.iter().map(|attempt| attempt.how).collect();
    assert_eq!(hows, [How::Released, How::Succeeded]);
}

#[tokio::test]
async fn no_more_jobs_share_a_lease_than_it_says() {
    let bench = Bench::new().await;
    let jobs = bench.client.enqueue_many((0..7).map(|n| Task { n })).await.unwrap();
    let builder = || Worker::builder(&bench.store).queue("default", 7).handle(|_: Task| async {});
    for wrong in [0, 257] {
        let error = builder().lease_jobs(wrong).build().err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("lease_jobs") && error.contains(&wrong.to_string()), "{error}");
    }
    let stop = async {
        for job in &jobs {
            bench.until(job.job(), JobState::Succeeded).await;
        }
    };
    builder().lease_jobs(2).build().unwrap().run_until(stop).await.unwrap();
    let mut shared = std::collections::BTreeMap::new();
    for job in &jobs {
        *shared.entry(bench.show(job.job()).await.attempts[0].lease).or_insert(0) += 1;
    }
    assert!(shared.values().all(|jobs| *jobs <= 2) && shared.values().any(|jobs| *jobs == 2), "{shared:?}");
}

#[test]
fn times_that_no_clock_can_add_are_refused() {
    let store = tenure_sqlite::SqliteStore::in_memory(Default::default()).unwrap();
    let builder = || Worker::builder(&store);
    let forever = Duration::MAX;
    assert!(builder().handle(|_: Task| async {}).grace(forever).build().is_err(), "grace");
    assert!(builder().handle(|_: Task| async {}).cancel_grace(forever).build().is_err(), "cancel_grace");
    let options = HandleOptions::new().timeout(forever);
    assert!(builder().handle_with(|_: Task| async {}, options).build().is_err(), "timeout");
    assert!(builder().handle(|_: Task| async {}).grace(Duration::ZERO).cancel_grace(Duration::ZERO).build().is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_panics_gives_its_lease_up() {
    let (bench, flaky) = flaky().await;
    bench.lease_ttl(Duration::from_secs(1)).await;
    flaky.fail(Verb::Succeed, Fault::Panic, 1);
    let job = bench.enqueue(1).await;
    let worker = Worker::builder(&bench.store).handle(|_: Task| async {}).build().unwrap();
    let stop = async {
        let _ = tokio::time::timeout(Duration::from_secs(8), bench.until(job, JobState::Succeeded)).await;
    };
    worker.run_until(stop).await.unwrap();
    let hows: Vec<How> = bench.show(job).await.attempts.iter().map(|attempt| attempt.how).collect();
    assert_eq!(hows, [How::Lost, How::Succeeded], "nobody would ever end what this process goes on renewing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_whose_keeper_died_stops_its_handlers() {
    let (bench, flaky) = flaky().await;
    bench.lease_ttl(Duration::from_secs(1)).await;
    flaky.fail(Verb::Renew, Fault::Panic, u32::MAX);
    bench.enqueue(1).await;
    let (told, mut heard) = unbounded_channel();
    async fn handler(_: Task, State(told): State<UnboundedSender<Ctx>>, ctx: Ctx) {
        told.send(ctx).unwrap();
        std::future::pending::<()>().await;
    }
    let worker = Worker::builder(&bench.store).state(told).handle(handler).build().unwrap();
    assert!(worker.run_until(std::future::pending()).await.is_err());
    let ctx = heard.recv().await.unwrap();
    let stopped = tokio::time::timeout(Duration::from_secs(2), ctx.stopped()).await;
    assert_eq!(stopped, Ok(Stop::LeaseLost));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shorter_lease_time_of_the_queue_does_not_take_jobs_from_a_living_worker() {
    let bench = Bench::new().await;
    bench.lease_ttl(Duration::from_secs(6)).await;
    let job = bench.enqueue(1).await;
    let (told, mut started) = unbounded_channel();
    async fn handler(_: Task, State(told): State<UnboundedSender<()>>) {
        told.send(()).unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
    let worker = Worker::builder(&bench.store).state(told).handle(handler).build().unwrap();
    let ended = async {
        started.recv().await;
        // Its next renewal is two seconds away, and so is the one after it.
        bench.lease_ttl(Duration::from_secs(1)).await;
        watch("it ended", async || !bench.show(job).await.attempts.is_empty()).await;
    };
    worker.run_until(ended).await.unwrap();
    let hows: Vec<How> = bench.show(job).await.attempts.iter().map(|attempt| attempt.how).collect();
    assert_eq!(hows, [How::Succeeded]);
}
