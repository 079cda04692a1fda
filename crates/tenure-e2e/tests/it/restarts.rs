//! Postgres goes away in the middle of everything, again and again, and for a while: no acknowledged job is lost, no
//! process ends, nobody floods the log, and all go on by themselves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tenure_contract::postgres_server::{Options, Postgres};
use tenure_core::JobId;
use tenure_e2e::{Act, Entry};
use tenure_store::StoreError;
use tenure_worker::Client;

use crate::process::Process;
use crate::record::Record;
use crate::stage::Stage;
use crate::watch::watch;

const RESTARTS: usize = 10;
const PRODUCERS: usize = 2;
const SLOTS: usize = 32;
/// Shorter than the long outage, so that leases run out in it.
const LEASE: Duration = Duration::from_secs(5);
/// Done between two faults: proof that everybody goes on.
const PROGRESS: usize = 50;
const LINES_PER_SECOND: f64 = 2.0;
/// Long enough that every lease ends and every part of a process has something to complain about.
const OUTAGE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn postgres_restarts() {
    let mut cluster = Postgres::start(&Options { fsync: true, ..Options::default() }).unwrap();
    let mut stage = Stage::at(cluster.url("postgres")).await;
    stage.set_lease("default", LEASE).await;
    let mut workers: Vec<Process> =
        (0..2).map(|n| stage.worker(&format!("w{n}"), &["--queue", "default=32"])).collect();
    let load = Load::start(&stage.client);
    let mut resumed = Vec::new();
    progress(&mut stage, &load).await;
    for _ in 0..RESTARTS {
        cluster.stop().unwrap();
        cluster.start_again().unwrap();
        let since = Instant::now();
        progress(&mut stage, &load).await;
        resumed.push(since.elapsed());
    }
    // Every slot is in the middle of something when the long outage begins.
    let mut long = Produced::default();
    for _ in 0..2 * SLOTS {
        long.enqueue(&stage.client, Act::Wait { ms: 3_000 }).await;
    }
    watch("every slot is taken", async || {
        let entries = stage.entries();
        let open = entries.iter().filter(|entry| entry.what == "start").count() - ended(entries);
        (open >= 2 * SLOTS - 4).then_some(())
    })
    .await;
    cluster.stop().unwrap();
    let down = Instant::now();
    watch_for(OUTAGE).await;
    let rates: Vec<f64> =
        workers.iter().map(|worker| lines_since(worker, down) / down.elapsed().as_secs_f64()).collect();
    cluster.start_again().unwrap();
    let since = Instant::now();
    progress(&mut stage, &load).await;
    resumed.push(since.elapsed());
    let mut produced = load.stop().await;
    produced.acknowledged.extend(long.acknowledged);
    watch("everything is done", async || {
        let queues = stage.store.list_queues().await.ok()?;
        queues.iter().all(|queue| queue.due + queue.scheduled + queue.running == 0).then_some(())
    })
    .await;
    let alive = workers.iter_mut().map(Process::ended).filter(Option::is_none).count();
    let record = Record::prove(&*stage.store).await;
    let succeeded = record.succeeded();
    let lost = produced.acknowledged.iter().filter(|job| !succeeded.contains_key(job)).count();
    println!(
        "{RESTARTS} restarts and {OUTAGE:?} away: {} acknowledged, {lost} of them lost, {} enqueues failed and were repeated; \
         {alive} of 2 processes alive; log lines/s while away {rates:.2?}; resumed {PROGRESS} jobs after {resumed:.1?}; \
         attempts {:?}, {} refused",
        produced.acknowledged.len(),
        produced.failures,
        record.tally(),
        record.refused.len()
    );
    assert_eq!((lost, alive), (0, 2));
    assert_eq!(
        succeeded.len(),
        produced.acknowledged.len(),
        "every job ends, and none is stored that nobody asked for"
    );
    assert!(produced.failures >= RESTARTS, "producers met the faults, or the run is void");
    for (worker, rate) in workers.iter().zip(&rates) {
        assert!(*rate <= LINES_PER_SECOND, "{} writes {rate:.1} lines a second\n{}", worker.name, worker.log());
        assert!(lines_since(worker, down) > 0.0, "and says what is wrong, or the run is void");
    }
}

/// Waits until more is acknowledged and more is done than now.
async fn progress(stage: &mut Stage, load: &Load) {
    let (acknowledged, done) = (load.acknowledged(), ended(stage.entries()));
    watch("producers and workers go on", async || {
        let more = load.acknowledged() >= acknowledged + PROGRESS && ended(stage.entries()) >= done + PROGRESS;
        more.then_some(())
    })
    .await;
}

fn ended(entries: &[Entry]) -> usize {
    entries.iter().filter(|entry| entry.what == "end").count()
}

/// An outage is a length of time: here it is the thing itself that is waited for.
async fn watch_for(outage: Duration) {
    let since = Instant::now();
    watch("the outage is over", async || (since.elapsed() >= outage).then_some(())).await;
}

fn lines_since(worker: &Process, since: Instant) -> f64 {
    worker.log_lines().iter().filter(|line| line.at >= since).count() as f64
}

/// Producers that enqueue one job after the other, and the same one again until they are told that it is stored.
struct Load {
    stop: Arc<AtomicBool>,
    acknowledged: Arc<AtomicUsize>,
    producers: Vec<tokio::task::JoinHandle<Produced>>,
}

#[derive(Default)]
struct Produced {
    acknowledged: Vec<JobId>,
    failures: usize,
}

impl Load {
    fn start(client: &Client) -> Self {
        let (stop, acknowledged) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let producers = (0..PRODUCERS)
            .map(|_| tokio::spawn(produce(client.clone(), Arc::clone(&stop), Arc::clone(&acknowledged))))
            .collect();
        Self { stop, acknowledged, producers }
    }

    fn acknowledged(&self) -> usize {
        self.acknowledged.load(Ordering::SeqCst)
    }

    async fn stop(self) -> Produced {
        self.stop.store(true, Ordering::SeqCst);
        let mut all = Produced::default();
        for producer in self.producers {
            let one = producer.await.unwrap();
            all.acknowledged.extend(one.acknowledged);
            all.failures += one.failures;
        }
        all
    }
}

impl Produced {
    /// Stores one job, however often that has to be asked.
    async fn enqueue(&mut self, client: &Client, act: Act) {
        let key = crate::stage::unique();
        let stored = loop {
            match client.enqueue(act.clone()).idempotency_key(&key).await {
                Ok(stored) => break stored,
                Err(StoreError::Unavailable(..)) => self.failures += 1,
                Err(error) => panic!("{error}"),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        self.acknowledged.push(stored.job());
    }
}

async fn produce(client: Client, stop: Arc<AtomicBool>, acknowledged: Arc<AtomicUsize>) -> Produced {
    let mut produced = Produced::default();
    while !stop.load(Ordering::SeqCst) {
        produced.enqueue(&client, Act::Wait { ms: 20 }).await;
        acknowledged.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    produced
}
