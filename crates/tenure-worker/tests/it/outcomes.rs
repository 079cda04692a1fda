//! What a handler answers is what becomes of its job.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tenure_core::classify::{Class, Rule, RuleTable};
use tenure_core::{Backoff, How, State, Timestamp};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::record::Sight;
use tenure_store::{AdminStore, JobStore, JournalStore, StoreError};
use tenure_worker::{Attempt, Client, Ctx, Fail, HandleOptions, Returned, Worker};

use crate::bench::{Bench, Task};

/// Runs one job with this handler and answers its state, how its attempts ended, and the last error.
async fn ends<F, Fut, R>(handler: F) -> (State, Vec<How>, Value)
where
    F: Fn(Task, Ctx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = R> + Send + 'static,
    R: tenure_worker::IntoAnswer + 'static,
{
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let worker = Worker::builder(&bench.store).handle(handler).build().unwrap();
    worker.run_until_idle().await.unwrap();
    let record = bench.show(job).await;
    let error = record.attempts.last().and_then(|attempt| attempt.error.clone());
    let error = error.map_or(Value::Null, |error| serde_json::from_str(error.as_str()).unwrap());
    (record.summary.state, record.attempts.iter().map(|attempt| attempt.how).collect(), error)
}

#[tokio::test]
async fn each_answer_has_its_ending() {
    let full =
        ends(async |_: Task, _: Ctx| Err::<(), Fail>(StoreError::full(&Default::default(), None, 7).into())).await;
    assert_eq!((full.0, full.1), (State::Queued, vec![How::Snoozed]));
    let snoozed = ends(async |_: Task, _: Ctx| Err::<(), _>(Fail::snooze(Duration::from_secs(60)))).await;
    assert_eq!((snoozed.0, snoozed.1), (State::Queued, vec![How::Snoozed]));
    let canceled = ends(async |_: Task, _: Ctx| Err::<(), _>(Fail::canceled())).await;
    assert_eq!((canceled.0, canceled.1), (State::Canceled, vec![How::Canceled]));
    let dead = ends(async |_: Task, _: Ctx| Err::<(), _>(Fail::dead("nobody should try"))).await;
    assert_eq!((dead.0, dead.1), (State::Dead, vec![How::Dead]));
    let failed = ends(async |_: Task, _: Ctx| Err::<(), _>(Fail::permanent("gone"))).await;
    assert_eq!((failed.0, failed.1, &failed.2["message"]), (State::Failed, vec![How::Failed], &"gone".into()));
    let retried = ends(async |_: Task, _: Ctx| Err::<(), _>(Fail::transient("later"))).await;
    assert_eq!((retried.0, retried.1), (State::Retryable, vec![How::Retry]));
    let done = ends(async |_: Task, _: Ctx| ()).await;
    assert_eq!((done.0, done.1), (State::Succeeded, vec![How::Succeeded]));
}

/// A database that restarts under a handler is no reason to end its job for good, whatever unknown errors mean.
#[tokio::test]
async fn a_store_that_does_not_answer_a_handler_costs_an_attempt_and_no_more() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let away = |_: Task| async {
        Err::<(), Fail>(StoreError::Unavailable("the server closed the connection".into(), None).into())
    };
    let unknown_is_permanent = HandleOptions::new().rules(RuleTable::new(&[], Class::Permanent));
    let worker = Worker::builder(&bench.store).handle_with(away, unknown_is_permanent).build().unwrap();
    worker.run_until_idle().await.unwrap();
    let record = bench.show(job).await;
    assert_eq!((record.summary.state, record.attempts[0].how), (State::Retryable, How::Retry));
    let error: Value = serde_json::from_str(record.attempts[0].error.as_ref().unwrap().as_str()).unwrap();
    assert_eq!((&error["code"], &error["class"]), (&"store_unavailable".into(), &"transient".into()));
}

#[tokio::test]
async fn a_store_that_does_not_answer_a_handler_ends_no_job_whose_errors_are_final() {
    let bench = Bench::new().await;
    let job = bench.client.enqueue(Task { n: 1 }).backoff(Backoff::Never).await.unwrap().job();
    let away = |_: Task| async { Err::<(), Fail>(StoreError::Unavailable("it restarts".into(), None).into()) };
    let worker = Worker::builder(&bench.store).handle(away).error_wait(Duration::from_secs(7)).build().unwrap();
    worker.run_until_idle().await.unwrap();
    let record = bench.show(job).await;
    assert_eq!((record.summary.state, record.attempts[0].how), (State::Queued, How::Snoozed));
    assert_eq!(record.summary.run_at, record.attempts[0].ended_at.plus(Duration::from_secs(7)));
}

