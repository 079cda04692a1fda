//! `tenure runs`: many jobs with one goal, and how far they are.

mod cancel;
mod list;
mod next;
mod show;
mod watch;

use clap::{Args, Subcommand};
use tenure_core::RunState;
use tenure_core::run::Fan;
use tenure_store::StoreError;
use tenure_store::run::RunRecord;

use super::{Answer, Session};
use crate::bar::bar;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure runs list --open             what goes on, and how far it is
  tenure runs show ID                 one run, its partitions, and what to do when it failed
  tenure runs watch ID                follow it until it ends: exit code 0 if it succeeds, 1 if not
  tenure runs cancel ID --reason 'wrong catalogue'

A run has members: partitions, which are streams of pages, and items, which are jobs of their own.
Its consolidate is the one job that waits for all of them. `tenure partitions` lets single partitions go on.
Workers count what the jobs of a run say; while none is there, the counts stand still.";

/// List, show, watch and cancel runs: many jobs with one goal
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    what: RunsCommand,
}

#[derive(Debug, Subcommand)]
enum RunsCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Watch(watch::WatchArgs),
    Cancel(cancel::CancelArgs),
}

pub(crate) async fn run(args: RunsArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.what {
        RunsCommand::List(args) => list::run(args, session).await,
        RunsCommand::Show(args) => show::run(args, session).await,
        RunsCommand::Watch(args) => watch::run(args, session).await,
        RunsCommand::Cancel(args) => cancel::run(args, session).await,
    }
}

/// For clap: a state of runs and partitions.
pub(super) fn state(word: &str) -> Result<RunState, String> {
    let words: Vec<&str> = RunState::ALL.iter().map(|state| state.as_str()).collect();
    RunState::parse(word).ok_or_else(|| format!("states are {}", words.join(", ")))
}

/// Of a run nobody knows it is worth saying where the known ones are.
pub(super) fn unknown(error: StoreError) -> Failure {
    let is_unknown = matches!(error, StoreError::NotFound(_));
    let failure = Failure::from(error);
    if is_unknown { failure.hint("`tenure runs list` shows the runs.") } else { failure }
}

/// How far a run is, as a bar.
fn progress(record: &RunRecord, width: usize) -> String {
    bar(record.run.done, record.run.failed + record.run.canceled, record.run.total, width)
}

/// `6 of 10 done, 2 failed, 2 left`.
fn counts(record: &RunRecord) -> String {
    let run = &record.run;
    let mut said = vec![format!("{} of {} done", run.done, run.total)];
    said.extend(missing(record));
    if run.left() > 0 {
        said.push(format!("{} left", run.left()));
    }
    said.join(", ")
}

/// `2 failed, 1 canceled`, where there are any.
fn missing(record: &RunRecord) -> Option<String> {
    let counted = [(record.run.failed, "failed"), (record.run.canceled, "canceled")];
    let said: Vec<String> = counted.iter().filter(|(n, _)| *n > 0).map(|(n, how)| format!("{n} {how}")).collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// How the consolidate stands, in a few words.
fn consolidate(record: &RunRecord) -> String {
    let job = record.consolidate.map_or_else(String::new, |job| format!("  job {job}"));
    match record.run.fan {
        Fan::None if record.run.sealed => "none".to_owned(),
        Fan::None => "none yet: it may come when the run is sealed".to_owned(),
        Fan::Waiting => format!("waiting until all members are done{job}"),
        Fan::Skipped => format!("skipped, because members are missing{job}"),
        Fan::Open => format!("open: all members have ended, it may run{job}"),
        Fan::Ended(how) => format!("{}{job}", how.as_str()),
    }
}
