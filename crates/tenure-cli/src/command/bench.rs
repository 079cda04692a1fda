//! `tenure bench`: measure this machine, beside the raw floor of the same tables.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use tenure_bench::line::About;
use tenure_bench::{Arena, Line, MEASURES, Measure, Place, Size, page};
use tenure_postgres::{PgOptions, PgStore};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::Store;

use super::Answer;
use crate::args::Global;
use crate::failure::{self, Failure, exit};
use crate::output::Output;
use crate::progress::Progress;
use crate::settings::{Location, database_of_flags};

const EXAMPLES: &str = "\
Examples:
  tenure bench --quick                             SQLite files in a temporary directory, less than a minute
  tenure bench --postgres-local --html bench.html  a private PostgreSQL, removed afterwards; a page with plots
  tenure --database postgres://localhost/postgres bench --measure drain --rounds 5
                                                   databases of its own on your server, dropped afterwards

Measures: enqueue_single, enqueue_bulk, enqueue_http, drain, drain_10, drain_mixed, latency, drain_two, drain_pinned,
drain_backlog, drain_gated, claim_many_gates, dashboard_pages.

On a terminal it prints a table, elsewhere and with --json one line of JSON for each measure. The ratio is what
to look at: 1 is as fast as plain SQL on the same tables, with no checks, no history and no handlers. One round
on a busy machine can be off by half: take three.";

/// Measure enqueues, drains and latency beside the raw floor
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// sqlite: temporary files, the default without --database; or postgres: the server of --database
    #[arg(long, value_name = "STORE", value_parser = ["sqlite", "postgres"], hide_possible_values = true)]
    store: Option<String>,
    /// Start a private PostgreSQL from the system's programs; its commits wait for the disk
    #[arg(long, conflicts_with = "store")]
    postgres_local: bool,
    /// Only this measure; may be repeated
    #[arg(long = "measure", value_name = "NAME")]
    measures: Vec<Measure>,
    /// Few jobs and one round: all measures in less than a minute
    #[arg(long)]
    quick: bool,
    /// Rounds of each measure, whose medians are told; 3, or 1 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: Option<u32>,
    /// Write a page with plots
    #[arg(long, value_name = "PATH")]
    html: Option<PathBuf>,
}

/// One of two processes that drain together
#[derive(Debug, Args)]
pub(crate) struct BenchPartArgs {}

pub(crate) fn run(args: &BenchArgs, global: &Global, out: &mut Output) -> Result<Answer, Failure> {
    let place = place(args, global)?;
    block_on(measure_all(args, &place, out))?
}

pub(crate) fn run_part() -> Result<Answer, Failure> {
    block_on(async {
        let address = std::env::var(tenure_bench::measure::PART_STORE)
            .map_err(|_| Failure::usage("bench-part", "this command is for `tenure bench` itself"))?;
        let store: Arc<dyn Store> = match address.contains("://") {
            true => Arc::new(PgStore::connect(&address, PgOptions::default()).await?),
            false => Arc::new(SqliteStore::open(&address, SqliteOptions::default())?),
        };
        tenure_bench::measure::run_part(&store).await.map_err(failed)?;
        Ok(Answer::Done)
    })?
}

async fn measure_all(args: &BenchArgs, place: &Place, out: &mut Output) -> Result<Answer, Failure> {
    if let Some(path) = &args.html {
        // Before anything is measured: minutes later would be late to hear that it cannot be written.
        write_page(path, "")?;
    }
    let arena = Arena::open(place).await.map_err(failed)?;
    let measured = measure_in(&arena, args, out).await;
    // Whatever happened, nothing is left behind.
    arena.close().await.map_err(failed)?;
    let (lines, about) = measured?;
    if let Some(path) = &args.html {
        write_page(path, &page::page(&lines, &about))?;
    }
    Ok(Answer::Done)
}

fn write_page(path: &Path, text: &str) -> Result<(), Failure> {
    let refuse = || Failure::new("html", exit::REFUSED, format!("{} cannot be written", path.display()));
    std::fs::write(path, text).map_err(|error| refuse().caused_by(&error))
}

async fn measure_in(arena: &Arena, args: &BenchArgs, out: &mut Output) -> Result<(Vec<Line>, About), Failure> {
    let size = if args.quick { Size::Quick } else { Size::Full };
    let rounds = args.rounds.unwrap_or(if args.quick { 1 } else { 3 });
    let measures = if args.measures.is_empty() { MEASURES.to_vec() } else { args.measures.clone() };
    let about = About::here(arena.version().await.map_err(failed)?);
    if out.is_live() {
        out.line(format!("tenure {} {} on {}, {}", about.version, about.commit, about.server, about.machine));
        out.line(format!("{:<15} {:>14} {:>12} {:>6}  {}", "MEASURE", "TENURE", "FLOOR", "RATIO", "WHAT"));
        out.flush()?;
    }
    let mut lines = Vec::new();
    for measure in measures {
        let progress = Progress::of_things(Some(rounds.into()), measure.name());
        let line = measure.run(arena, size, rounds, |round| progress.set(u64::from(round) - 1)).await;
        drop(progress);
        let line = line.map_err(failed)?;
        match out.is_live() {
            true => out.line(for_people(measure, &line)),
            false => out.json(&line.to_json(&about))?,
        }
        out.flush()?;
        lines.push(line);
    }
    Ok((lines, about))
}

fn for_people(measure: Measure, line: &Line) -> String {
    let median = &line.median;
    let unit = |value: f64| match median.rate {
        Some(_) => format!("{}/s", page::thousands(value)),
        None => format!("{value:.2} ms"),
    };
    let ours = median.rate.or(median.p50_ms).map_or_else(String::new, unit);
    let floor = median.floor.map_or_else(String::new, unit);
    let ratio = median.ratio().map_or_else(String::new, |ratio| format!("{ratio:.2}"));
    let mut notes = vec![measure.about().to_owned()];
    notes.extend(median.of_drain().map(|part| format!("{part:.2} of drain")));
    notes.extend(median.wal_per_job.map(|bytes| format!("{bytes:.0} B of WAL a job")));
    notes.extend(median.p99_ms.map(|ms| format!("p99 {ms:.2} ms")));
    format!("{:<15} {ours:>14} {floor:>12} {ratio:>6}  {}", measure.name(), notes.join("; "))
}

fn place(args: &BenchArgs, global: &Global) -> Result<Place, Failure> {
    let mut warnings = Vec::new();
    let database = database_of_flags(global, &mut warnings)?.map(|said| said.value);
    for warning in &warnings {
        failure::warn(warning, global.json);
    }
    match (database, args.store.as_deref(), args.postgres_local) {
        (Some(_), _, true) => {
            Err(Failure::usage("bench", "--postgres-local starts a server of its own: leave --database out"))
        }
        (None, _, true) => Ok(Place::PostgresLocal),
        (Some(Location::Postgres(url)), None | Some("postgres"), false) => Ok(Place::Database(url)),
        (Some(_), _, false) => Err(Failure::usage(
            "bench",
            "--database names a PostgreSQL here: postgres://…; SQLite is measured on files of its own",
        )),
        (None, Some("postgres"), false) => {
            Err(Failure::usage("bench", "--store postgres needs --database URL, or say --postgres-local"))
        }
        (None, _, false) => Ok(Place::Sqlite),
    }
}

fn block_on<T>(work: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new("runtime", exit::STORE, "no runtime").caused_by(&error))?;
    Ok(runtime.block_on(work))
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn failed(error: anyhow::Error) -> Failure {
    Failure::new("bench", exit::STORE, format!("{error:#}"))
}
