//! The task runner as a program: `tasks worker`, `tasks add`, `tasks watch`, `tasks audit`, and its simulated `tasks world`.

use std::fmt::Display;
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use kit::program::At;
use kit::{BoxError, Env, program};
use tasks::report::{Sum, Sums, sums};
use tasks::task::{Digest, Fetch, Report, check_url, client};
use tasks::trace::Ear;
use tasks::usage::Usage;
use tasks::watch::Watch;
use tasks::worker::set_lease;
use tasks::{Settings, TABLES, World, audit, callbacks, worker};
use tenure::webhooks::EndpointError;
use tenure::{Database, Enqueue, StoreError};
use tokio::runtime::Builder;
use tracing_subscriber::filter::{LevelFilter, filter_fn};
use tracing_subscriber::layer::{Layer, SubscriberExt};

/// How often a watch looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Tasks added by one command.
const TIMES_MAX: u16 = 10_000;
/// The threads that send callbacks: their steps are not the task runner's.
const CALLBACK_THREADS: &str = "callbacks";
/// Whether steps are told.
static STATES: AtomicBool = AtomicBool::new(false);

const EXAMPLES: &str = "\
Examples:
  tasks world                                                   documents, and an API that is told
  tasks worker --database tasks.db --states                     every step of its loop as it is taken
  tasks add --database tasks.db fetch http://127.0.0.1:7600/documents/words-120
  tasks watch --database tasks.db                               workers, tasks and usage
  tasks audit --database tasks.db                               whether the record is whole; exit code 1 if not

Settings come from the environment: WORKER_ID, TASKS_SLOTS, TASKS_LEASE_SECONDS, TASKS_RENEW_SECONDS, TASKS_POLL_MS,
TASKS_RECOVERY_MS, TASKS_ERROR_WAIT_MS, TASKS_GRACE_SECONDS, TASKS_FETCH_SECONDS, TASKS_LOCAL, TASKS_API_URL,
TASKS_API_SECRET, TENURE_WEBHOOK_KEYS, TASKS_CALLBACK_SECONDS.";

/// A task runner whose worker loop is seen at work
#[derive(Parser)]
#[command(name = "tasks", after_help = EXAMPLES)]
struct Arguments {
    #[command(flatten)]
    at: At,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run tasks until told to stop
    Worker {
        /// Tell every step of the loop and of its tasks
        #[arg(long)]
        states: bool,
    },
    /// Open the simulated outside: documents, and the API that is told
    World {
        /// Where it listens
        #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7600")]
        listen: SocketAddr,
    },
    /// Add a task
    Add(Add),
    /// Show what workers and tasks do, until Ctrl-C
    Watch {
        /// Show how it is now, and go
        #[arg(long)]
        once: bool,
    },
    /// Check that the record is whole
    Audit,
}

#[derive(Args)]
struct Add {
    #[command(subcommand)]
    task: Task,
    /// Who is told how it ended; TASKS_API_URL unless given
    #[arg(long, value_name = "URL", global = true)]
    callback: Option<String>,
    /// Tell nobody
    #[arg(long, global = true, conflicts_with = "callback")]
    no_callback: bool,
    /// So many of it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=i64::from(TIMES_MAX)), global = true)]
    times: u16,
}

#[derive(Subcommand)]
enum Task {
    /// Fetch a document and keep it
    Fetch {
        /// Where it is
        url: String,
    },
    /// Hash a document that was fetched, and count its words
    Digest {
        /// Where it came from
        url: String,
    },
    /// Sum what the others have done
    Report,
}

