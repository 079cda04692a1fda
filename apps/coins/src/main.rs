//! `coins`: the product as a program of its own.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use coins::intake::Intake;
use coins::settings::Settings;
use coins::source::{Shape, Source};
use coins::world::{self, World};
use coins::{TABLES, monitor, report, scrape, worker};
use kit::program::At;
use kit::{BoxError, Env, until};
use tenure::{Client, Database, JobId, row};

const EXAMPLES: &str = "\
Examples:
  export DATABASE_URL=coins.db                      a file here, or postgres://…
  coins world &                                     three simulated sources, entered with their addresses
  WORKER_ID=worker-1 coins worker &                 until Ctrl-C
  coins intake c1 1921 dollar --mintmark D --series Morgan --title '1921-D Morgan'
  coins ask c1 --wait                               one job for each source, and their end
  coins value c1
  coins jobs; coins sources; coins stuck            the three questions

Settings from the environment, where they act:
  worker         JOB_LOCK_TIMEOUT_SECONDS (300, for all workers), JOB_RECLAIM_SECONDS (60), HTTP_TIMEOUT_MS (10000),
                 CACHE_ENABLED (true), CACHE_TTL_SECONDS (3600), CACHE_PATH (coins-cache.db), WORKER_ID
  ask            RETRY_BASE_SECONDS (60)
  source, world  SOURCE_PAUSE_SECONDS (300)";

/// What is this coin worth? Prices from several sources, each within its limits
#[derive(Parser)]
#[command(name = "coins", after_help = EXAMPLES)]
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
    /// Serve the simulated sources until told to stop, and enter them
    World {
        /// Calls a minute that each of them allows
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=60_000))]
        per_minute: u32,
        /// Take so many seconds for each answer
        #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=600))]
        slow: u64,
    },
    /// Enter a source, or change it
    Source {
        /// Its name
        id: String,
        /// auction, market or pricelist
        shape: String,
        /// Where it is
        base_url: String,
        /// Calls a minute, of all workers together
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=60_000))]
        per_minute: u32,
        /// Ask it nothing for now
        #[arg(long)]
        disabled: bool,
    },
    /// Enter a coin
    Intake {
        /// A name for it
        id: String,
        /// The year on it
        year: u16,
        /// dollar, cent …
        denomination: String,
        /// Where it was struck
        #[arg(long, default_value = "")]
        mintmark: String,
        /// What collectors call it
        #[arg(long, default_value = "")]
        series: String,
        /// In your words
        #[arg(long)]
        title: String,
    },
    /// Ask every source about a coin
    Ask(Ask),
    /// What a coin is worth
    Value {
        /// Which coin
        intake: String,
    },
    /// The last twenty jobs
    Jobs,
    /// How the sources do
    Sources,
    /// Jobs that were not heard of for five minutes
    Stuck,
}

#[derive(Args)]
struct Ask {
    /// Which coin
    intake: String,
    /// Ask only this source, so many times at once: the seed's test of concurrency
    #[arg(long, requires = "times")]
    source: Option<String>,
    /// See --source
    #[arg(long, requires = "source", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    times: Option<u16>,
    /// Come back when all of them have ended: that needs a worker, and is given up when one takes two minutes
    #[arg(long)]
    wait: bool,
}

fn main() -> ExitCode {
    kit::program::run(|arguments: Arguments, env: Env| async move {
        let settings = Settings::read(&env)?;
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
        Command::World { per_minute, slow } => {
            serve(&client, database, settings, per_minute, Duration::from_secs(slow)).await?;
        }
        Command::Source { id, shape, base_url, per_minute, disabled } => {
            let shape: Shape = shape.parse()?;
            let source = Source { id, shape, base_url, enabled: !disabled, rate_limit_per_minute: per_minute };
            source.set(&client, database, settings.source_pause).await?;
        }
        Command::Intake { id, year, denomination, mintmark, series, title } => {
            let is_new = Intake { id, year, mintmark, denomination, series, title }.add(database).await?;
            println!("{}", if is_new { "entered" } else { "was there already, and stays as it was" });
        }
        Command::Ask(order) => ask(&client, database, settings, &order).await?,
        Command::Value { intake } => value(database, intake).await?,
        Command::Jobs => print!("{}", report::jobs(&monitor::recent_jobs(&client).await?)),
        Command::Stuck => print!("{}", report::stuck(&monitor::stuck_jobs(&client).await?)),
        Command::Sources => print!("{}", report::sources(&monitor::source_health(&client, database).await?)),
    }
    Ok(())
}

/// Restarted, it has other addresses; what somebody switched off meanwhile stays off.
async fn serve(
    client: &Client,
    database: &Database,
    settings: &Settings,
    per_minute: u32,
    slow: Duration,
) -> Result<(), BoxError> {
    let world = World::open(&world::coins()).await?;
    world.slow_down(slow);
    for source in world.sources(per_minute) {
        let enabled = Source::find(database, &source.id).await?.is_none_or(|known| known.enabled);
        let source = Source { enabled, ..source };
        source.set(client, database, settings.source_pause).await?;
        println!("{} at {}", source.id, source.base_url);
    }
    tokio::signal::ctrl_c().await?;
    Ok(())
}

async fn ask(client: &Client, database: &Database, settings: &Settings, order: &Ask) -> Result<(), BoxError> {
    let Ask { intake, source, times, wait } = order;
    let coin = Intake::find(database, intake).await?.ok_or_else(|| format!("intake `{intake}` is not known here"))?;
    let asked = match (source, times) {
        (Some(id), Some(times)) => {
            let source = Source::find(database, id).await?.ok_or_else(|| format!("source `{id}` is not known here"))?;
            scrape::ask_times(client, intake, &source, (*times).into(), settings.retry_base).await?
        }
        _ => scrape::ask(client, &coin, &Source::list(database).await?, settings.retry_base).await?,
    };
    if asked.is_empty() {
        return Err(
            "nobody was asked: no source is entered and enabled; `coins world` and `coins source` enter some".into()
        );
    }
    for job in &asked {
        println!("{}  {}", job.job(), if job.created().is_some() { "asked" } else { "was asked already" });
    }
    for job in asked.iter().filter(|_| *wait) {
        ended(client, job.job()).await?;
    }
    Ok(())
}

/// Waits until a job has ended, however.
async fn ended(client: &Client, job: JobId) -> Result<(), BoxError> {
    let state = until("the end of a job", async || {
        let state = client.show(job).await?.summary.state;
        Ok(state.is_terminal().then_some(state))
    });
    println!("{job}  {}", state.await?.as_str());
    Ok(())
}

async fn value(database: &Database, intake: String) -> Result<(), BoxError> {
    let select = "select cents, low_cents, high_cents, points, outliers from coin_valuation where intake_id = $1";
    match database.query(select, row![intake.as_str()]).await?.first() {
        Some(row) => {
            let cents = |column| row.get::<i64>(column).map(|cents| format!("{}.{:02}", cents / 100, cents % 100));
            let (value, low, high) = (cents("cents")?, cents("low_cents")?, cents("high_cents")?);
            let (points, outliers): (i64, i64) = (row.get("points")?, row.get("outliers")?);
            println!("{value} USD, between {low} and {high}, by {points} prices; {outliers} outliers left out");
        }
        None => println!("nothing is known of `{intake}` yet"),
    }
    Ok(())
}
