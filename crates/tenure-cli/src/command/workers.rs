//! `tenure workers`: the processes that run jobs.

mod list;

use clap::{Args, Subcommand};

use super::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure workers list          who works, where, on which queues
  tenure workers list --all    also those that stopped or were not seen for 30s";

/// See who works
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WorkersArgs {
    #[command(subcommand)]
    what: WorkersCommand,
}

#[derive(Debug, Subcommand)]
enum WorkersCommand {
    List(list::ListArgs),
}

pub(crate) async fn run(args: WorkersArgs, session: &mut Session) -> Result<Answer, Failure> {
    let WorkersCommand::List(args) = args.what;
    list::run(&args, session).await
}
