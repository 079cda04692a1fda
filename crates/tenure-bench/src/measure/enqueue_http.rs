//! `enqueue_http`: two hundred clients of the server, each of which waits for its answer before it asks again.
//!
//! The floor is the same server with the same clients on a store that gives every request a transaction of its own: what
//! is measured is what sharing them is worth. An embedded file shares them always; there the floor is raw SQL.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tenure_postgres::{PgOptions, PgStore};
use tenure_server::{Auth, Options, Server};
use tenure_store::Store;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::Size;
use super::drain::{beside, with_wal};
use crate::arena::Arena;
use crate::line::Round;

const CLIENTS: u32 = 200;
const BODY: &str = r#"{"kind":"noop","payload":{"order":42,"note":"about a hundred bytes of payload, as in the other measures of enqueues"}}"#;

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    let floor_is = "the same server and clients, one transaction a request";
    (jobs(size), format!("{CLIENTS} clients, keep-alive, one job a request"), floor_is)
}

fn jobs(size: Size) -> u32 {
    size.pick(40_000, 8_000)
}

pub(super) async fn round(arena: &Arena, size: Size, floor_first: bool) -> Result<Round> {
    let (jobs, field) = (jobs(size), arena.field().await?);
    let ours = with_wal(&field, jobs, produce(Arc::clone(&field.store), jobs));
    let floor = async {
        match arena.name() {
            "postgres" => {
                let alone = PgOptions { share_enqueues: false, ..PgOptions::default() };
                produce(Arc::new(PgStore::connect(&field.address, alone).await?), jobs).await
            }
            _ => field.floor.enqueue_single(jobs, 1).await,
        }
    };
    let ((ours, wal_per_job), floor) = beside(&field, floor_first, ours, floor).await?;
    Ok(Round { wal_per_job, ..Round::rates(jobs, ours, floor) })
}

/// Serves the store, and lets every client store its share.
async fn produce(store: Arc<dyn Store>, jobs: u32) -> Result<Duration> {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let server = Server::bind(store, Options { listen, auth: Auth::Open, ..Options::default() })?;
    let address = server.address();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.run_until(async {
        let _told_or_gone = stopped.await;
    }));
    // The first enqueue names the queue.
    ask(address, 1).await?;
    let began = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(ask(address, jobs / CLIENTS));
    }
    while let Some(asked) = clients.join_next().await {
        asked??;
    }
    let took = began.elapsed();
    drop(stop);
    serving.await?;
    Ok(took)
}

/// One connection, one request after the other.
async fn ask(address: SocketAddr, jobs: u32) -> Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let length = BODY.len();
    let request = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{BODY}"
    );
    let mut buffer = vec![0; 4_096];
    for _ in 0..jobs {
        stream.write_all(request.as_bytes()).await?;
        let mut read = 0;
        loop {
            let more = stream.read(&mut buffer[read..]).await?;
            ensure!(more > 0, "the server has closed the connection");
            read += more;
            if let Some(whole) = whole(&buffer[..read])? {
                ensure!(whole == read, "the answer goes on after its end");
                break;
            }
        }
    }
    Ok(())
}

/// The length of an answer that is there whole.
fn whole(bytes: &[u8]) -> Result<Option<usize>> {
    let text = std::str::from_utf8(bytes)?;
    let Some(head) = text.find("\r\n\r\n") else { return Ok(None) };
    ensure!(text.starts_with("HTTP/1.1 201"), "not stored: {text}");
    let length = text[..head].lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.context("an answer without a length")?.parse()?;
    Ok((bytes.len() >= head + 4 + length).then_some(head + 4 + length))
}
