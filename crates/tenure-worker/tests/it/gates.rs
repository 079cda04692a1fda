//! What a handler asks of its gate, and says about it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenure_core::gate::{Admit, Breaker, GateRule, Rate, Why};
use tenure_core::{JobId, State};
use tenure_store::GateStore;
use tenure_store::gate::{GateAct, GateRecord, OperateGate};
use tenure_store::operate::Word;
use tenure_worker::{Ctx, Fail, Worker};

use crate::bench::{Bench, Task, watch};

const GATE: &str = "source:ebay";
const MINUTE: Duration = Duration::from_secs(60);

async fn bench(rule: GateRule) -> Bench {
    let bench = Bench::new().await;
    bench.client.set_gate(GATE, rule).await.unwrap();
    bench
}

async fn enqueue(bench: &Bench, n: u64) -> JobId {
    bench.client.enqueue(Task { n }).gate(GATE).await.unwrap().job()
}

async fn gate(bench: &Bench) -> GateRecord {
    bench.inner.show_gate(&GATE.parse().unwrap()).await.unwrap()
}

fn breaker(failures: u32) -> GateRule {
    GateRule { breaker: Some(Breaker { failures, cooldown: MINUTE }), ..GateRule::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn health_is_told_apart_from_the_outcome() {
    let bench = bench(breaker(1)).await;
    let job = enqueue(&bench, 1).await;
    let sick = |_: Task, ctx: Ctx| async move {
        assert_eq!(ctx.gate().name().map(ToString::to_string).as_deref(), Some(GATE));
        ctx.gate().unhealthy();
        Ok::<(), Fail>(())
    };
    let worker = Worker::builder(&bench.store).queue("default", 1).handle(sick).build().unwrap();
    bench.run_until_state(worker, job, State::Succeeded).await;
    let record = gate(&bench).await;
    assert!(matches!(record.admit, Admit::Closed { why: Why::Open, .. }), "{record:?}");
    assert_eq!((record.gate.in_use, record.gate.failed_at.is_some()), (0, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permanent_error_is_the_jobs_own_and_a_transient_one_the_sources() {
    let bench = bench(breaker(2)).await;
    let jobs = [enqueue(&bench, 0).await, enqueue(&bench, 1).await, enqueue(&bench, 2).await];
    let fails = |task: Task| async move {
        match task.n {
            0 => Err::<(), Fail>(Fail::permanent("no such coin")),
            _ => Err(Fail::http_status(503, "down").retry_in(MINUTE)),
        }
    };
    let worker = Worker::builder(&bench.store).queue("default", 1).handle(fails).build().unwrap();
    bench.run_until_state(worker, jobs[2], State::Retryable).await;
    assert_eq!(bench.show(jobs[0]).await.summary.state, State::Failed);
    let record = gate(&bench).await;
    assert_eq!(record.gate.streak, 2, "the permanent error neither counts nor ends the streak");
    assert!(matches!(record.admit, Admit::Closed { why: Why::Open, .. }), "{record:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_attempt_tells_of_its_source_like_any_other() {
    let bench = bench(breaker(1)).await;
    let job = bench.client.enqueue(Task { n: 1 }).gate(GATE).max_attempts(1).await.unwrap().job();
    let down = |_: Task| async { Err::<(), Fail>(Fail::http_status(503, "down")) };
    let worker = Worker::builder(&bench.store).queue("default", 1).handle(down).build().unwrap();
    bench.run_until_state(worker, job, State::Dead).await;
    let record = gate(&bench).await;
    assert!(matches!(record.admit, Admit::Closed { why: Why::Open, .. }), "{record:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_keeps_everybody_away() {
    // One at a time: the second may not be claimed before the first has been reported.
    let bench = bench(GateRule { concurrency: Some(1), ..GateRule::default() }).await;
    let (first, second) = (enqueue(&bench, 1).await, enqueue(&bench, 2).await);
    let busy = |_: Task, ctx: Ctx| async move {
        ctx.gate().hold(MINUTE);
        Err::<(), Fail>(Fail::rate_limited("too many").retry_in(MINUTE))
    };
    let worker = Worker::builder(&bench.store).queue("default", 1).handle(busy).build().unwrap();
    bench.run_until_state(worker, first, State::Retryable).await;
    let record = gate(&bench).await;
    assert!(matches!(record.admit, Admit::Closed { why: Why::Held, until: Some(_) }), "{record:?}");
    assert_eq!(bench.show(second).await.summary.state, State::Queued);
}

#[tokio::test(flavor = "multi_thread")]
async fn further_calls_are_reserved_and_a_gate_closed_meanwhile_snoozes_the_job() {
    let rate = Rate { burst: 5, ..Rate::new(1_000, Duration::from_secs(1)) };
    let bench = bench(GateRule { rate: Some(rate), ..GateRule::default() }).await;
    let job = enqueue(&bench, 1).await;
    let calls = Arc::new(AtomicU32::new(0));
    let (counted, store) = (Arc::clone(&calls), bench.inner.clone());
    let collect = move |_: Task, ctx: Ctx| {
        let (calls, store) = (Arc::clone(&counted), store.clone());
        async move {
            for _ in 0..20 {
                ctx.gate().acquire(1).await?;
                calls.fetch_add(1, Ordering::SeqCst);
            }
            let act = GateAct::Pause(Some(MINUTE));
            let pause = OperateGate { gate: GATE.parse().unwrap(), act, word: Word::default() };
            store.operate_gate(pause).await?;
            ctx.gate().acquire(1).await?;
            calls.fetch_add(1_000, Ordering::SeqCst);
            Ok::<(), Fail>(())
        }
    };
    let worker = Worker::builder(&bench.store).queue("default", 1).handle(collect).build().unwrap();
    let snoozed =
        async || bench.show(job).await.attempts.last().is_some_and(|last| last.how == tenure_core::How::Snoozed);
    worker.run_until(watch("it is snoozed", snoozed)).await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 20);
    let record = bench.show(job).await;
    assert_eq!((record.summary.state, record.summary.attempt), (State::Queued, 0), "nothing is charged");
    assert!(record.summary.run_at > record.summary.created_at, "and it is due when the gate may open");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_calls_than_the_burst_fail_the_job_and_say_what_would_do() {
    let rate = Rate { burst: 5, ..Rate::new(1_000, Duration::from_secs(1)) };
    let bench = bench(GateRule { rate: Some(rate), ..breaker(1) }).await;
    let job = enqueue(&bench, 1).await;
    let greedy = |_: Task, ctx: Ctx| async move { ctx.gate().acquire(6).await };
    let worker = Worker::builder(&bench.store).queue("default", 1).handle(greedy).build().unwrap();
    bench.run_until_state(worker, job, State::Failed).await;
    let record = bench.show(job).await;
    let error = record.attempts[0].error.as_ref().map(|error| error.as_str().to_owned()).unwrap();
    assert!(error.contains("tokens `6` is refused: the gate gives at most its burst of 5 at once"), "{error}");
    let record = gate(&bench).await;
    assert!(matches!(record.admit, Admit::Open(_)), "it says nothing of the resource: {record:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_without_a_gate_may_ask_and_say_the_same() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let free = |_: Task, ctx: Ctx| async move {
        ctx.gate().acquire(1_000_000).await?;
        ctx.gate().unhealthy();
        ctx.gate().hold(MINUTE);
        Ok::<(), Fail>(())
    };
    let worker = Worker::builder(&bench.store).queue("default", 1).handle(free).build().unwrap();
    bench.run_until_state(worker, job, State::Succeeded).await;
}

/// Polls are an hour apart here: only the gate's own word brings the worker back in time.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_comes_back_when_a_gate_opens() {
    let rate = Rate { burst: 1, ..Rate::new(20, Duration::from_secs(1)) };
    let bench = bench(GateRule { rate: Some(rate), ..GateRule::default() }).await;
    let mut jobs = Vec::new();
    for n in 0..5 {
        jobs.push(enqueue(&bench, n).await);
    }
    let worker = Worker::builder(&bench.store).queue("default", 5).handle(|_: Task| async {});
    let worker = worker.poll_every(Duration::from_secs(3_600)).build().unwrap();
    bench.run_until_state(worker, jobs[4], State::Succeeded).await;
}
