//! The floor on Postgres: the functions of `layout.sql`, called by as many connections as the measure has.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tenure_postgres::tokio_postgres::Client;
use tokio::task::JoinSet;

use crate::arena::connect;

/// The raw tables in a database of ours.
pub struct PgFloor {
    url: String,
    client: Client,
}

impl PgFloor {
    /// Makes the tables.
    pub(crate) async fn open(url: &str) -> Result<Self> {
        let client = connect(url).await?;
        client.batch_execute(include_str!("./layout.sql")).await?;
        Ok(Self { url: url.to_owned(), client })
    }

    pub(super) async fn fill(&self) -> Result<()> {
        self.client.batch_execute("select floor.fill()").await?;
        Ok(())
    }

    pub(super) async fn drain(&self, jobs: u32, batch: u32, clients: u32) -> Result<Duration> {
        let ready = self.connect(clients).await?;
        let began = Instant::now();
        let mut turning = JoinSet::new();
        for (worker, client) in (1_i32..).zip(ready) {
            let batch = i32::try_from(batch)?;
            turning.spawn(async move {
                let turn = client.prepare("select floor.turn($1, $2, $3)").await?;
                let mut lease = 0_i64;
                loop {
                    let next = client.query_one(&turn, &[&worker, &lease, &batch]).await?.get(0);
                    if lease == 0 && next == 0 {
                        return anyhow::Ok(());
                    }
                    lease = next;
                }
            });
        }
        while let Some(turned) = turning.join_next().await {
            turned??;
        }
        let took = began.elapsed();
        let done: i64 = self.client.query_one("select count(*) from floor.attempt", &[]).await?.get(0);
        ensure!(done == i64::from(jobs), "the floor ended {done} of {jobs} jobs");
        Ok(took)
    }

    pub(super) async fn enqueue(&self, jobs: u32, bulk: u32, producers: u32) -> Result<Duration> {
        let ready = self.connect(producers).await?;
        let (each, bulk) = (jobs / producers, i32::try_from(bulk)?);
        let began = Instant::now();
        let mut inserting = JoinSet::new();
        for client in ready {
            inserting.spawn(async move {
                let insert = client.prepare("select floor.enqueue($1, $2)").await?;
                let payload = format!("{{\"p\": \"{}\"}}", "x".repeat(100));
                for _ in 0..each / bulk.unsigned_abs() {
                    client.query_one(&insert, &[&bulk, &payload]).await?;
                }
                anyhow::Ok(())
            });
        }
        while let Some(inserted) = inserting.join_next().await {
            inserted??;
        }
        Ok(began.elapsed())
    }

    pub(super) async fn latency(&self, times: u32, gap: Duration) -> Result<Vec<Duration>> {
        let [producer, worker]: [Client; 2] = self.connect(2).await?.try_into().map_err(|_| anyhow::anyhow!("two"))?;
        let insert = producer.prepare("select floor.enqueue(1, $1)").await?;
        let turn = worker.prepare("select floor.turn(1, $1, 1)").await?;
        let payload = format!("{{\"p\": \"{}\"}}", "x".repeat(100));
        let (mut lease, mut took) = (0_i64, Vec::new());
        for _ in 0..times {
            let began = Instant::now();
            producer.query_one(&insert, &[&payload]).await?;
            lease = worker.query_one(&turn, &[&lease]).await?.get(0);
            took.push(began.elapsed());
            ensure!(lease != 0, "the floor's job was not there");
            tokio::time::sleep(gap).await;
        }
        Ok(took)
    }

    async fn connect(&self, clients: u32) -> Result<Vec<Client>> {
        let mut ready = Vec::new();
        for _ in 0..clients {
            ready.push(connect(&self.url).await?);
        }
        Ok(ready)
    }
}
