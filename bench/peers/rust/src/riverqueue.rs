//! River's client for Rust.

use std::ops::Range;
use std::time::Duration;

use anyhow::Result;
use riverqueue::jiff::{SignedDuration, Timestamp};
use riverqueue::migrate::PostgresMigrator;
use riverqueue::{
    BoxError, Client, InsertOpts, Job, JobArgs, QUEUE_DEFAULT, QueueConfig, WorkContext, WorkOutcome, Workers,
};
use serde_json::{Value, json};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;

use crate::measures::{Bulk, Handler, Payload, Peer, Settings};

pub struct Riverqueue;

impl JobArgs for Payload {
    const KIND: &'static str = "noop";
}

impl Peer for Riverqueue {
    const SYSTEM: &str = "riverqueue";
    const UNFINISHED: &str =
        "select exists (select from river_job where finalized_at is null and priority = 1 and scheduled_at <= now())";
    const FINISH: Option<&str> =
        Some("update river_job set state = 'completed', attempt = 1, attempted_at = now(), finalized_at = now()");
    type Producer = Client;

    // `fetch_cooldown` is the least time between two fetches and limits throughput, says src/client/builder.rs of the
    // crate; 1 ms is the least, 100 ms the default. Completions are batched by the client itself.
    // Three turns of 20,000 jobs: 2,000 workers 12,837, 12,018, 14,028 jobs/s, 500 14,761, 12,747, 11,737, 10,000 16,085, 16,255,
    // 17,090, of which half was claimed before the clock started. Bulk inserts were not tuned.
    fn settings(measure: &str) -> Value {
        match measure {
            "drain" => json!({ "max_workers": 2000, "fetch_cooldown_ms": 1, "connections": 10 }),
            "drain_10" => json!({ "max_workers": 10, "fetch_cooldown_ms": 1, "connections": 10 }),
            "drain_mixed" => json!({ "max_workers": 200, "fetch_cooldown_ms": 1, "connections": 10 }),
            "latency" => json!({ "max_workers": 10, "fetch_cooldown_ms": 1, "connections": 10 }),
            "enqueue_bulk" => json!({ "batch": 5000, "producers": 2 }),
            _ => json!({}),
        }
    }

    async fn setup(url: &str) -> Result<()> {
        PostgresMigrator::new(pool(url, 1).await?).migrate_up().await?;
        Ok(())
    }

    async fn producer(url: &str, producers: u32) -> Result<Client> {
        Ok(Client::builder(pool(url, producers).await?).fetch_cooldown(Duration::from_millis(1)).build()?)
    }

    async fn add(producer: &Client, payload: Payload) -> Result<()> {
        producer.insert(payload).await?;
        Ok(())
    }

    async fn add_all(producer: &Client, bulk: Bulk, numbers: Range<i64>) -> Result<()> {
        let mut options = InsertOpts::default();
        if bulk.scheduled {
            options = options.with_scheduled_at(Timestamp::now() + SignedDuration::from_hours(365 * 24));
        }
        if bulk.backlog {
            options = options.with_priority(4);
        }
        producer.insert_many(numbers.map(|n| (Payload::new(n, bulk.backlog), options.clone()))).await?;
        Ok(())
    }

    async fn work(url: &str, settings: &Settings, handler: Handler) -> Result<()> {
        let number = |name: &str| settings.get(name).and_then(Value::as_u64).unwrap_or(10);
        let cooldown = Duration::from_millis(number("fetch_cooldown_ms"));
        let mut workers = Workers::new();
        workers.add_fn(move |_: WorkContext, job: Job<Payload>| {
            let handler = handler.clone();
            async move {
                handler.run(&job.args).await;
                Ok::<_, BoxError>(WorkOutcome::Complete)
            }
        })?;
        let client = Client::builder(pool(url, u32::try_from(number("connections"))?).await?)
            .workers(workers)
            .fetch_cooldown(cooldown)
            .queue(QUEUE_DEFAULT, QueueConfig::new(usize::try_from(number("max_workers"))?))
            .build()?;
        client.start()?.detach();
        Ok(())
    }
}

async fn pool(url: &str, connections: u32) -> Result<PgPool> {
    Ok(PgPoolOptions::new().max_connections(connections).connect(url).await?)
}
