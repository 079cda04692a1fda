//! `dashboard_pages`: every page of the dashboard, in a store where ten million jobs have ended.
//!
//! The floor is the same pages of the same server when only a thousand had: what is measured is what history costs. The
//! 99th percentile is over pages and visits, so that one slow page shows. Around it is what a busy installation has:
//! dead letters, gates, tenants.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use tenure_server::{Auth, Options, Server};
use tenure_store::Store;
use tenure_store::record::JobFilter;
use tenure_worker::{Client, Fail, Job, Worker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, oneshot};

use super::Size;
use crate::arena::Arena;
use crate::crew::Crew;
use crate::line::{Round, percentile};
use crate::load::{Due, Noop, fill};

/// Jobs that have ended when nothing has happened yet, so to speak.
const FEW: u32 = 1_000;
/// How often each page is looked at.
const VISITS: usize = 10;
const BUSY: &str = "busy";
const TENANTS: u32 = 50;
const GATES: u32 = 1_000;
const DEAD: u32 = 2_000;
const PAGES: [&str; 19] = [
    "/",
    "/?within=24h",
    "/?within=7d",
    "/jobs",
    "/jobs?state=succeeded",
    "/jobs?state=dead",
    "/jobs?kind=noop&since=1h",
    "/jobs?text=xxx",
    "/queues",
    "/dead",
    "/operations",
    "/runs",
    "/gates",
    "/schedules",
    "/workers",
    "/webhooks",
    "/audit",
    "/tenants",
    "/keys",
];

/// A job that dies.
#[derive(Debug, Serialize, Deserialize)]
struct Broken {
    part: u32,
}

impl Job for Broken {
    const KIND: &'static str = "broken";
}

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    let floor_is = "the same pages beside 1,000 ended jobs; ms";
    (jobs(size), format!("{} pages, {VISITS} visits each, one after the other", PAGES.len() + 1), floor_is)
}

fn jobs(size: Size) -> u32 {
    size.pick(10_000_000, 20_000)
}

pub(super) async fn round(arena: &Arena, size: Size) -> Result<Round> {
    let field = arena.field().await?;
    furnish(&field.store).await?;
    end(&field.store, FEW).await?;
    field.settle().await?;
    let floor = percentile(&visit(&field.store).await?, 0.5);
    end(&field.store, jobs(size)).await?;
    field.settle().await?;
    let took = visit(&field.store).await?;
    Ok(Round { p50_ms: percentile(&took, 0.5), p99_ms: percentile(&took, 0.99), floor, ..Round::default() })
}

/// What pages show besides history, in a queue of its own: gates and tenants are claimed otherwise.
async fn furnish(store: &Arc<dyn Store>) -> Result<()> {
    for n in 0..TENANTS {
        let client = Client::new(store).for_tenant(format!("tenant-{n}").parse()?);
        let gated = client.enqueue_many((0..GATES / TENANTS).map(|_| Noop::new()));
        gated.each(move |k, one| one.queue(BUSY).gate(&format!("domain:{n}-{k}"))).await?;
        let broken = client.enqueue_many((0..DEAD / TENANTS).map(|part| Broken { part }));
        broken.each(|_, one| one.queue(BUSY)).await?;
    }
    let done = Arc::new((AtomicU32::new(0), Notify::new()));
    let (good, bad) = (Arc::clone(&done), Arc::clone(&done));
    let count = |done: &(AtomicU32, Notify)| {
        if done.0.fetch_add(1, Ordering::Relaxed) + 1 >= GATES + DEAD {
            done.1.notify_one();
        }
    };
    let noop = move |_: Noop| {
        count(&good);
        async { Ok::<(), Fail>(()) }
    };
    let broken = move |job: Broken| {
        count(&bad);
        async move { Err::<(), _>(Fail::dead(format!("part {} is broken", job.part % 20))) }
    };
    let worker = Worker::builder(store).queue(BUSY, 64).handle(noop).handle(broken).build()?;
    worker.run_until(done.1.notified()).await?;
    Ok(())
}

/// So many more jobs have ended, and are in the rollups.
async fn end(store: &Arc<dyn Store>, jobs: u32) -> Result<()> {
    fill(store, jobs, Due::Now).await?;
    Crew::BEST.run(store, jobs).await?;
    while store.seal_journal().await?.is_some() {}
    while store.fold_rollups().await? > 0 {}
    Ok(())
}

/// Looks at every page; answers how long each answer took.
async fn visit(store: &Arc<dyn Store>) -> Result<Vec<Duration>> {
    let newest = store.list_jobs(&JobFilter { limit: 1, ..JobFilter::default() }).await?;
    let job = format!("/jobs/{}", newest.first().context("there is no job")?.id);
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(Arc::clone(store), Options { listen, auth: Auth::Open, ..Options::default() })?;
    let server = server.with_pages(tenure_dashboard::router);
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.run_until(async {
        let _told_or_gone = stopped.await;
    }));
    let mut took = Vec::new();
    for path in PAGES.iter().copied().chain([job.as_str()]) {
        // The first visit prepares statements, and reads what the others find read.
        look(address, path).await?;
        for _ in 0..VISITS {
            took.push(look(address, path).await?);
        }
    }
    drop(stop);
    serving.await?;
    Ok(took)
}

/// One page, from the request to the last byte.
async fn look(address: SocketAddr, path: &str) -> Result<Duration> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let began = Instant::now();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let took = began.elapsed();
    ensure!(answer.starts_with(b"HTTP/1.1 200"), "{path}: {}", String::from_utf8_lossy(&answer));
    Ok(took)
}
