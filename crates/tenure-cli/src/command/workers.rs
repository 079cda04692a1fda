//! `tenure workers`: the processes that run jobs.

mod list;
mod order;

use clap::{Args, Subcommand};
use tenure_store::worker::Order;

use super::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure workers list          who works, where, on which queues
  tenure workers list --all    also those that stopped or were not seen for 30s
  tenure workers quiet 17      claim nothing more, finish what is there, stay
  tenure workers stop 17       finish what is there, and go
  tenure workers resume 17     claim again";

/// See who works, and tell workers what to do
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkersArgs {
    #[command(subcommand)]
    what: WorkersCommand,
}

#[derive(Debug, Subcommand)]
enum WorkersCommand {
    List(list::ListArgs),
    /// Let a worker claim nothing more and finish what it has
    #[command(after_help = "Examples:\n  tenure workers quiet 17 --reason 'before the deploy'")]
    Quiet(order::OrderArgs),
    /// Let a worker finish what it has, and go
    #[command(after_help = "Examples:\n  tenure workers stop 17")]
    Stop(order::OrderArgs),
    /// Let a quiet worker claim again
    #[command(after_help = "Examples:\n  tenure workers resume 17")]
    Resume(order::OrderArgs),
}

pub(crate) async fn run(args: WorkersArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.what {
        WorkersCommand::List(args) => list::run(&args, session).await,
        WorkersCommand::Quiet(args) => order::run(args, Order::Quiet, session).await,
        WorkersCommand::Stop(args) => order::run(args, Order::Stop, session).await,
        WorkersCommand::Resume(args) => order::run(args, Order::Work, session).await,
    }
}