fn main() -> ExitCode {
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_target(false).with_ansi(false);
    let ear = Ear::telling(|heard| {
        let is_ours = std::thread::current().name() != Some(CALLBACK_THREADS);
        if is_ours && STATES.load(Ordering::Relaxed) {
            // Whoever watched may be gone: no reason to stop.
            let _unseen = say(&heard.of);
        }
    });
    let subscriber = tracing_subscriber::registry()
        .with(log.with_filter(LevelFilter::INFO))
        .with(ear.with_filter(filter_fn(Ear::hears)));
    // Before anything else: the first step of the loop is heard.
    if let Err(error) = tracing::subscriber::set_global_default(subscriber) {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    program::run(|Arguments { at, command }: Arguments, env| async move {
        match command {
            Command::World { listen } => world(listen, &env).await,
            Command::Worker { states } => {
                STATES.store(states, Ordering::Relaxed);
                run(&at, &env).await
            }
            Command::Add(tasks) => add(&at.open(&env, TABLES).await?, &tasks, &env).await,
            Command::Watch { once } => watch(&at.open(&env, TABLES).await?, once).await,
            Command::Audit => check(&at.open(&env, TABLES).await?).await,
        }
    })
}

/// Runs tasks, and tells the API where one is set, until a signal.
async fn run(at: &At, env: &Env) -> Result<(), BoxError> {
    let settings = Settings::read(env)?;
    let database = &prepared(at, env, &settings).await?;
    let worker = worker(database, &settings)?.build()?;
    let Some(to) = &settings.callbacks else {
        worker.run().await?;
        return Ok(());
    };
    let courier = callbacks::courier(database, &settings, to)?.build()?;
    let (told, stopped) = tokio::sync::watch::channel(false);
    let until_told = move || {
        let mut stopped = stopped.clone();
        async move {
            let _told_or_gone = stopped.wait_for(|told| *told).await;
        }
    };
    let elsewhere = Builder::new_multi_thread().worker_threads(1).thread_name(CALLBACK_THREADS).enable_all().build()?;
    let own = database.clone();
    let sending = elsewhere.spawn(async move { callbacks::run_until(&own, courier, until_told).await });
    // Work that is ended by the courier is dropped: another worker recovers its task, as after a crash.
    let working = async { Ok(worker.run().await?) };
    let ended = callbacks::beside(working, async { sending.await? }, &told).await;
    elsewhere.shutdown_background();
    ended.map(drop)
}

/// The database with all that a worker needs. One that is away is waited for, as the loop would: a worker does not exit.
async fn prepared(at: &At, env: &Env, settings: &Settings) -> Result<Database, BoxError> {
    loop {
        let error = match prepare(at, env, settings).await {
            Err(error) if is_passing(&error) => error,
            prepared => return prepared,
        };
        let wait = settings.error_wait;
        tracing::warn!(error = %error, "the database is not there: trying again in {} s", wait.as_secs_f32());
        tokio::time::sleep(wait).await;
    }
}

async fn prepare(at: &At, env: &Env, settings: &Settings) -> Result<Database, BoxError> {
    let database = at.open(env, TABLES).await?;
    set_lease(&database, settings).await?;
    if let Some(to) = &settings.callbacks {
        callbacks::connect(&**client(&database).store(), settings, to).await?;
    }
    Ok(database)
}

fn is_passing(error: &BoxError) -> bool {
    let of_endpoint = match error.downcast_ref() {
        Some(EndpointError::Store(error)) => Some(error),
        _ => None,
    };
    error.downcast_ref().or(of_endpoint).is_some_and(StoreError::is_passing)
}

async fn world(listen: SocketAddr, env: &Env) -> Result<(), BoxError> {
    let secret =
        env.text("TASKS_API_SECRET").ok_or("TASKS_API_SECRET is not set: the API believes what is signed with it")?;
    let secret = secret.parse().map_err(|refused| format!("TASKS_API_SECRET: {refused}"))?;
    let world = World::open_at(listen, &secret).await?;
    say(&format_args!("documents: {}", world.document("words-120")))?;
    say(&format_args!("callbacks: {}", world.callback()))?;
    let mut shown = 0;
    loop {
        for told in world.api.wait_after(shown).await {
            say(&told)?;
            shown = told.number;
        }
    }
}

async fn add(database: &Database, Add { task, callback, no_callback, times }: &Add, env: &Env) -> Result<(), BoxError> {
    if let Task::Fetch { url } | Task::Digest { url } = task {
        check_url(url)?;
    }
    let client = client(database);
    let callback = callback.clone().or_else(|| env.text("TASKS_API_URL")).filter(|_| !no_callback);
    for _ in 0..*times {
        let added = match task {
            Task::Fetch { url } => client.enqueue(Fetch { url: url.clone() }),
            Task::Digest { url } => client.enqueue(Digest { url: url.clone() }),
            Task::Report => client.enqueue(Report {}),
        };
        let added = match &callback {
            Some(url) => Enqueue::callback_url(added, url),
            None => added,
        };
        say(&added.await?.job())?;
    }
    if callback.is_some() && !callbacks::is_connected(&**client.store()).await? {
        eprintln!("warning: nobody is told yet: no worker with TASKS_API_SECRET has run on this database");
    }
    Ok(())
}

async fn watch(database: &Database, once: bool) -> Result<(), BoxError> {
    let client = client(database);
    let mut watch = Watch::new(client.clone());
    let mut shown = Sums::new();
    loop {
        for line in watch.look().await? {
            say(&line)?;
        }
        let sums = sums(&**client.store()).await?;
        for (kind, Sum { tasks, usage: Usage { ms, bytes, units } }) in &sums {
            if shown.get(kind) != sums.get(kind) {
                say(&format_args!("usage  {kind:<12} {tasks} tasks, {ms} ms, {bytes} bytes, {units} units"))?;
            }
        }
        if once {
            return Ok(());
        }
        shown = sums;
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn check(database: &Database) -> Result<(), BoxError> {
    let found = audit(&**client(database).store()).await?;
    for finding in &found.findings {
        say(finding)?;
    }
    say(&found)?;
    match found.findings.len() {
        0 => Ok(()),
        many => Err(format!("the record is not whole: {many} findings").into()),
    }
}

/// A line on standard output.
fn say(line: &dyn Display) -> std::io::Result<()> {
    writeln!(std::io::stdout().lock(), "{line}")
}
