//! `tenure jobs watch`: a live view of queues and jobs, or one job until it ends.

mod job;
mod view;

use std::time::Duration;

use clap::Args;
use tenure_core::JobId;
use tenure_core::name::QueueName;

use crate::args::{TenantArg, every, job_id, page_size, queue, timeout};
use crate::command::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure jobs watch                            queues and the newest jobs, drawn anew each second
  tenure jobs watch --queue mail --every 5s
  tenure jobs watch --until-idle --timeout 1h  until nothing is due and nothing runs
  tenure jobs watch --json | jq .queues        one JSON object for each change
  tenure jobs watch ID --timeout 5m            follow one job: exit code 0 if it succeeds, 1 if not

Ctrl-C ends it. Where the output is no terminal, each change is a line.
The counts of a queue are of all tenants. OLDEST is how long the job that waits longest has been due.";

/// Watch queues and jobs, or follow one job until it ends
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WatchArgs {
    /// Follow this job until it ends
    #[arg(value_parser = job_id, conflicts_with_all = ["queue", "recent", "until_idle"])]
    id: Option<JobId>,
    /// Only this queue and its jobs
    #[arg(long, value_name = "NAME", value_parser = queue)]
    queue: Option<QueueName>,
    #[command(flatten)]
    tenant: TenantArg,
    /// How often to look
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = every)]
    every: Duration,
    /// The newest so many jobs, up to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = page_size)]
    recent: u32,
    /// End when nothing is due and nothing runs; what is scheduled for later does not count
    #[arg(long)]
    until_idle: bool,
    /// Give up after this long, with exit code 1; with an ID or --until-idle
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,
}

pub(super) async fn run(args: WatchArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.id {
        Some(id) => job::run(id, args, session).await,
        None if args.timeout.is_some() && !args.until_idle => {
            let message = "--timeout needs something to wait for: add an ID or --until-idle";
            Err(Failure::usage("usage", message))
        }
        None => view::run(args, session).await,
    }
}