#[tokio::test]
async fn any_error_is_classified_by_the_rule_table() {
    let refused = |_: Task, _: Ctx| async {
        Err::<(), _>(std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "no one at home"))
    };
    let (state, _, error) = ends(refused).await;
    assert_eq!((state, &error["code"], &error["class"]), (State::Retryable, &"connection".into(), &"transient".into()));
    let gone = |_: Task, _: Ctx| async { Err::<(), _>(Fail::http_status(404, "no such page")) };
    let (state, _, error) = ends(gone).await;
    assert_eq!((state, &error["code"]), (State::Failed, &"http_404".into()));
}

#[tokio::test]
async fn a_kind_can_have_a_table_of_its_own() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let table = RuleTable::standard().with(Rule::code("NO_STOCK", Class::Dead));
    let handler = |_: Task| async { Err::<(), _>(Fail::code("NO_STOCK", "sold out")) };
    let worker = Worker::builder(&bench.store).handle_with(handler, HandleOptions::new().rules(table)).build().unwrap();
    worker.run_until_idle().await.unwrap();
    assert_eq!(bench.show(job).await.summary.state, State::Dead);
}

#[tokio::test]
async fn a_panic_is_a_failure_like_any_other() {
    let (state, hows, error) = ends(|_: Task, ctx: Ctx| async move {
        assert!(ctx.attempt() > 1, "the first attempt panics");
        Ok::<(), Fail>(())
    })
    .await;
    assert_eq!((state, hows), (State::Retryable, vec![How::Retry]));
    assert_eq!(error["code"], "panic");
    assert!(error["message"].as_str().unwrap().contains("the first attempt panics"), "{error}");
}

#[tokio::test]
async fn a_panic_before_the_first_await_is_caught_too() {
    fn at_once(_: Task, _: Ctx) -> std::future::Ready<Result<(), Fail>> {
        panic!("not even a future")
    }
    let (state, _, error) = ends(at_once).await;
    assert_eq!((state, &error["code"]), (State::Retryable, &"panic".into()));
}

#[tokio::test]
async fn a_result_is_kept_and_one_that_cannot_be_kept_is_a_failure() {
    let bench = Bench::new().await;
    let (small, huge) = (bench.enqueue(1).await, bench.enqueue(2).await);
    let handler = |job: Task| async move {
        Ok::<_, Fail>(Returned(if job.n == 1 { "receipt".to_owned() } else { "x".repeat(2 << 20) }))
    };
    let worker = Worker::builder(&bench.store).handle(handler).build().unwrap();
    worker.run_until_idle().await.unwrap();
    let record = bench.show(small).await;
    assert_eq!(record.attempts[0].result.as_ref().unwrap().as_str(), "\"receipt\"");
    let record = bench.show(huge).await;
    assert_eq!(record.summary.state, State::Failed);
    assert!(record.attempts[0].error.as_ref().unwrap().as_str().contains("at most"), "{record:?}");
}

#[tokio::test]
async fn what_is_too_large_to_keep_is_refused_where_it_is_said() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let store = bench.inner.clone();
    let handler = move |_: Task, ctx: Ctx, attempt: Attempt| {
        let store = store.clone();
        async move {
            let huge = "x".repeat(2 << 20);
            assert_eq!(ctx.set_usage(&huge).unwrap_err().field, "usage");
            ctx.set_usage(&7).unwrap();
            store.transaction(move |tx| Ok::<_, StoreError>(attempt.complete_with(tx, &huge).is_err())).await
        }
    };
    let handler = move |job: Task, ctx: Ctx, attempt: Attempt| {
        let refused = handler(job, ctx, attempt);
        async move { if refused.await? { Ok(()) } else { Err(Fail::dead("it was taken")) } }
    };
    Worker::builder(&bench.store).handle(handler).build().unwrap().run_until_idle().await.unwrap();
    let record = bench.show(job).await;
    // The refused completion completed nothing: it was the worker who did, with the usage.
    assert_eq!(record.attempts[0].usage.as_ref().map(|usage| usage.as_str()), Some("7"), "{record:?}");
}

