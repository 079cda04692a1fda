//! Reports whose replies are lost, that cannot be stored, that come too late; claims nobody heard of.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenure_core::{How, State as JobState};
use tenure_store::IntoStore;
use tenure_worker::{Ctx, Fail, Returned, State, Stop, Worker};
use tokio::sync::Semaphore;

use crate::bench::{Bench, Task, watch};
use crate::flaky::{BUSY, Fault, Flaky, POISON, Verb};

pub(crate) async fn flaky() -> (Bench, Flaky) {
    let mut made = None;
    let bench = Bench::behind(|inner| {
        let flaky = Flaky::new(inner);
        made = Some(flaky.clone());
        flaky.into_store()
    })
    .await;
    (bench, made.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_whose_reply_is_lost_is_repeated_and_the_handler_runs_once() {
    for fault in [Fault::ReplyLost, Fault::LostBefore] {
        let (bench, flaky) = flaky().await;
        flaky.fail(Verb::End, fault, 2);
        let job = bench.enqueue(1).await;
        let runs = Arc::new(AtomicU32::new(0));
        async fn handler(_: Task, State(runs): State<Arc<AtomicU32>>) {
            runs.fetch_add(1, Ordering::SeqCst);
        }
        let worker = Worker::builder(&bench.store).state(Arc::clone(&runs)).handle(handler).build().unwrap();
        let done = async {
            bench.until(job, JobState::Succeeded).await;
            watch("both faults hit", async || flaky.hits(Verb::End, fault) == 2).await;
        };
        let summary = worker.run_until(done).await.unwrap();
        assert_eq!((summary.succeeded, summary.refused), (1, 0), "{fault:?}");
        assert_eq!((runs.load(Ordering::SeqCst), bench.show(job).await.attempts.len()), (1, 1), "{fault:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_whose_reply_is_lost_is_given_back_uncharged() {
    let (bench, flaky) = flaky().await;
    flaky.fail(Verb::Claim, Fault::ReplyLost, 1);
    let job = bench.enqueue(1).await;
    let worker = Worker::builder(&bench.store).handle(|_: Task| async {}).build().unwrap();
    let summary = bench.run_until_state(worker, job, JobState::Succeeded).await;
    assert_eq!(flaky.hits(Verb::Claim, Fault::ReplyLost), 1);
    let record = bench.show(job).await;
    let hows: Vec<How> = record.attempts.iter().map(|attempt| attempt.how).collect();
    assert_eq!((hows, record.summary.attempt), (vec![How::Released, How::Succeeded], 1));
    assert_eq!(summary.claimed, 1, "what nobody heard of was never run");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_ending_that_cannot_be_stored_fails_alone() {
    let (bench, flaky) = flaky().await;
    bench.client.enqueue_many((0..20).map(|n| Task { n })).await.unwrap();
    let poisoned = bench.enqueue(20).await;
    // All end at the same moment, so that they travel together.
    let together = Arc::new(tokio::sync::Barrier::new(21));
    async fn handler(
        job: Task,
        State(together): State<Arc<tokio::sync::Barrier>>,
    ) -> Result<Returned<&'static str>, Fail> {
        together.wait().await;
        Ok(Returned(if job.n == 20 { POISON } else { "fine" }))
    }
    let worker = Worker::builder(&bench.store).state(together).queue("default", 21).handle(handler).build().unwrap();
    let summary = bench.run_until_state(worker, poisoned, JobState::Failed).await;
    assert_eq!((summary.succeeded, summary.failed, summary.refused), (20, 1, 0));
    assert!(flaky.hits(Verb::End, Fault::Refused) >= 1);
    let record = bench.show(poisoned).await;
    assert!(record.attempts[0].error.as_ref().unwrap().as_str().contains("unstorable"), "{record:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_renewals_the_handler_is_stopped_before_its_lease_ends() {
    let (bench, flaky) = flaky().await;
    bench.lease_ttl(Duration::from_secs(1)).await;
    flaky.fail(Verb::Renew, Fault::LostBefore, u32::MAX);
    let job = bench.enqueue(1).await;
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    async fn handler(
        _: Task,
        State(told): State<tokio::sync::mpsc::UnboundedSender<Stop>>,
        ctx: Ctx,
    ) -> Result<(), Fail> {
        // Watched from a task of its own: the handler itself is dropped at that moment.
        let watching = ctx.clone();
        tokio::spawn(async move { told.send(watching.stopped().await) });
        std::future::pending().await
    }
    let worker = Worker::builder(&bench.store).state(told).handle(handler).grace(Duration::ZERO).build().unwrap();
    let mut why = None;
    let summary = worker
        .run_until(async {
            why = heard.recv().await;
            // Its lease is let go of; as nobody has taken it yet, it is given back at once, uncharged.
            watch("it was given back", async || {
                bench.show(job).await.attempts.first().is_some_and(|attempt| attempt.how == How::Released)
            })
            .await;
        })
        .await
        .unwrap();
    assert_eq!(why, Some(Stop::LeaseLost));
    assert!(summary.fenced >= 1 && flaky.hits(Verb::Renew, Fault::LostBefore) >= 1, "{summary:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_comes_too_late_is_told_and_written_down() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel::<Ctx>();
    let gate = Arc::new(Semaphore::new(0));
    type Ends = (tokio::sync::mpsc::UnboundedSender<Ctx>, Arc<Semaphore>);
    async fn handler(_: Task, State((told, gate)): State<Ends>, ctx: Ctx) {
        told.send(ctx).unwrap();
        gate.acquire().await.unwrap().forget();
    }
    let worker = Worker::builder(&bench.store).state((told, Arc::clone(&gate))).handle(handler).build().unwrap();
    let mut late = None;
    let summary = worker
        .run_until(async {
            let ctx = heard.recv().await.unwrap();
            bench.client.store().cancel_job(force(job)).await.unwrap();
            gate.add_permits(1);
            late = Some(ctx.stopped().await);
        })
        .await
        .unwrap();
    assert_eq!((late, summary.refused, summary.succeeded), (Some(Stop::LeaseLost), 1, 0));
    assert_eq!(bench.show(job).await.summary.state, JobState::Canceled);
    let rows = bench.refused_rows().await;
    assert_eq!(rows.iter().filter(|row| row.jobs == [job]).count(), 1, "{rows:?}");
}

fn force(job: tenure_core::JobId) -> tenure_store::operate::CancelJob {
    tenure_store::operate::CancelJob { sight: Default::default(), job, force: true, word: Default::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn endings_that_come_together_travel_together() {
    let (bench, flaky) = flaky().await;
    bench.client.enqueue_many((0..1_000).map(|n| Task { n })).await.unwrap();
    let worker = Worker::builder(&bench.store).queue("default", 200).handle(|_: Task| async {}).build().unwrap();
    let drained = watch("all are done", async || {
        let queues = tenure_store::AdminStore::list_queues(&bench.inner).await.unwrap();
        queues.iter().map(|queue| queue.due + queue.running).sum::<u64>() == 0
    });
    let summary = worker.run_until(drained).await.unwrap();
    assert_eq!(summary.succeeded, 1_000);
    let reports = flaky.reports();
    assert!(reports.len() < 500, "{} reports for 1,000 endings", reports.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn endings_that_are_locked_do_not_stop_the_others() {
    let (bench, _flaky) = flaky().await;
    let (told, mut started) = tokio::sync::mpsc::unbounded_channel();
    async fn handler(
        job: Task,
        State(told): State<tokio::sync::mpsc::UnboundedSender<()>>,
    ) -> Result<Returned<&'static str>, Fail> {
        told.send(()).unwrap();
        Ok(Returned(if job.n < 8 { BUSY } else { "fine" }))
    }
    let worker = Worker::builder(&bench.store)
        .state(told)
        .queue("default", 10)
        .grace(Duration::ZERO)
        .handle(handler)
        .build()
        .unwrap();
    let mut in_time = false;
    let stop = async {
        // Each under a lease of its own.
        for n in 0..8 {
            bench.enqueue(n).await;
            started.recv().await;
        }
        let job = bench.enqueue(8).await;
        in_time = tokio::time::timeout(Duration::from_secs(5), bench.until(job, JobState::Succeeded)).await.is_ok();
    };
    worker.run_until(stop).await.unwrap();
    assert!(in_time, "its report waits for transactions of others");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schema_that_does_not_fit_for_a_moment_turns_no_success_into_a_failure() {
    let (bench, flaky) = flaky().await;
    flaky.fail(Verb::Succeed, Fault::Schema, 2);
    let job = bench.enqueue(1).await;
    let worker = Worker::builder(&bench.store).handle(|_: Task| async {}).build().unwrap();
    let ended = watch("it ended", async || !bench.show(job).await.attempts.is_empty());
    worker.run_until(ended).await.unwrap();
    assert_eq!(flaky.hits(Verb::Succeed, Fault::Schema), 2);
    assert_eq!(bench.show(job).await.summary.state, JobState::Succeeded);
}
