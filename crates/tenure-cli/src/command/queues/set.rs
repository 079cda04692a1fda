//! `tenure queues set`: settings of a queue.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tenure_core::duration;
use tenure_core::name::QueueName;
use tenure_store::operate::SetQueue;

use crate::args::{limit, queue};
use crate::command::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure queues set mail --lease-ttl 5m

A worker renews its lease while it works. One that is silent for the lease time is taken for dead and its jobs
run elsewhere. Leases already given keep their time.";

/// Create a queue or change its settings
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SetArgs {
    /// The queue; a new one is created
    #[arg(value_name = "QUEUE", value_parser = queue)]
    queue: QueueName,
    /// How long a silent worker keeps its jobs: 1s to 1d
    #[arg(long, value_name = "DURATION", value_parser = lease_ttl)]
    lease_ttl: Duration,
}

pub(super) async fn run(args: SetArgs, session: &mut Session) -> Result<Answer, Failure> {
    let SetArgs { queue, lease_ttl } = args;
    let request = SetQueue { queue: queue.clone(), lease_ttl };
    request.check()?;
    session.store().await?.set_queue(request).await?;
    if session.out.is_json() {
        let lease_ttl_ms = u64::try_from(lease_ttl.as_millis()).unwrap_or(u64::MAX);
        session.out.json(&json!({ "queue": queue.as_str(), "lease_ttl_ms": lease_ttl_ms }))?;
    } else {
        session.out.line(format!("Queue {queue} has a lease time of {}.", duration::format(lease_ttl)));
    }
    Ok(Answer::Done)
}

fn lease_ttl(text: &str) -> Result<Duration, String> {
    duration::parse("lease_ttl", text).map_err(limit)
}
