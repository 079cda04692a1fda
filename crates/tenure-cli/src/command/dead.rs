//! `tenure dead`: dead letters by what killed them, and their way back.

mod list;
mod requeue;

use clap::{Args, Subcommand};
use tenure_core::State;
use tenure_core::name::{KindName, QueueName};
use tenure_store::record::{JobFilter, Sight};

use super::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure dead list                              dead letters by kind and error
  tenure dead list --each --kind mail.send      one by one
  tenure dead requeue --group 4f1c2a9e          revive one group, after the cause is fixed
  tenure dead requeue --all --dry-run           how many that would be

A dead letter is a job whose attempts or losses are used up, or that was buried by rule. It is kept for a person.";

/// See dead letters by what killed them, and revive them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DeadArgs {
    #[command(subcommand)]
    what: DeadCommand,
}

#[derive(Debug, Subcommand)]
enum DeadCommand {
    List(list::ListArgs),
    Requeue(requeue::RequeueArgs),
}

pub(crate) async fn run(args: DeadArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.what {
        DeadCommand::List(args) => list::run(args, session).await,
        DeadCommand::Requeue(args) => requeue::run(args, session).await,
    }
}

/// Dead jobs only.
fn filter(sight: Sight, queue: Option<QueueName>, kind: Option<KindName>) -> JobFilter {
    JobFilter { sight, state: Some(State::Dead), queue, kind, ..JobFilter::default() }
}
