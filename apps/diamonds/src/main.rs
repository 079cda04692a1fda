//! `diamonds`: the product as a program of its own.

use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Parser, Subcommand};
use diamonds::settings::Settings;
use diamonds::work_item::MESSAGE_BYTES_MAX;
use diamonds::world::World;
use diamonds::{TABLES, deliver, monitor, nightly, schedule, worker};
use kit::program::At;
use kit::{BoxError, Env};
use tenure::{Client, Database, PartitionName, PartitionRecord, RunId};

const EXAMPLES: &str = "\
Examples:
  export DATABASE_URL=diamonds.db               a file here, or postgres://…
  diamonds world --advance-seconds 60 &         a simulated supplier of 200,000 stones that change
  diamonds world --revision 40 &                the same, when it goes on after it was stopped
  diamonds worker &                             until Ctrl-C; start as many as you like, kill any of them
  diamonds schedule                             read the whole catalogue now
  diamonds schedule --nightly '0 3 * * *'       and every night
  diamonds runs; diamonds partitions --active; diamonds partitions --stuck
  diamonds deliver message.json                 a WORK_ITEM of the old system; twice does no harm
  diamonds resume RUN PARTITION                 a partition that failed goes on where it stopped

Settings from the environment: DIAMONDS_SUPPLIER_URL (http://127.0.0.1:7402), DIAMONDS_LEASE_SECONDS (120),
DIAMONDS_PAGE_SECONDS (60), DIAMONDS_DELIVERIES (5), DIAMONDS_WINDOW_SECONDS (600), DIAMONDS_PAUSE_SECONDS (5),
DIAMONDS_PARTITION_SIZE (5000), DIAMONDS_PARTITIONS_MAX (99), DIAMONDS_SLOTS (8), DIAMONDS_GRACE_SECONDS (30),
DIAMONDS_MARKUP (a file; a built-in table), WORKER_ID.";

/// A supplier's catalogue, fetched page by page and published once
#[derive(Parser)]
#[command(name = "diamonds", after_help = EXAMPLES)]
struct Arguments {
    #[command(flatten)]
    at: At,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run jobs until told to stop
    Worker,
    /// Serve the simulated supplier until told to stop
    World {
        /// Stones at the beginning
        #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
        stones: u32,
        /// The same seed gives the same stones
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The revision to begin with: the one that it had when it was stopped
        #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100_000))]
        revision: u32,
        /// Where to listen, on this machine
        #[arg(long, default_value_t = 7_402)]
        port: u16,
        /// Make the next revision so often; 0: only when told by POST /advance
        #[arg(long, default_value_t = 0)]
        advance_seconds: u64,
    },
    /// Read the whole catalogue, now or every night
    Schedule {
        /// What ties the logs of the run together; its id unless given
        #[arg(long)]
        trace: Option<String>,
        /// A cron expression, in UTC
        #[arg(long, conflicts_with = "trace")]
        nightly: Option<String>,
    },
    /// Runs that have not ended, and how far they are
    Runs,
    /// Partitions, by run and name
    Partitions {
        /// Those that go on, the one that moved last first
        #[arg(long, required_unless_present = "stuck", conflicts_with = "stuck")]
        active: bool,
        /// Those that have not moved for ten minutes
        #[arg(long)]
        stuck: bool,
    },
    /// Take a WORK_ITEM message of the old system
    Deliver {
        /// A file with the message; - is the standard input
        message: PathBuf,
    },
    /// Let a partition that failed go on where it stopped
    Resume {
        /// Of which run
        run: RunId,
        /// Which
        partition: PartitionName,
    },
}

fn main() -> ExitCode {
    kit::program::run(|arguments: Arguments, env: Env| async move {
        let settings = Settings::read(&env)?;
        if let Command::World { stones, seed, revision, port, advance_seconds } = arguments.command {
            let world = World::at_revision(seed, stones, revision)?;
            return serve(&world, port, Duration::from_secs(advance_seconds)).await;
        }
        let database = arguments.at.open(&env, TABLES).await?;
        run(arguments.command, &database, &settings).await
    })
}

async fn run(command: Command, database: &Database, settings: &Settings) -> Result<(), BoxError> {
    let client = Client::new(database);
    match command {
        Command::Worker => {
            worker::build(database, settings).await?.run().await?;
        }
        Command::Schedule { nightly: Some(cron), .. } => nightly::set(&client, &cron).await?,
        Command::Schedule { trace, nightly: None } => println!("{}", schedule::ask(&client, trace).await?),
        Command::Runs => {
            for run in monitor::open_runs(&client).await? {
                let (id, stones, state) = (run.id, run.rows, run.run.state.as_str());
                let (done, total, failed) = (run.run.done, run.run.total, run.run.failed);
                println!("{id}  {state}  {done} of {total} partitions, {failed} failed, {stones} stones");
            }
        }
        Command::Partitions { stuck: true, .. } => monitor::stuck_partitions(&client).await?.iter().for_each(print),
        Command::Partitions { .. } => monitor::active_partitions(&client).await?.iter().for_each(print),
        Command::Deliver { message } => println!("{:?}", deliver::send(&client, settings, &read(&message)?).await?),
        Command::Resume { run, partition } => monitor::resume(database, &client, run, &partition).await?,
        Command::World { .. } => {}
    }
    Ok(())
}

async fn serve(world: &World, port: u16, every: Duration) -> Result<(), BoxError> {
    let latest = world.latest();
    println!("{} stones, revision {}", latest.count(diamonds::price_range::PriceRange::ALL), latest.revision());
    let advance = async {
        if every.is_zero() {
            std::future::pending::<()>().await;
        }
        loop {
            tokio::time::sleep(every).await;
            println!("{:?}", world.advance());
        }
    };
    tokio::select! {
        served = kit::serve(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), world.router()) => served,
        () = advance => Ok(()),
    }
}

/// A message, and not more of it than one may have.
fn read(path: &PathBuf) -> Result<Vec<u8>, BoxError> {
    let most = MESSAGE_BYTES_MAX as u64 + 1;
    let mut message = Vec::new();
    if path.as_os_str() == "-" {
        std::io::stdin().take(most).read_to_end(&mut message)?;
    } else {
        let file = std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
        file.take(most).read_to_end(&mut message)?;
    }
    Ok(message)
}

fn print(partition: &PartitionRecord) {
    let PartitionRecord { run, name, state, next_offset, rows, moved_at, .. } = partition;
    println!("{run}  {name}  {}  next offset {next_offset}, {rows} stones, moved at {moved_at}", state.as_str());
}
