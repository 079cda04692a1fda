//! apalis with its PostgreSQL backend.

use std::ops::Range;
use std::time::Duration;

use anyhow::Result;
use apalis::layers::WorkerBuilderExt as _;
use apalis::prelude::*;
use apalis_postgres::{Config, PgPool, PostgresStorage};
use serde_json::{Value, json};
use sqlx::postgres::PgPoolOptions;

use crate::measures::{Bulk, Handler, Payload, Peer, Settings};

pub struct ApalisPostgres;

const QUEUE: &str = "noop";

/// Higher numbers are fetched first, and none is below zero.
const NORMAL: usize = 1;

impl Peer for ApalisPostgres {
    const SYSTEM: &str = "apalis-postgres";
    const UNFINISHED: &str = "select exists (select from apalis.jobs where status not in ('Done', 'Killed') and priority = 1 and run_at <= now())";
    const FINISH: Option<&str> = Some(
        "update apalis.jobs set status = 'Done', attempts = 1, lock_at = now(), done_at = now(), last_result = '{\"Ok\": null}'",
    );
    type Producer = PgPool;

    // `batch_size`, `lock_tasks` and `with_pubsub` are in src/config.rs and the README; examples/basic.rs of the crate has
    // `lock_tasks(false)` and `parallelize(tokio::spawn)`. Without `lock_tasks` a task is not marked as running besides
    // being fetched by its worker. `persist_results` stays on: without it no completion is recorded.
    //
    // Three turns of 20,000 jobs at load 3 to 5: batches of 1,000 11,214, 11,607, 12,301 jobs/s, of 100 3,541, 3,321, 3,494,
    // of 5,000 15,301, 11,391, 15,302, of which a quarter was claimed before the clock started; with `lock_tasks` 8,863, 9,983,
    // 9,524. Ten at a time: batches of 10 936, 1,098, 1,042, of 5 100 and 789. drain_mixed: one turn each at load 17, not decided.
    fn settings(measure: &str) -> Value {
        match measure {
            "drain" => json!({ "batch_size": 1000, "concurrency": 1000, "connections": 10, "lock_tasks": false }),
            "drain_10" => json!({ "batch_size": 10, "concurrency": 10, "connections": 10, "lock_tasks": false }),
            "drain_mixed" => json!({ "batch_size": 200, "concurrency": 200, "connections": 10, "lock_tasks": false }),
            "latency" => json!({ "batch_size": 10, "concurrency": 10, "connections": 10, "lock_tasks": false }),
            "enqueue_bulk" => json!({ "batch": 5000, "producers": 2 }),
            _ => json!({}),
        }
    }

    async fn setup(url: &str) -> Result<()> {
        Ok(PostgresStorage::setup(&pool(url, 1).await?).await?)
    }

    async fn producer(url: &str, producers: u32) -> Result<PgPool> {
        pool(url, producers).await
    }

    async fn add(producer: &PgPool, payload: Payload) -> Result<()> {
        let mut connection = producer.acquire().await?;
        let task = TaskBuilder::new(serde_json::to_vec(&payload)?).priority(NORMAL).build();
        apalis_postgres::queries::push_tasks(&mut *connection, QUEUE, vec![task]).await?;
        Ok(())
    }

    async fn add_all(producer: &PgPool, bulk: Bulk, numbers: Range<i64>) -> Result<()> {
        let job = |n| -> Result<_> {
            let mut task = TaskBuilder::new(serde_json::to_vec(&Payload::new(n, bulk.backlog))?);
            if bulk.scheduled {
                task = task.run_after(Duration::from_secs(365 * 86_400));
            }
            Ok(task.priority(if bulk.backlog { 0 } else { NORMAL }).build())
        };
        let mut connection = producer.acquire().await?;
        let tasks = numbers.map(job).collect::<Result<Vec<_>>>()?;
        Ok(apalis_postgres::queries::push_tasks(&mut *connection, QUEUE, tasks).await?)
    }

    async fn work(url: &str, settings: &Settings, handler: Handler) -> Result<()> {
        let number = |name: &str| settings.get(name).and_then(Value::as_u64).unwrap_or(10);
        let size = |name: &str| usize::try_from(number(name)).unwrap_or(10);
        let flag = |name: &str| settings.get(name).and_then(Value::as_bool).unwrap_or(true);
        let pool = pool(url, u32::try_from(number("connections"))?).await?;
        let config = Config::default()
            .queue(QUEUE)
            .batch_size(size("batch_size"))
            .lock_tasks(flag("lock_tasks"))
            .persist_results(flag("persist_results"));
        let backend = PostgresStorage::<Payload>::new(&pool).with_config(config).with_pubsub();
        let worker = WorkerBuilder::new("bench").backend(backend).concurrency(size("concurrency")).data(handler);
        let worker = worker.parallelize(tokio::spawn).build(noop);
        // Its future cannot be spawned: the compiler does not see that it is `Send`.
        let runtime = tokio::runtime::Handle::current();
        std::thread::spawn(move || {
            if let Err(error) = runtime.block_on(worker.run()) {
                eprintln!("apalis-postgres: {error}");
                std::process::exit(1);
            }
        });
        Ok(())
    }
}

async fn noop(payload: Payload, handler: Data<Handler>) -> Result<(), BoxDynError> {
    handler.run(&payload).await;
    Ok(())
}

async fn pool(url: &str, connections: u32) -> Result<PgPool> {
    Ok(PgPoolOptions::new().max_connections(connections).connect(url).await?)
}
