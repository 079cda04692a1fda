//! The command line: global flags, the list of commands, and the values they share.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use tenure_core::gate::Pattern;
use tenure_core::name::{GateName, KindName, QueueName, TenantName};
use tenure_core::{Invalid, JobId, Priority, RunId};
use tenure_store::operate::BATCH_MAX;

use crate::command::{
    audit, bench, completions, config, dead, demo, dev, enqueue, gates, jobs, keys, migrate, operations, partitions,
    queues, runs, schedules, server, stats, tenants, usage, webhooks, worker, workers,
};
use crate::failure::{Failure, exit};
use crate::settings::WorkerFlags;
use crate::terminal;

const AFTER_HELP: &str = "\
Examples:
  tenure demo                                          watch jobs survive a kill -9; nothing is kept
  tenure enqueue invoice.send '{\"order\": 42}'          store a job
  tenure jobs list --recent 20                         see the newest jobs
  tenure jobs watch                                    see them move
  tenure dead list                                     what died, and of what
  tenure --database postgres://localhost/app migrate   set a Postgres database up

Where jobs are kept:
  flag > environment > tenure.toml > default, the first that says anything.
  flag         --database URL, --database-file PATH for a file that holds it, or --data-dir DIR for DIR/tenure.db
  environment  TENURE_DATABASE_URL, TENURE_DATABASE_FILE, DATABASE_URL, then TENURE_DATA_DIR
  tenure.toml  database, then data_dir; in this directory, or --config PATH, or TENURE_CONFIG
  default      an SQLite file in your user's data directory; `tenure config show` shows it
  A URL without a password takes it from PGPASSWORD, or from the file of PGPASSFILE or ~/.pgpass.

Exit codes:
  0    done
  1    refused, not found, or findings
  2    bad usage, input or settings
  3    the store is not available or not set up
  130  told to stop twice (tenure worker)";

/// Shorter and a look would be asked for before the one before it is answered.
const EVERY_MIN: Duration = Duration::from_millis(100);
const EVERY_MAX: Duration = Duration::from_secs(3_600);

/// Durable jobs on Postgres or on one embedded file.
#[derive(Debug, Parser)]
#[command(name = "tenure", version, after_help = AFTER_HELP, max_term_width = 110, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Where jobs are kept: postgres://… or an SQLite file
    #[arg(long, global = true, value_name = "URL", conflicts_with = "data_dir", help_heading = "Global options")]
    pub(crate) database: Option<String>,
    /// Read that URL from this file: a password in it stands in no process list
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        conflicts_with_all = ["database", "data_dir"],
        help_heading = "Global options"
    )]
    pub(crate) database_file: Option<PathBuf>,
    /// Keep jobs in tenure.db in this directory
    #[arg(long, global = true, value_name = "DIR", help_heading = "Global options")]
    pub(crate) data_dir: Option<String>,
    /// Pooler in front of Postgres: none, or transaction as in PgBouncer's pool_mode
    #[arg(long, global = true, value_name = "MODE", help_heading = "Global options")]
    pub(crate) pooler: Option<String>,
    /// Read settings from this file instead of ./tenure.toml
    #[arg(long, global = true, value_name = "PATH", help_heading = "Global options")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON, errors included
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) json: bool,
}

/// Every command; one more is one file and one line here.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::DemoArgs),
    Worker(Box<worker::WorkerArgs>),
    Server(Box<server::ServerArgs>),
    Dev(Box<dev::DevArgs>),
    Enqueue(Box<enqueue::EnqueueArgs>),
    Jobs(jobs::JobsArgs),
    Dead(dead::DeadArgs),
    Operations(operations::OperationsArgs),
    Queues(queues::QueuesArgs),
    Gates(gates::GatesArgs),
    Schedules(schedules::SchedulesArgs),
    Runs(runs::RunsArgs),
    Partitions(partitions::PartitionsArgs),
    Workers(workers::WorkersArgs),
    Tenants(tenants::TenantsArgs),
    Keys(keys::KeysArgs),
    Webhooks(Box<webhooks::WebhooksArgs>),
    Stats(stats::StatsArgs),
    Usage(usage::UsageArgs),
    Audit(audit::AuditArgs),
    Migrate(migrate::MigrateArgs),
    // Its name before there was more to say about settings.
    #[command(alias = "settings")]
    Config(config::ConfigArgs),
    Bench(bench::BenchArgs),
    #[command(name = tenure_bench::measure::PART, hide = true)]
    BenchPart(bench::BenchPartArgs),
    Completions(completions::CompletionsArgs),
    Help(HelpArgs),
    /// Print the version
    #[command(after_help = "Examples:\n  tenure version")]
    Version,
}

