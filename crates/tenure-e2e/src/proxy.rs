//! A TCP proxy in front of Postgres that does to connections what networks do.
//!
//! - *freeze*: connections of an `application_name`, or all, stay open and carry nothing, in neither direction: what a lost
//!   route looks like from both ends. A new one is accepted and never answered.
//! - *delay*: everything arrives a little later.
//! - *cut replies*: the server has done what a statement asked and has committed it; its answer is thrown away and the
//!   client's connection is reset.

mod wire;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use wire::{Asked, Heard, application_name, read_startup};

/// A name that means every connection.
const EVERYBODY: &str = "*";

/// A running proxy; it goes with this value.
pub struct Proxy {
    address: SocketAddr,
    server: Arc<Mutex<SocketAddr>>,
    weather: watch::Sender<Weather>,
    counts: Arc<Counts>,
    accepting: JoinHandle<()>,
}

/// What happens to connections now.
#[derive(Debug, Clone, Default)]
struct Weather {
    frozen: HashSet<String>,
    delay: Duration,
    cut: Option<Cut>,
}

/// Which replies are cut: of each statement that holds one of these words every so many-th.
#[derive(Debug, Clone)]
struct Cut {
    words: &'static [&'static str],
    every: usize,
}

#[derive(Debug, Default)]
struct Counts {
    held_back: AtomicUsize,
    asked: AtomicUsize,
    cut: AtomicUsize,
    accepted: Mutex<Vec<Instant>>,
}

impl Proxy {
    /// Listens on a free port of this machine; answers itself and the URL that leads through it.
    pub async fn start(url: &str) -> (Self, String) {
        let (before, rest) = url.split_once('@').unwrap();
        let database = rest.split_once('/').unwrap().1;
        let server = Arc::new(Mutex::new(server_of(url)));
        let leads_to = Arc::clone(&server);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (weather, seen) = watch::channel(Weather::default());
        let counts = Arc::<Counts>::default();
        let counting = Arc::clone(&counts);
        let accepting = tokio::spawn(async move {
            // Dropped with the proxy, and all connections with it.
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                counting.accepted.lock().unwrap().push(Instant::now());
                let server = *leads_to.lock().unwrap();
                connections.spawn(carry(client, server, seen.clone(), Arc::clone(&counting)));
                while connections.try_join_next().is_some() {}
            }
        });
        let through = format!("{before}@{address}/{database}");
        (Self { address, server, weather, counts, accepting }, through)
    }

    /// New connections lead to the server of this URL, as after a failover. Those that are open stay where they are.
    pub fn lead_to(&self, url: &str) {
        *self.server.lock().unwrap() = server_of(url);
    }

    /// Nothing passes on connections of this name any more.
    pub fn freeze(&self, application_name: &str) {
        self.weather.send_modify(|weather| {
            weather.frozen.insert(application_name.to_owned());
        });
    }

    /// What was held back goes on.
    pub fn thaw(&self, application_name: &str) {
        self.weather.send_modify(|weather| {
            weather.frozen.remove(application_name);
        });
    }

    /// Nothing passes at all.
    pub fn freeze_all(&self) {
        self.freeze(EVERYBODY);
    }

    /// Everything goes on.
    pub fn thaw_all(&self) {
        self.thaw(EVERYBODY);
    }

    /// Everything arrives so much later, in both directions.
    pub fn delay(&self, delay: Duration) {
        self.weather.send_modify(|weather| weather.delay = delay);
    }

    /// Of the statements that hold one of these words and did something, every so many-th is committed and not answered.
    pub fn cut_replies(&self, words: &'static [&'static str], every: usize) {
        self.weather.send_modify(|weather| weather.cut = Some(Cut { words, every }));
    }

    /// Every answer arrives again.
    pub fn cut_no_replies(&self) {
        self.weather.send_modify(|weather| weather.cut = None);
    }

    /// Bytes arrived on a frozen connection and were held back, so many times: that a freeze was noticed.
    pub fn held_back(&self) -> usize {
        self.counts.held_back.load(Ordering::SeqCst)
    }

    /// Replies that were cut.
    pub fn cuts(&self) -> usize {
        self.counts.cut.load(Ordering::SeqCst)
    }

    /// Connections that were accepted since then.
    pub fn accepted_between(&self, since: Instant, until: Instant) -> usize {
        self.counts.accepted.lock().unwrap().iter().filter(|at| (since..until).contains(*at)).count()
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

/// The address in `postgres://user@address/database`.
fn server_of(url: &str) -> SocketAddr {
    let rest = url.split_once('@').unwrap().1;
    rest.split_once('/').unwrap().0.parse().unwrap()
}

/// One connection, from its startup message to its end. An error is a connection that went away.
async fn carry(
    mut client: TcpStream,
    server: SocketAddr,
    weather: watch::Receiver<Weather>,
    counts: Arc<Counts>,
) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let startup = read_startup(&mut client).await?;
    let mut gate = Gate { name: application_name(&startup), weather, counts };
    gate.wait().await;
    let mut upstream = TcpStream::connect(server).await?;
    upstream.set_nodelay(true)?;
    upstream.write_all(&startup).await?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = upstream.into_split();
    let asked = Asked::default();
    tokio::select! {
        done = pump_requests(from_client, to_server, gate.clone(), asked.clone()) => done,
        done = pump_replies(from_server, to_client, gate, Heard::new(asked)) => done,
    }
}

