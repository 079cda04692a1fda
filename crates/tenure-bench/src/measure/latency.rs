//! `latency`: from an enqueue to the first line of its handler, on a worker that has nothing else to do.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tenure_worker::{Client, Fail, Worker};
use tokio::sync::oneshot;

use super::Size;
use crate::arena::Arena;
use crate::line::{Round, percentile};
use crate::load::Noop;

/// Between two jobs: long enough for the worker to be idle again, and for the processors to sleep.
const GAP: Duration = Duration::from_millis(20);
/// The first ones open connections and prepare statements.
const WARM_UP: usize = 20;

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    let floor_is = "raw SQL: insert, then claim, on two connections, nobody notified; the same pauses; ms";
    (jobs(size), "10 slots, one job every 20 ms, from before the enqueue to the handler".to_owned(), floor_is)
}

fn jobs(size: Size) -> u32 {
    size.pick(1_000, 150)
}

pub(super) async fn round(arena: &Arena, size: Size) -> Result<Round> {
    let (jobs, field) = (jobs(size), arena.field().await?);
    let floor = field.floor.latency(jobs, GAP).await?;
    let heard: Arc<Mutex<Option<oneshot::Sender<Instant>>>> = Arc::default();
    let hears = Arc::clone(&heard);
    let handler = move |_: Noop| {
        let now = Instant::now();
        let waiting = hears.lock().unwrap_or_else(PoisonError::into_inner).take();
        async move {
            // Nobody waits for a job of the warm-up that is tried again.
            let _ = waiting.map(|waiting| waiting.send(now));
            Ok::<(), Fail>(())
        }
    };
    let worker = Worker::builder(&field.store).queue("default", 10).handle(handler).build()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(worker.run_until(async { drop(stopped.await) }));
    let client = Client::new(&field.store);
    let mut took = Vec::new();
    for _ in 0..jobs as usize + WARM_UP {
        let (said, hear) = oneshot::channel();
        *heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
        let began = Instant::now();
        client.enqueue(Noop::new()).await?;
        let at = tokio::time::timeout(Duration::from_secs(10), hear).await.context("no handler ran within 10 s")??;
        took.push(at.duration_since(began));
        tokio::time::sleep(GAP).await;
    }
    drop(stop);
    running.await??;
    let took = &took[WARM_UP..];
    let floor = percentile(&floor, 0.5);
    Ok(Round { p50_ms: percentile(took, 0.5), p99_ms: percentile(took, 0.99), floor, ..Round::default() })
}
