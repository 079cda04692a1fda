//! What a worker writes into the log: few lines, and nothing of a payload.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::{State as JobState, Timestamp};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::{AdminStore, StoreError};
use tenure_worker::{Client, Fail, Job, KeeperPlace, Schedule, Worker};
use tracing::field::{Field, Visit};
use tracing::{Level, span};

use crate::bench::{Bench, Task, watch};
use crate::flaky::{Fault, Verb};
use crate::reports::flaky;

/// Keeps every line above debug.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl tracing::Subscriber for Lines {
    fn enabled(&self, about: &tracing::Metadata<'_>) -> bool {
        *about.level() <= Level::INFO
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }
}

#[tokio::test]
async fn a_payload_that_does_not_fit_is_not_repeated_in_the_log() {
    #[derive(Serialize, Deserialize)]
    struct Secret {
        n: String,
    }
    impl Job for Secret {
        const KIND: &'static str = "task";
    }
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let bench = Bench::new().await;
    let job = bench.client.enqueue(Secret { n: "canary-4111".into() }).await.unwrap().job();
    let worker = Worker::builder(&bench.store).handle(|_: Task| async {}).build().unwrap();
    worker.run_until_idle().await.unwrap();
    let record = bench.show(job).await;
    assert_eq!(record.summary.state, JobState::Failed);
    let error = record.attempts[0].error.as_ref().unwrap();
    assert!(!error.as_str().contains("canary"), "{error}");
    let lines = lines.0.lock().unwrap();
    assert!(
        lines.iter().any(|line| line.contains("failed")) && !lines.iter().any(|line| line.contains("canary")),
        "{lines:?}"
    );
}

#[tokio::test]
async fn a_store_that_comes_and_goes_is_two_lines_a_second() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (bench, flaky) = flaky().await;
    let jobs = bench.client.enqueue_many((0..40).map(|n| Task { n })).await.unwrap();
    let worker = Worker::builder(&bench.store)
        .keeper(KeeperPlace::Task)
        .queue("default", 1)
        .handle(|_: Task| async {})
        .build()
        .unwrap();
    let began = tokio::time::Instant::now();
    let stop = async {
        for job in &jobs {
            flaky.fail(Verb::Succeed, Fault::LostBefore, 1);
            bench.until(job.job(), JobState::Succeeded).await;
        }
    };
    worker.run_until(stop).await.unwrap();
    let lines = lines.0.lock().unwrap();
    let about: Vec<_> = lines.iter().filter(|line| line.contains("the store")).collect();
    let seconds = began.elapsed().as_secs() as usize + 1;
    assert!(!about.is_empty() && about.len() <= 2 * seconds, "{} lines in {seconds} s: {about:#?}", about.len());
}

#[tokio::test]
async fn leases_that_end_one_after_the_other_are_one_line_a_second() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (bench, flaky) = flaky().await;
    bench.lease_ttl(Duration::from_secs(1)).await;
    flaky.fail(Verb::Renew, Fault::LostBefore, u32::MAX);
    let worker = Worker::builder(&bench.store)
        .keeper(KeeperPlace::Task)
        .queue("default", 20)
        .grace(Duration::ZERO)
        .handle(|_: Task| std::future::pending::<()>())
        .build()
        .unwrap();
    let stop = async {
        // Each is claimed by itself, twenty milliseconds apart.
        for n in 0..20 {
            bench.enqueue(n).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(1_000)).await;
    };
    let summary = worker.run_until(stop).await.unwrap();
    let lines = lines.0.lock().unwrap();
    let about = lines.iter().filter(|line| line.contains("no renewal was accepted")).count();
    assert!(summary.fenced >= 20 && (1..=3).contains(&about), "{about} lines, {summary:?}");
}

