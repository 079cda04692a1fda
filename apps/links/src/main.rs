//! `links`: the product as a program of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use kit::program::At;
use kit::{BoxError, Env};
use links::api::{Api, router};
use links::bookmarks::{self, Limits};
use links::import::{self, Import};
use links::report::Report;
use links::world::World;
use links::{Settings, TABLES, worker, world};
use tenure::telemetry::{Options, Telemetry};
use tenure::{Client, Database};

const EXAMPLES: &str = "\
Examples:
  export DATABASE_URL=links.db LINKS_PROXY=127.0.0.1:7403
  links world --bookmarks sample.html &             a simulated web, and an export that names its sites
  links worker &                                    until Ctrl-C
  links import sample.html --user ada --wait
  links report --days 7                             failing domains, candidates for blocking
  links serve                                       imports over HTTP, on 127.0.0.1:7401
  curl --header 'X-User: ada' --data-binary @sample.html 127.0.0.1:7401/imports

Settings from the environment: LINKS_CONCURRENCY (10), LINKS_PER_DOMAIN (2), LINKS_RETRY_SECONDS (300),
LINKS_LEASE_SECONDS (600), LINKS_FETCH_TIMEOUT_MS (10000), LINKS_ROBOTS_SECONDS (3600), LINKS_SETTLE_MS (1000),
LINKS_PROXY, SENTRY_DSN, WORKER_ID.";

/// How often an import is looked at by who waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Bookmarks of Chrome, each link enriched once
#[derive(Parser)]
#[command(name = "links", after_help = EXAMPLES)]
struct Arguments {
    #[command(flatten)]
    at: At,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Enrich links until told to stop
    Worker,
    /// Answer users over HTTP until told to stop
    Serve {
        /// Where, on this machine: for others something must stand before it that says who users are
        #[arg(long, default_value = "127.0.0.1:7401")]
        listen: SocketAddr,
    },
    /// Serve the simulated web, as a proxy, until told to stop
    World {
        /// Where
        #[arg(long, default_value = "127.0.0.1:7403")]
        listen: SocketAddr,
        /// Write an export that names its sites
        #[arg(long, value_name = "FILE")]
        bookmarks: Option<PathBuf>,
    },
    /// Import an export of Chrome
    Import {
        /// The export
        file: PathBuf,
        /// Whose it is
        #[arg(long)]
        user: String,
        /// Wait for its end: somewhere a worker must run
        #[arg(long)]
        wait: bool,
    },
    /// Which domains failed most lately, and which are candidates for blocking
    Report {
        /// How many days back
        #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..=3_650))]
        days: u16,
    },
}

fn main() -> ExitCode {
    kit::program::run(|Arguments { at, command }: Arguments, env: Env| async move {
        let settings = Settings::read(&env)?;
        let open = async || at.open(&env, TABLES).await;
        match command {
            Command::World { listen, bookmarks } => serve_world(listen, bookmarks).await,
            Command::Worker => work(&open().await?, &settings).await,
            Command::Serve { listen } => serve(open().await?, settings, listen).await,
            Command::Import { file, user, wait } => import_file(&open().await?, &settings, &file, &user, wait).await,
            Command::Report { days } => report(&open().await?, days).await,
        }
    })
}

async fn work(database: &Database, settings: &Settings) -> Result<(), BoxError> {
    let sentry_dsn = settings.sentry_dsn.clone();
    let options = Options { sentry_dsn, service_name: "links".to_owned(), ..Options::default() };
    // It has a runtime of its own, which must not begin or end inside of ours.
    let telemetry = tokio::task::spawn_blocking(move || Telemetry::start(&options)).await??;
    let ran = worker::build(database, settings, telemetry.observer()).await?.run().await;
    tokio::task::spawn_blocking(move || telemetry.close()).await?;
    ran?;
    Ok(())
}

async fn serve(database: Database, settings: Settings, listen: SocketAddr) -> Result<(), BoxError> {
    let client = Client::new(&database);
    kit::serve(listen, router(Api { database, client, settings, limits: Limits::default() })).await
}

async fn serve_world(listen: SocketAddr, bookmarks: Option<PathBuf>) -> Result<(), BoxError> {
    if let Some(file) = bookmarks {
        std::fs::write(&file, world::bookmarks(100)).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let world = World::open_at(listen).await?;
    println!("a simulated web: LINKS_PROXY={}", world.proxy());
    tokio::signal::ctrl_c().await?;
    Ok(())
}

async fn import_file(
    database: &Database,
    settings: &Settings,
    file: &Path,
    user: &str,
    wait: bool,
) -> Result<(), BoxError> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let found = bookmarks::parse(&bytes, &Limits::default())?;
    let client = Client::new(database);
    let id = import::store(database, &client, settings, user, found).await?.to_string();
    let import = Import::find(&client, database, user, &id).await?.ok_or("the import is gone")?;
    println!("import {id}: {} links, {} skipped, {} unreadable", import.total_items, import.skipped, import.unreadable);
    match wait {
        true => watch(&client, database, settings, import).await,
        false => Ok(()),
    }
}

/// Tells of every step of an import until it is over, however long that takes.
async fn watch(client: &Client, database: &Database, settings: &Settings, first: Import) -> Result<(), BoxError> {
    let (user, id) = (first.user.clone(), first.id.clone());
    let step = |import: &Import| (import.status, import.processed_items, import.failed_items);
    let mut told = step(&first);
    println!("waiting for its links, by a worker; one that fails is tried again after {} s", settings.retry.as_secs());
    loop {
        let import = Import::find(client, database, &user, &id).await?.ok_or("the import is gone")?;
        if step(&import) != told {
            told = step(&import);
            let Import { status, processed_items, total_items, failed_items, .. } = &import;
            println!("{status}: {processed_items} of {total_items} links, {failed_items} failed");
        }
        if import.finished_at.is_some() {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn report(database: &Database, days: u16) -> Result<(), BoxError> {
    let within = Duration::from_secs(86_400 * u64::from(days));
    let report = Report::read(&Client::new(database), database, within).await?;
    println!("{:40} {:>8}  last", "failing domain", "failures");
    for it in &report.failing {
        println!("{:40} {:>8}  {}", it.domain, it.failures, it.last_at);
    }
    println!("\n{:40} {:10} {:>5}  {:30} last job", "block candidate", "reason", "count", "last seen");
    for it in &report.block_candidates {
        println!("{:40} {:10} {:>5}  {:30} {}", it.domain, it.reason, it.count, it.last_seen, it.last_job);
    }
    Ok(())
}
