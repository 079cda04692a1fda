//! `tenure queues`: see the queues, pause them, set their lease time.

pub(super) mod list;
mod pause;
mod set;

use clap::{Args, Subcommand};

use super::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure queues list                          every queue and what is in it
  tenure queues pause mail --reason 'outage'  hand out nothing; running jobs go on
  tenure queues resume mail
  tenure queues set mail --lease-ttl 5m       how long a silent worker keeps its jobs";

/// List, pause, resume and set queues
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct QueuesArgs {
    #[command(subcommand)]
    what: QueuesCommand,
}

#[derive(Debug, Subcommand)]
enum QueuesCommand {
    List(list::ListArgs),
    /// Stop handing out jobs; running ones go on
    #[command(after_help = "Examples:\n  tenure queues pause mail --reason 'provider outage'")]
    Pause(pause::PauseArgs),
    /// Hand out jobs again
    #[command(after_help = "Examples:\n  tenure queues resume mail")]
    Resume(pause::PauseArgs),
    Set(set::SetArgs),
}

pub(crate) async fn run(args: QueuesArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.what {
        QueuesCommand::List(args) => list::run(&args, session).await,
        QueuesCommand::Pause(args) => pause::run(args, true, session).await,
        QueuesCommand::Resume(args) => pause::run(args, false, session).await,
        QueuesCommand::Set(args) => set::run(args, session).await,
    }
}