#[tokio::test]
async fn hostile_and_endless_errors_are_stored() {
    let (state, _, error) = ends(|_: Task, _: Ctx| async {
        Err::<(), _>(Fail::permanent(format!("a\0b\u{1b}[2J{}", "é".repeat(100_000))))
    })
    .await;
    assert_eq!(state, State::Failed);
    let text = error["message"].as_str().unwrap();
    assert!(text.ends_with('…') && text.len() < 8 << 10 && !text.contains('\0'), "{} bytes", text.len());
}

#[tokio::test]
async fn a_payload_that_does_not_fit_fails_and_says_why() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Other {
        name: String,
    }
    impl tenure_worker::Job for Other {
        const KIND: &'static str = "task";
    }
    let worker = Worker::builder(&bench.store).handle(|_: Other| async {}).build().unwrap();
    worker.run_until_idle().await.unwrap();
    let record = bench.show(job).await;
    assert_eq!(record.summary.state, State::Failed);
    assert!(record.attempts[0].error.as_ref().unwrap().as_str().contains("missing field `name`"));
}

#[tokio::test]
async fn an_unknown_kind_is_given_back_uncharged() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let worker = Worker::builder(&bench.store).queue("default", 1).build().unwrap();
    let summary = worker.run_until_idle().await.unwrap();
    let record = bench.show(job).await;
    assert_eq!((record.summary.state, record.summary.attempt), (State::Queued, 0));
    assert_eq!((summary.unknown_kinds, summary.released), (1, 1));
    assert!(record.summary.run_at.since(record.summary.created_at) >= Duration::from_secs(14), "due for others later");
}

/// The clock is moved to each time at which the job is due again. With a wait of 15 s for ever it was claimed 5,760 times a day.
#[tokio::test]
async fn a_job_of_an_unknown_kind_costs_few_journal_rows_a_day_and_is_due_again_within_five_minutes() {
    let clock = ManualClock::new(Timestamp::EPOCH.plus(SystemTime::UNIX_EPOCH.elapsed().unwrap()));
    let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
    let store = SqliteStore::in_memory(options).unwrap();
    store.migrate().await.unwrap();
    let job = Client::new(&store).enqueue(Task { n: 1 }).await.unwrap().job();
    let worker = Worker::builder(&store).queue("default", 1).build().unwrap();
    let ends = clock.now().plus(Duration::from_secs(86_400));
    let mut claims = 0_u64;
    while clock.now() < ends {
        claims += worker.run_until_idle().await.unwrap().unknown_kinds;
        let due = store.show_job(&Sight::All, job).await.unwrap().summary.run_at;
        assert!(due.since(clock.now()) <= Duration::from_secs(300), "a worker that handles it may have started");
        clock.set(due);
    }
    let rows = store.list_job_rows(&Sight::All, job).await.unwrap().len();
    assert!((280..300).contains(&claims), "{claims} claims in a day");
    assert!((560..600).contains(&rows), "{rows} journal rows in a day");
    let knows = Worker::builder(&store).handle(|_: Task| async {}).build().unwrap();
    assert_eq!(knows.run_until_idle().await.unwrap().succeeded, 1, "uncharged, and run as soon as it is due");
}

#[tokio::test]
async fn a_retry_after_wins_over_the_backoff() {
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let handler =
        |_: Task| async { Err::<(), _>(Fail::rate_limited("slow down").retry_in(Duration::from_secs(7_200))) };
    let worker = Worker::builder(&bench.store).handle(handler).build().unwrap();
    worker.run_until_idle().await.unwrap();
    let record = bench.show(job).await;
    assert!(record.summary.run_at.since(record.summary.created_at) >= Duration::from_secs(7_100));
}

#[tokio::test]
async fn jobs_enqueued_by_handlers_run_as_well() {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let bench = Bench::new().await;
    bench.enqueue(3).await;
    let handler = |job: Task, ctx: Ctx| async move {
        RUNS.fetch_add(1, Ordering::SeqCst);
        if job.n > 0 {
            ctx.client().enqueue(Task { n: job.n - 1 }).await?;
        }
        Ok::<(), Fail>(())
    };
    let worker = Worker::builder(&bench.store).handle(handler).build().unwrap();
    assert_eq!(worker.run_until_idle().await.unwrap().succeeded, 4);
    assert_eq!(RUNS.load(Ordering::SeqCst), 4);
}