/// It is looked at every minute, and the others fire all the same.
#[tokio::test]
async fn a_schedule_that_cannot_be_read_is_told_of_once() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let clock = ManualClock::new(Timestamp::parse("clock", "2026-01-01T00:00:00Z").unwrap());
    let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
    let store = SqliteStore::in_memory(options).unwrap();
    store.migrate().await.unwrap();
    let client = Client::new(&store);
    for name in ["bad", "good"] {
        client.set_schedule(Schedule::new(name, "* * * * *"), Task { n: 1 }).await.unwrap();
    }
    let spoil = store.transaction(|tx| {
        let sql = "update schedule set cron = 'every day' where name = 'bad'";
        tx.connection().execute(sql, []).map_err(StoreError::unavailable)
    });
    spoil.await.unwrap();
    let worker = Worker::builder(&store).keeper(KeeperPlace::Task).handle(|_: Task| async {}).build().unwrap();
    let stop = async {
        for round in 1..=3 {
            clock.advance(Duration::from_secs(60));
            watch("both were looked at", async || {
                let (bad, _) = client.show_schedule("bad").await.unwrap();
                bad.version > round && client.show_schedule("good").await.unwrap().1.len() as i64 == round
            })
            .await;
        }
    };
    worker.run_until(stop).await.unwrap();
    let lines = lines.0.lock().unwrap();
    let about: Vec<_> = lines.iter().filter(|line| line.contains("a schedule cannot fire")).collect();
    assert!(about.len() == 1 && about[0].contains("every day") && about[0].contains("bad"), "{about:#?}");
}

/// What a source is, is a gate: those that fail most are named.
#[tokio::test]
async fn what_was_done_is_added_up_in_one_line() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let bench = Bench::new().await;
    let good = bench.enqueue(1).await;
    let bad = |n| bench.client.enqueue(Task { n }).gate("source:ebay");
    let (one, other) = (bad(2).await.unwrap().job(), bad(2).await.unwrap().job());
    let handler = |job: Task| async move { if job.n == 1 { Ok(()) } else { Err(Fail::permanent("no")) } };
    let worker = Worker::builder(&bench.store).keeper(KeeperPlace::Task).handle(handler).build().unwrap();
    let all = async {
        bench.until(good, JobState::Succeeded).await;
        bench.until(one, JobState::Failed).await;
        bench.until(other, JobState::Failed).await;
    };
    worker.run_until(all).await.unwrap();
    let lines = lines.0.lock().unwrap();
    let told: Vec<_> = lines.iter().filter(|line| line.contains("batch_claimed_count")).collect();
    assert_eq!(told.len(), 1, "{lines:#?}");
    for part in
        ["batch_claimed_count=3 ", "success_count=1 ", "fail_count=2 ", "job_duration_ms=", "failing=\"source:ebay=2\""]
    {
        assert!(told[0].contains(part), "{part} is not in {}", told[0]);
    }
}

/// A handler's own lines say which job they are about, also when only errors are logged.
#[tokio::test]
async fn what_a_handler_logs_stands_in_the_span_of_its_attempt() {
    let spans = Spans::default();
    let _guard = tracing::subscriber::set_default(spans.clone());
    let bench = Bench::new().await;
    let job = bench.enqueue(1).await;
    let handler = |_: Task| async { tracing::error!("something of mine") };
    let worker = Worker::builder(&bench.store).handle(handler).build().unwrap();
    worker.run_until_idle().await.unwrap();
    let told = spans.told.lock().unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    for part in [format!("job.id={job} "), "job.kind=task ".into(), "queue=default ".into(), "attempt=1 ".into()] {
        assert!(told[0].contains(&part), "{part} is not in {told:?}");
    }
}

/// Keeps the fields of the span that each error was logged in.
#[derive(Clone, Default)]
struct Spans {
    fields: Arc<Mutex<Vec<String>>>,
    inside: Arc<Mutex<Vec<u64>>>,
    told: Arc<Mutex<Vec<String>>>,
}

impl tracing::Subscriber for Spans {
    fn enabled(&self, about: &tracing::Metadata<'_>) -> bool {
        *about.level() == Level::ERROR
    }

    fn new_span(&self, about: &span::Attributes<'_>) -> span::Id {
        let (mut line, mut fields) = (Line(String::new()), self.fields.lock().unwrap());
        about.record(&mut line);
        fields.push(line.0);
        span::Id::from_u64(fields.len() as u64)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, span: &span::Id) {
        self.inside.lock().unwrap().push(span.into_u64());
    }

    fn exit(&self, _: &span::Id) {
        self.inside.lock().unwrap().pop();
    }

    fn event(&self, _: &tracing::Event<'_>) {
        let inside = *self.inside.lock().unwrap().last().unwrap();
        self.told.lock().unwrap().push(self.fields.lock().unwrap()[inside as usize - 1].clone());
    }
}
