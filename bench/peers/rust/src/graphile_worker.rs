//! graphile_worker, the port of graphile-worker to Rust.

use std::ops::Range;
use std::time::Duration;

use anyhow::Result;
use graphile_worker::tokio_postgres::TokioPostgresDatabase;
use graphile_worker::{
    Database, IntoTaskHandlerResult, JobSpec, LocalQueueConfig, RawJobSpec, TaskHandler, WorkerContext, WorkerOptions,
    WorkerUtils,
};
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;

use crate::measures::{Bulk, Handler, Payload, Peer, Settings};

pub struct GraphileWorker;

impl TaskHandler for Payload {
    const IDENTIFIER: &'static str = "noop";

    async fn run(self, context: WorkerContext) -> impl IntoTaskHandlerResult {
        if let Some(handler) = context.get_ext::<Handler>() {
            handler.run(&self).await;
        }
        Ok::<(), String>(())
    }
}

impl Peer for GraphileWorker {
    const SYSTEM: &str = "graphile_worker";
    const UNFINISHED: &str =
        "select exists (select from graphile_worker._private_jobs where priority = 0 and run_at <= now())";
    const FINISH: Option<&str> = None;
    type Producer = WorkerUtils;

    // `drain` has the numbers of the maintainers' own benches/perf_test.rs; docs/src/guides/local-queue.md in the crate says
    // what they cost. `drain_10` has no local queue, for it claims ahead of the ten that run; then a worker runs
    // `concurrency` jobs at each poll, so the interval is the throttle: at one second it did not finish 3,000 jobs in 180 s.
    // Polling every 2 ms and ending in batches won 3 of 3 turns against every 5 ms without (1,486 : 1,042, 1,923 : 1,029,
    // 1,563 : 1,069 jobs/s); sqlx won 3 of 3 against tokio-postgres (3,266 : 2,008, 3,072 : 1,727, 3,075 : 2,139).
    //
    // `drain`, three turns of 20,000 jobs at load 3 to 5: 40,875 to 47,744 with these settings, and 32,114 to 55,330 with
    // sqlx, smaller queues, two or four of them, or 1 ms: they overlap, so the maintainers' stay. enqueue_bulk: two producers
    // 5,616, one 1,998 jobs/s, one turn each. drain_mixed: one turn each at load 17 (4,297 to 7,102), not decided.
    fn settings(measure: &str) -> Value {
        match measure {
            "drain" => {
                json!({ "concurrency": 500, "local_queue": 5000, "complete_ms": 5, "connections": 20, "driver": "tokio-postgres" })
            }
            "drain_10" => {
                json!({ "concurrency": 10, "connections": 12, "poll_ms": 2, "complete_ms": 1, "driver": "sqlx" })
            }
            "drain_mixed" => {
                json!({ "concurrency": 200, "local_queue": 1000, "complete_ms": 5, "connections": 20, "driver": "tokio-postgres" })
            }
            "latency" => json!({ "concurrency": 10, "connections": 12, "driver": "tokio-postgres" }),
            "enqueue_bulk" => json!({ "batch": 5000, "producers": 2 }),
            _ => json!({}),
        }
    }

    async fn setup(url: &str) -> Result<()> {
        Ok(utils(url, 2)?.migrate().await?)
    }

    async fn producer(url: &str, producers: u32) -> Result<WorkerUtils> {
        utils(url, producers)
    }

    async fn add(producer: &WorkerUtils, payload: Payload) -> Result<()> {
        producer.add_job(payload, JobSpec::default()).await?;
        Ok(())
    }

    async fn add_all(producer: &WorkerUtils, bulk: Bulk, numbers: Range<i64>) -> Result<()> {
        let run_at = bulk.scheduled.then(|| chrono::Utc::now() + Duration::from_secs(365 * 86_400));
        let spec = JobSpec { run_at, priority: bulk.backlog.then_some(10), ..JobSpec::default() };
        let job = |n| -> Result<RawJobSpec> {
            let payload = serde_json::to_value(Payload::new(n, bulk.backlog))?;
            Ok(RawJobSpec { identifier: Payload::IDENTIFIER.to_owned(), payload, spec: spec.clone() })
        };
        producer.add_raw_jobs(&numbers.map(job).collect::<Result<Vec<_>>>()?).await?;
        Ok(())
    }

    async fn work(url: &str, settings: &Settings, handler: Handler) -> Result<()> {
        let number = |name: &str| settings.get(name).and_then(Value::as_u64);
        let size = |name: &str| number(name).and_then(|n| usize::try_from(n).ok());
        let mut options = WorkerOptions::default()
            .database(database(url, u32::try_from(number("connections").unwrap_or(10))?, settings["driver"] == "sqlx")?)
            .concurrency(size("concurrency").unwrap_or(1))
            .poll_interval(Duration::from_millis(number("poll_ms").unwrap_or(1000)))
            .listen_os_shutdown_signals(false)
            .add_extension(handler)
            .define_job::<Payload>();
        if let Some(queue_size) = size("local_queue") {
            let queues = size("queue_count").unwrap_or(1);
            options = options.local_queue(LocalQueueConfig::default().with_size(queue_size).with_queue_count(queues));
        }
        if let Some(delay) = number("complete_ms") {
            let delay = Duration::from_millis(delay);
            options = options.complete_job_batch_delay(delay).fail_job_batch_delay(delay);
        }
        let worker = options.init().await?;
        tokio::spawn(async move {
            if let Err(error) = worker.run().await {
                eprintln!("graphile_worker: {error}");
                std::process::exit(1);
            }
        });
        Ok(())
    }
}

fn database(url: &str, connections: u32, sqlx: bool) -> Result<Database> {
    if sqlx {
        return Ok(PgPoolOptions::new().max_connections(connections).connect_lazy(url)?.into());
    }
    Ok(TokioPostgresDatabase::from_url(url, usize::try_from(connections)?)?.into())
}

fn utils(url: &str, connections: u32) -> Result<WorkerUtils> {
    Ok(WorkerUtils::new(database(url, connections, false)?, "graphile_worker"))
}
