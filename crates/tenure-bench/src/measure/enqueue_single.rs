//! `enqueue_single`: ten producers, each of which waits for its job to be durable before it makes the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tenure_store::Store;
use tenure_worker::Client;
use tokio::task::JoinSet;

use super::Size;
use super::drain::{beside, with_wal};
use crate::arena::Arena;
use crate::line::Round;
use crate::load::Noop;

const PRODUCERS: u32 = 10;

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    let floor_is = "raw SQL, 10 connections, one job and its ready row a transaction";
    (jobs(size), format!("{PRODUCERS} producers, one client"), floor_is)
}

fn jobs(size: Size) -> u32 {
    size.pick(50_000, 10_000)
}

pub(super) async fn round(arena: &Arena, size: Size, floor_first: bool) -> Result<Round> {
    let (jobs, field) = (jobs(size), arena.field().await?);
    let ours = with_wal(&field, jobs, produce(&field.store, jobs));
    let floor = field.floor.enqueue_single(jobs, PRODUCERS);
    let ((ours, wal_per_job), floor) = beside(&field, floor_first, ours, floor).await?;
    Ok(Round { wal_per_job, ..Round::rates(jobs, ours, floor) })
}

async fn produce(store: &Arc<dyn Store>, jobs: u32) -> Result<Duration> {
    let client = Client::new(store);
    // The first enqueue names the queue.
    client.enqueue(Noop::new()).await?;
    let began = Instant::now();
    let mut producers = JoinSet::new();
    for _ in 0..PRODUCERS {
        let client = client.clone();
        producers.spawn(async move {
            for _ in 0..jobs / PRODUCERS {
                client.enqueue(Noop::new()).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(produced) = producers.join_next().await {
        produced??;
    }
    Ok(began.elapsed())
}
