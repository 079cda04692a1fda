//! `tenure-e2e-worker`: a worker process on the crate's public API, as a user would write one, that knows only `Act`.
//!
//! It ends with the process that started it: when nobody holds its standard input any more, it is gone.

use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use tenure_e2e::act::{Stagehand, act};
use tenure_e2e::ingest::{consolidate, ingest};
use tenure_e2e::sink::{Sink, charge};
use tenure_e2e::{Gates, Ledger, Place};
use tenure_postgres::Mode;
use tenure_rabbitmq::{Broker, Options};
use tenure_store::Store;
use tenure_worker::{Worker, signal};

#[derive(Parser)]
struct Flags {
    /// A Postgres URL or the path of a SQLite file.
    #[arg(long)]
    at: String,
    /// Where the ledger and the gates are.
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    name: String,
    /// A queue and its slots, `name=10`; may be said again.
    #[arg(long = "queue", default_value = "default=10")]
    queues: Vec<String>,
    /// Threads of the runtime that handlers run on.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    #[arg(long, default_value_t = 2_000)]
    grace_ms: u64,
    #[arg(long, default_value_t = 200)]
    poll_ms: u64,
    #[arg(long, default_value_t = 200)]
    reclaim_ms: u64,
    /// There is a pooler before Postgres that hands out a session per transaction.
    #[arg(long)]
    pooled: bool,
    /// A broker that wakes it, by its URL.
    #[arg(long)]
    broker: Option<String>,
    /// Once the store is open, a gate to wait for before the worker starts.
    #[arg(long)]
    start_gate: Option<String>,
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    std::thread::spawn(|| {
        let _end = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(3);
    });
    let threads = flags.threads;
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let worked = runtime.block_on(work(flags));
    // A handler that blocks its thread would keep the runtime, and with it the process.
    runtime.shutdown_background();
    match worked {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&*error),
    }
}

async fn work(flags: Flags) -> Result<(), Box<dyn std::error::Error>> {
    // From the first moment on: a store that does not answer must not keep a process that is told to stop.
    let stop = signal::first_then_exit_on_second()?;
    tokio::pin!(stop);
    println!("listening");
    let gates = Gates::new(&flags.dir)?;
    let store = tokio::select! {
        () = &mut stop => return Ok(()),
        store = open(&flags, &gates) => store,
    };
    println!("open");
    let ledger = Ledger::open(&flags.dir, &flags.name)?;
    let sink = match Place::parse(&flags.at) {
        Place::Postgres(url) => Sink::new(url),
        Place::Sqlite(_) => Sink::default(),
    };
    let hand = Stagehand { worker: flags.name.clone(), ledger, gates, sink };
    let mut builder = Worker::builder(store)
        .state(hand)
        .handle(act)
        .handle(charge)
        .handle(ingest)
        .handle(consolidate)
        .name(&flags.name);
    if let Some(url) = &flags.broker {
        builder = builder.waker(Arc::new(Broker::start(Options::new(url))?));
    }
    for queue in &flags.queues {
        let (name, slots) = queue.split_once('=').ok_or("a queue is name=slots")?;
        builder = builder.queue(name, slots.parse()?);
    }
    let worker = builder
        .grace(Duration::from_millis(flags.grace_ms))
        .poll_every(Duration::from_millis(flags.poll_ms))
        .reclaim_every(Duration::from_millis(flags.reclaim_ms))
        .build()?;
    println!("summary {:?}", worker.run_until(stop).await?);
    Ok(())
}

/// Opens the store, however long that takes.
async fn open(flags: &Flags, gates: &Gates) -> Arc<dyn Store> {
    let pause = || tokio::time::sleep(Duration::from_millis(200));
    let mode = if flags.pooled { Mode::Pooled } else { Mode::Direct };
    let store = loop {
        match Place::parse(&flags.at).open_as(mode).await {
            Ok(store) => break store,
            Err(error) => eprintln!("not open yet: {error}"),
        }
        pause().await;
    };
    while flags.start_gate.as_ref().is_some_and(|gate| !gates.is_open(gate, &flags.name)) {
        println!("waiting");
        pause().await;
    }
    store
}

fn failed(error: &dyn std::error::Error) -> ExitCode {
    eprintln!("tenure-e2e-worker: {error}");
    ExitCode::FAILURE
}
