//! A broker that is not there yet, is stopped, killed and frozen, while jobs are published.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tenure_cluster::rabbitmq_server::RabbitServer;
use tenure_rabbitmq::{Broker, Options};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;
use tracing::Level;

use crate::{connected, eventually, job, lines, still, woken};

/// Publishes all the time, from another task.
struct Load {
    stop: Arc<AtomicBool>,
    calls: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Load {
    fn start(broker: &Broker) -> Self {
        let (stop, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, called, broker) = (Arc::clone(&stop), Arc::clone(&calls), broker.clone());
        let task = tokio::spawn(async move {
            while !stopped.load(Ordering::SeqCst) {
                for number in 0..10 {
                    broker.publish(job(number));
                    called.fetch_add(1, Ordering::SeqCst);
                }
                sleep(Duration::from_millis(1)).await;
            }
        });
        Self { stop, calls, task }
    }

    async fn end(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap();
        self.calls.load(Ordering::SeqCst)
    }
}

/// What was told about the broker at a port since it was made.
struct Told {
    port: u16,
    before: (usize, usize, usize),
}

impl Told {
    fn since_now(port: u16) -> Self {
        let mut told = Self { port, before: (0, 0, 0) };
        told.before = told.so_far();
        told
    }

    /// Warnings, ends of an outage, further tries.
    fn so_far(&self) -> (usize, usize, usize) {
        let count = |level| lines::told(level, self.port).len();
        let (warn, info, debug) = (count(Level::WARN), count(Level::INFO), count(Level::DEBUG));
        (warn - self.before.0, info - self.before.1, debug - self.before.2)
    }

    fn warnings_and_ends(&self) -> (usize, usize) {
        let (warnings, ends, _) = self.so_far();
        (warnings, ends)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_may_come_and_go_as_it_likes() {
    lines::keep();
    let server = spawn_blocking(|| RabbitServer::start().unwrap()).await.unwrap();
    let server = not_there_yet(server).await;
    let server = stopped_under_load(server).await;
    let server = frozen(server).await;
    killed(server).await;
    let loud = |line: &lines::Line| line.level <= Level::WARN && !line.target.starts_with("tenure");
    let loud: Vec<_> = lines::all().into_iter().filter(loud).collect();
    assert!(loud.is_empty(), "the driver tells what we tell already: {loud:?}");
}

fn options(server: &RabbitServer) -> Options {
    Options { publish: true, heartbeat: Duration::from_secs(1), ..Options::new(server.url()) }
}

async fn not_there_yet(mut server: RabbitServer) -> RabbitServer {
    let told = Told::since_now(server.port());
    server.kill().unwrap();
    let broker = Broker::start(options(&server)).unwrap();
    eventually("tried again", || told.so_far().2 == 1).await;
    assert_eq!(told.warnings_and_ends(), (1, 0));
    assert!(!broker.is_up());
    still(&broker).await;
    let server = started(server).await;
    connected(&broker).await;
    assert_eq!(told.warnings_and_ends(), (1, 1));
    broker.close().await;
    server
}

async fn stopped_under_load(server: RabbitServer) -> RabbitServer {
    let told = Told::since_now(server.port());
    let broker = Broker::start(options(&server)).unwrap();
    connected(&broker).await;
    let load = Load::start(&broker);
    eventually("published", || broker.counts().published > 100 && broker.counts().received > 100).await;
    let server = stopped(server).await;
    eventually("down", || !broker.is_up()).await;
    let dropped = broker.counts().dropped;
    eventually("dropped", || broker.counts().dropped > dropped + 100).await;
    let server = started(server).await;
    eventually("up again", || broker.is_up()).await;
    let received = broker.counts().received;
    eventually("published again", || broker.counts().received > received + 100).await;
    assert_eq!((told.warnings_and_ends(), broker.counts().reconnects), ((1, 2), 1));
    counts_add_up(broker, load).await;
    server
}

/// The connections stay, and nobody answers.
async fn frozen(server: RabbitServer) -> RabbitServer {
    let told = Told::since_now(server.port());
    let broker = Broker::start(options(&server)).unwrap();
    connected(&broker).await;
    let load = Load::start(&broker);
    server.pause().unwrap();
    eventually("noticed", || !broker.is_up()).await;
    server.resume().unwrap();
    eventually("up again", || broker.is_up()).await;
    let received = broker.counts().received;
    eventually("published again", || broker.counts().received > received + 100).await;
    assert_eq!(told.warnings_and_ends(), (1, 2), "{:?}", lines::told(Level::WARN, told.port));
    counts_add_up(broker, load).await;
    server
}

/// Nobody says goodbye.
async fn killed(mut server: RabbitServer) {
    let told = Told::since_now(server.port());
    let broker = Broker::start(options(&server)).unwrap();
    connected(&broker).await;
    let load = Load::start(&broker);
    eventually("published", || broker.counts().received > 100).await;
    server.kill().unwrap();
    eventually("noticed", || !broker.is_up()).await;
    // What came before wakes once more, and then nothing does.
    woken(&broker).await;
    still(&broker).await;
    assert_eq!(told.warnings_and_ends(), (1, 1));
    counts_add_up(broker, load).await;
}

/// Whatever happens, a job that was published is counted as one or as the other.
async fn counts_add_up(broker: Broker, load: Load) {
    let calls = load.end().await;
    let watching = broker.clone();
    broker.close().await;
    let counts = watching.counts();
    assert_eq!(counts.published + counts.dropped, calls, "{counts:?}");
}

async fn started(mut server: RabbitServer) -> RabbitServer {
    let again = move || {
        server.start_again().unwrap();
        server
    };
    spawn_blocking(again).await.unwrap()
}

async fn stopped(mut server: RabbitServer) -> RabbitServer {
    let stop = move || {
        server.stop().unwrap();
        server
    };
    spawn_blocking(stop).await.unwrap()
}