/// What a connection asks before it passes anything on.
#[derive(Clone)]
struct Gate {
    name: String,
    weather: watch::Receiver<Weather>,
    counts: Arc<Counts>,
}

impl Gate {
    /// Waits while the connection is frozen, and as long as everything is delayed.
    async fn wait(&mut self) {
        let name = &self.name;
        let is_open = |weather: &Weather| !weather.frozen.contains(name) && !weather.frozen.contains(EVERYBODY);
        if !is_open(&self.weather.borrow()) {
            self.counts.held_back.fetch_add(1, Ordering::SeqCst);
        }
        if self.weather.wait_for(is_open).await.is_err() {
            // The proxy is gone; so is this connection, in a moment.
            std::future::pending::<()>().await;
        }
        let delay = self.weather.borrow().delay;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
    }

    /// Whether the reply to this statement is one of those that are cut, if it did something.
    fn is_watched(&self, statement: &str) -> bool {
        let weather = self.weather.borrow();
        weather.cut.as_ref().is_some_and(|cut| cut.words.iter().any(|word| statement.contains(word)))
    }

    /// Whether it is this one's turn.
    fn is_cut(&self) -> bool {
        let every = self.weather.borrow().cut.as_ref().map_or(usize::MAX, |cut| cut.every);
        let nth = self.counts.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let cut = nth.is_multiple_of(every);
        self.counts.cut.fetch_add(usize::from(cut), Ordering::SeqCst);
        cut
    }
}

async fn pump_requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut gate: Gate,
    asked: Asked,
) -> std::io::Result<()> {
    let (mut bytes, mut frames) = (vec![0; 16 * 1024], wire::Frames::default());
    loop {
        let count = from.read(&mut bytes).await?;
        // Also an end is not passed on: a lost route tells nobody anything.
        gate.wait().await;
        if count == 0 {
            return Ok(());
        }
        frames.push(&bytes[..count]);
        while let Some(frame) = frames.next() {
            asked.request(&frame);
        }
        to.write_all(&bytes[..count]).await?;
    }
}

async fn pump_replies(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut gate: Gate,
    mut heard: Heard,
) -> std::io::Result<()> {
    let (mut bytes, mut frames) = (vec![0; 16 * 1024], wire::Frames::default());
    loop {
        let count = from.read(&mut bytes).await?;
        gate.wait().await;
        if count == 0 {
            return Ok(());
        }
        frames.push(&bytes[..count]);
        let mut passed = Vec::new();
        while let Some(frame) = frames.next() {
            // Held together until the server is ready again: only then has it committed.
            let Some(reply) = heard.reply(frame, |statement| gate.is_watched(statement)) else { continue };
            if reply.did_something && gate.is_cut() {
                to.as_ref().set_zero_linger()?;
                return Ok(());
            }
            passed.extend(reply.bytes);
        }
        to.write_all(&passed).await?;
    }
}
