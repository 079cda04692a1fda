//! `tenure jobs`: look at jobs, end them, revive them, run them now.

mod cancel;
pub(super) mod list;
mod requeue;
mod run;
mod show;
mod watch;

use clap::{Args, Subcommand};
use tenure_core::State;

use super::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure jobs list --recent 20             the newest jobs
  tenure jobs list --stuck 5m              running, and silent for five minutes
  tenure jobs show ID                      one job and its attempts
  tenure jobs watch                        a live view of queues and jobs
  tenure jobs watch ID                     follow one job until it ends
  tenure jobs cancel ID                    end it
  tenure jobs requeue --state dead         revive every dead letter
  tenure jobs run ID                       a delayed job is due now";

/// List, show, watch, cancel, requeue and run jobs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct JobsArgs {
    #[command(subcommand)]
    what: JobsCommand,
}

#[derive(Debug, Subcommand)]
enum JobsCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Cancel(cancel::CancelArgs),
    Requeue(requeue::RequeueArgs),
    Run(run::RunArgs),
    Watch(watch::WatchArgs),
}

pub(crate) async fn run(args: JobsArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.what {
        JobsCommand::List(args) => list::run(args, session).await,
        JobsCommand::Show(args) => show::run(args, session).await,
        JobsCommand::Cancel(args) => cancel::run(args, session).await,
        JobsCommand::Requeue(args) => requeue::run(args, session).await,
        JobsCommand::Run(args) => run::run(args, session).await,
        JobsCommand::Watch(args) => watch::run(args, session).await,
    }
}

pub(crate) fn state(word: &str) -> Result<State, String> {
    let words: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    State::parse(word).ok_or_else(|| format!("states are {}", words.join(", ")))
}
