//! `tenure partitions list`: partitions that match, by run and name.

use std::time::Duration;

use clap::Args;
use tenure_core::name::PartitionName;
use tenure_core::{RunId, RunState, Timestamp};
use tenure_store::run::{PartitionFilter, PartitionRecord};

use super::name;
use crate::args::{TenantArg, limit, page_size, run_id};
use crate::bar::{NARROW, bar};
use crate::command::runs::{state, unknown};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table, shorten};
use tenure_server::moment;
use tenure_server::pretty::error_text;
use tenure_server::wire::run::PartitionLine;

/// Characters of an error in a list; `jobs show` has all of it.
const ERROR_CHARS_MAX: usize = 60;

const EXAMPLES: &str = "\
Examples:
  tenure partitions list --active               what goes on
  tenure partitions list --stuck 10m            what goes on, but has not moved for ten minutes
  tenure partitions list --run ID               those of one run
  tenure partitions list --run ID --after NAME  the page after the one that ended with NAME
  tenure partitions list --state failed --json  one JSON array

OFFSET is where the next page begins, JOB is its job. ROWS are of those expected, where somebody knows how many.";

/// List partitions, by run and name
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    /// Only those of this run
    #[arg(long, value_name = "ID", value_parser = run_id)]
    run: Option<RunId>,
    /// Only those that go on: queued and running ones
    #[arg(long, conflicts_with = "state")]
    active: bool,
    /// Only those that go on and have not moved for this long, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = stuck, conflicts_with = "state")]
    stuck: Option<Duration>,
    /// queued, running, succeeded, failed or canceled
    #[arg(long, value_parser = state)]
    state: Option<RunState>,
    #[command(flatten)]
    tenant: TenantArg,
    /// At most this many, up to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = page_size)]
    limit: u32,
    /// Only names after this one; with --run
    #[arg(long, value_name = "NAME", value_parser = name, requires = "run")]
    after: Option<PartitionName>,
}

pub(super) async fn run(args: ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let filter = PartitionFilter {
        sight: session.sight(args.tenant),
        run: args.run,
        active: args.active,
        stuck_for: args.stuck,
        state: args.state,
        after: args.run.zip(args.after),
        limit: args.limit,
    };
    let store = session.store().await?;
    if let Some(run) = filter.run {
        // An empty answer about a run that nobody knows would look like good news.
        store.show_run(&filter.sight, run).await.map_err(unknown)?;
    }
    let partitions = store.list_partitions(&filter).await?;
    if session.out.is_json() {
        session.out.json(&partitions.iter().map(PartitionLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if partitions.is_empty() {
        session.out.line(nothing(&filter));
        return Ok(Answer::Done);
    }
    session.out.table_with_note(table(&partitions, filter.run.is_none(), store.now().await?));
    if let Some(last) = partitions.last().filter(|_| partitions.len() == filter.limit as usize) {
        session.out.line(match filter.run {
            Some(_) => format!("\nThere may be more: add --after {}", last.name),
            None => format!("\nThere may be more: add --limit, or --run {} --after {}", last.run, last.name),
        });
    }
    Ok(Answer::Done)
}

/// What an empty list means.
fn nothing(filter: &PartitionFilter) -> String {
    match (filter.stuck_for, filter.active) {
        _ if filter.after.is_some() => "No more partitions.".to_owned(),
        (Some(stuck), _) => {
            format!("No partition is stuck: all that go on moved within {}.", tenure_core::duration::format(stuck))
        }
        (None, true) => "No partition goes on.".to_owned(),
        (None, false) => "No such partitions.".to_owned(),
    }
}

/// Also what `runs show` and `runs watch` show, where the run is known.
pub(crate) fn table(partitions: &[PartitionRecord], with_run: bool, now: Timestamp) -> Table {
    let mut table =
        Table::new(&["RUN", "PARTITION", "STATE", "PROGRESS", "ROWS", "OFFSET", "MOVED", "JOB", "LAST ERROR"]);
    for partition in partitions {
        let paint = Paint::of_run(partition.state);
        let error = partition.last_error.as_ref().filter(|_| partition.state != RunState::Succeeded);
        let expected = partition.expected;
        table.row(vec![
            if with_run { partition.run.to_string().into() } else { Cell::default() },
            partition.name.as_str().into(),
            Cell::painted(partition.state.as_str(), paint),
            Cell::painted(progress(partition), paint),
            match expected {
                Some(expected) => Cell::number(format_args!("{}/{expected}", partition.rows)),
                None => Cell::number(partition.rows),
            },
            Cell::number(partition.next_offset),
            Cell::dim(moment::relative(partition.moved_at, now)),
            Cell::dim(partition.job.to_string()),
            error.map_or_else(String::new, |error| shorten(&error_text(error), ERROR_CHARS_MAX)).into(),
        ]);
    }
    table
}

/// A bar, where somebody knows how many rows there will be. That is a guess: what has succeeded is complete.
fn progress(partition: &PartitionRecord) -> String {
    let Some(expected) = partition.expected else { return String::new() };
    match partition.state {
        RunState::Succeeded => bar(1, 0, 1, NARROW),
        _ => bar(partition.rows, 0, expected, NARROW),
    }
}

fn stuck(text: &str) -> Result<Duration, String> {
    tenure_core::duration::parse("stuck", text).map_err(limit)
}