/// Print the help of a command
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tenure help\n  tenure help enqueue\n  tenure help jobs list")]
pub(crate) struct HelpArgs {
    /// The command, such as jobs list; without one the help of tenure
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

impl Command {
    /// What the command line says of workers, where a command has such flags.
    pub(crate) fn worker_flags(&self) -> WorkerFlags {
        match self {
            Self::Config(args) => args.worker_flags(),
            Self::Worker(args) => args.flags(),
            Self::Server(args) => args.flags(),
            Self::Dev(args) => args.flags(),
            _ => WorkerFlags::default(),
        }
    }
}

/// Whose jobs a command touches.
#[derive(Debug, Args)]
pub(crate) struct TenantArg {
    /// Only this tenant's jobs
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    pub(crate) tenant: Option<TenantName>,
}

/// Who does something, and why.
#[derive(Debug, Args)]
pub(crate) struct WordArgs {
    /// Why, for the journal
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    pub(crate) reason: Option<String>,
    /// Who, for the journal; your user name otherwise
    #[arg(long, value_name = "NAME", value_parser = actor)]
    pub(crate) actor: Option<String>,
}

/// Reads the command line. Help, version and bad usage are printed here and answered with their exit code.
pub(crate) fn parse() -> Result<Cli, ExitCode> {
    let parsed = Cli::try_parse().and_then(|cli| match &cli.command {
        // The same as the flags, so that both print the same.
        Command::Help(args) => Cli::try_parse_from(words(&args.command, "--help")),
        Command::Version => Cli::try_parse_from(words(&[], "--version")),
        _ => Ok(cli),
    });
    parsed.map_err(|error| {
        let asked = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        let wants_json = std::env::args_os().any(|arg| arg == "--json");
        if wants_json && !asked {
            let text = error.render().to_string();
            // The first paragraph says what is wrong; the usage after it is for people.
            let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
            Failure::new("usage", exit::USAGE, first.split_whitespace().collect::<Vec<_>>().join(" ")).print(true);
        } else {
            // A refused argument is repeated: it may be a name that was copied from somewhere.
            let text = terminal::shown(&error.render().to_string(), false);
            // A closed pipe (`tenure --help | head -1`) is no error.
            let _ = match error.use_stderr() {
                true => std::io::stderr().write_all(text.as_bytes()),
                false => std::io::stdout().write_all(text.as_bytes()),
            };
        }
        ExitCode::from(if asked { exit::DONE } else { exit::USAGE })
    })
}

/// The command line of `command` with a flag.
fn words<'a>(command: &'a [String], flag: &'a str) -> impl Iterator<Item = &'a str> {
    std::iter::once("tenure").chain(command.iter().map(String::as_str)).chain([flag])
}

/// For clap, which names the flag and the value itself: only what would have been accepted.
pub(crate) fn limit(invalid: Invalid) -> String {
    invalid.limit
}

pub(crate) fn tenant(text: &str) -> Result<TenantName, String> {
    text.parse().map_err(limit)
}

pub(crate) fn job_id(text: &str) -> Result<JobId, String> {
    text.parse().map_err(limit)
}

pub(crate) fn run_id(text: &str) -> Result<RunId, String> {
    text.parse().map_err(limit)
}

/// How many of a list: what one page of a store holds.
pub(crate) fn page_size(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| (1..=BATCH_MAX).contains(count));
    count.ok_or_else(|| format!("it is 1 to {BATCH_MAX}"))
}

/// How often a command that goes on looks.
pub(crate) fn every(text: &str) -> Result<Duration, String> {
    let every = tenure_core::duration::parse("every", text).map_err(limit)?;
    match (EVERY_MIN..=EVERY_MAX).contains(&every) {
        true => Ok(every),
        false => Err("it is 100ms to 1h".to_owned()),
    }
}

pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    tenure_core::duration::parse("timeout", text).map_err(limit)
}

pub(crate) fn queue(text: &str) -> Result<QueueName, String> {
    text.parse().map_err(limit)
}

pub(crate) fn gate(text: &str) -> Result<GateName, String> {
    text.parse().map_err(limit)
}

pub(crate) fn pattern(text: &str) -> Result<Pattern, String> {
    text.parse().map_err(limit)
}

pub(crate) fn priority(text: &str) -> Result<Priority, String> {
    text.parse().map_err(limit)
}

pub(crate) fn kind(text: &str) -> Result<KindName, String> {
    text.parse().map_err(limit)
}

fn reason(text: &str) -> Result<String, String> {
    tenure_core::name::check_text("reason", text).map_err(limit).map(|()| text.to_owned())
}

fn actor(text: &str) -> Result<String, String> {
    tenure_core::name::check_text("actor", text).map_err(limit).map(|()| text.to_owned())
}
