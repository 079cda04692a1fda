//! A TCP proxy in front of Postgres that freezes connections by their `application_name`.
//!
//! A frozen connection stays open and carries nothing, in neither direction: what a lost route looks like from both
//! ends. A new one of a frozen name is accepted and never answered.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What a client may send before the startup message.
const SSL_REQUEST: i32 = 80_877_103;
const GSS_REQUEST: i32 = 80_877_104;

/// A name that means every connection.
const EVERYBODY: &str = "*";

/// A running proxy; it goes with this value.
pub(crate) struct Proxy {
    address: SocketAddr,
    frozen: watch::Sender<HashSet<String>>,
    held: Arc<AtomicUsize>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Listens on a free port of this machine; answers itself and the URL that leads through it.
    pub(crate) async fn start(url: &str) -> (Self, String) {
        let (before, rest) = url.split_once('@').unwrap();
        let (server, database) = rest.split_once('/').unwrap();
        let server: SocketAddr = server.parse().unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (frozen, is_frozen) = watch::channel(HashSet::new());
        let held = Arc::new(AtomicUsize::new(0));
        let holding = Arc::clone(&held);
        let accepting = tokio::spawn(async move {
            // Dropped with the proxy, and all connections with it.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(carry(client, server, is_frozen.clone(), Arc::clone(&holding)));
                while connections.try_join_next().is_some() {}
            }
        });
        let through = format!("{before}@{address}/{database}");
        (Self { address, frozen, held, accepting }, through)
    }

    /// Nothing passes on connections of this name any more.
    pub(crate) fn freeze(&self, application_name: &str) {
        self.frozen.send_modify(|names| {
            names.insert(application_name.to_owned());
        });
    }

    /// What was held back goes on.
    pub(crate) fn thaw(&self, application_name: &str) {
        self.frozen.send_modify(|names| {
            names.remove(application_name);
        });
    }

    /// Nothing passes at all.
    pub(crate) fn freeze_all(&self) {
        self.freeze(EVERYBODY);
    }

    /// Everything goes on.
    pub(crate) fn thaw_all(&self) {
        self.thaw(EVERYBODY);
    }

    /// Bytes arrived on a frozen connection and were held back, so many times: that a freeze was noticed.
    pub(crate) fn held_back(&self) -> usize {
        self.held.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({})", self.address)
    }
}

/// One connection, from its startup message to its end. An error is a connection that went away.
async fn carry(
    mut client: TcpStream,
    server: SocketAddr,
    frozen: watch::Receiver<HashSet<String>>,
    held: Arc<AtomicUsize>,
) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let startup = read_startup(&mut client).await?;
    let mut gate = Gate { name: application_name(&startup), frozen, held };
    gate.wait().await;
    let mut upstream = TcpStream::connect(server).await?;
    upstream.set_nodelay(true)?;
    upstream.write_all(&startup).await?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = upstream.into_split();
    tokio::select! {
        done = pump(from_client, to_server, gate.clone()) => done,
        done = pump(from_server, to_client, gate) => done,
    }
}

/// What a connection asks before it passes anything on.
#[derive(Clone)]
struct Gate {
    name: String,
    frozen: watch::Receiver<HashSet<String>>,
    held: Arc<AtomicUsize>,
}

impl Gate {
    /// Waits while the connection is frozen.
    async fn wait(&mut self) {
        let name = &self.name;
        let is_open = |names: &HashSet<String>| !names.contains(name) && !names.contains(EVERYBODY);
        if !is_open(&self.frozen.borrow()) {
            self.held.fetch_add(1, Ordering::SeqCst);
        }
        if self.frozen.wait_for(is_open).await.is_err() {
            // The proxy is gone; so is this connection, in a moment.
            std::future::pending::<()>().await;
        }
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut gate: Gate) -> std::io::Result<()> {
    let mut bytes = vec![0; 16 * 1024];
    loop {
        let count = from.read(&mut bytes).await?;
        // Also an end is not passed on: a lost route tells nobody anything.
        gate.wait().await;
        if count == 0 {
            return Ok(());
        }
        to.write_all(&bytes[..count]).await?;
    }
}

/// The startup message, length and all. Requests for encryption are answered with no.
async fn read_startup(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    loop {
        let length = client.read_i32().await?;
        let mut body = vec![0; usize::try_from(length - 4).unwrap_or(0)];
        client.read_exact(&mut body).await?;
        let code = i32::from_be_bytes([body[0], body[1], body[2], body[3]]);
        if code == SSL_REQUEST || code == GSS_REQUEST {
            client.write_all(b"N").await?;
            continue;
        }
        return Ok([length.to_be_bytes().as_slice(), &body].concat());
    }
}

/// The parameter of the startup message, or nothing.
fn application_name(startup: &[u8]) -> String {
    let words: Vec<&[u8]> = startup[8..].split(|byte| *byte == 0).collect();
    let pair = words.chunks(2).find(|pair| pair[0] == b"application_name");
    pair.and_then(|pair| pair.get(1)).map(|name| String::from_utf8_lossy(name).into_owned()).unwrap_or_default()
}
