//! `tenure queues set`: settings of a queue.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tenure_core::duration;
use tenure_core::name::QueueName;
use tenure_store::operate::{LEASE_TTL_DEFAULT, Quota, SetQueue};

use crate::args::{limit, queue};
use crate::command::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure queues set mail --lease-ttl 5m
  tenure queues set mail --fair true        each tenant has a line of its own; a flood of one starves nobody
  tenure queues set mail --quota 10000      at most so many pending jobs, of each tenant where the queue is fair
  tenure queues set mail --quota none       as many as come

A worker renews its lease while it works. One that is silent for the lease time is taken for dead and its jobs
run elsewhere. Leases already given keep their time.
In a fair queue a tenant's share is the weight of its rule: tenure gates set tenant:acme --weight 3";

/// Create a queue or change its settings
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SetArgs {
    /// The queue; a new one is created
    #[arg(value_name = "QUEUE", value_parser = queue)]
    queue: QueueName,
    /// How long a silent worker keeps its jobs: 1s to 1d
    #[arg(long, value_name = "DURATION", value_parser = lease_ttl, required_unless_present_any = ["fair", "quota"])]
    lease_ttl: Option<Duration>,
    /// Serve tenants in turn, each from a line of its own
    #[arg(long, value_name = "BOOL")]
    fair: Option<bool>,
    /// Refuse an enqueue when so many jobs are pending: 1 to 100000, or none
    #[arg(long, value_name = "JOBS", value_parser = quota)]
    quota: Option<Quota>,
}

pub(super) async fn run(args: SetArgs, session: &mut Session) -> Result<Answer, Failure> {
    let SetArgs { queue, lease_ttl, fair, quota } = args;
    SetQueue::new(queue.clone(), lease_ttl.unwrap_or(LEASE_TTL_DEFAULT)).check()?;
    let store = session.store_to_add().await?;
    let known = store.list_queues().await?.into_iter().find(|known| known.name == queue);
    let lease_ttl = lease_ttl.unwrap_or_else(|| known.map_or(LEASE_TTL_DEFAULT, |queue| queue.lease_ttl));
    store.set_queue(SetQueue { fair, quota, ..SetQueue::new(queue.clone(), lease_ttl) }).await?;
    if session.out.is_json() {
        let lease_ttl_ms = u64::try_from(lease_ttl.as_millis()).unwrap_or(u64::MAX);
        let mut answer = json!({ "queue": queue.as_str(), "lease_ttl_ms": lease_ttl_ms });
        if let Some(fair) = fair {
            answer["fair"] = fair.into();
        }
        if let Some(quota) = quota {
            answer["quota"] = quota.pending().into();
        }
        session.out.json(&answer)?;
    } else {
        let lines = match fair {
            Some(true) => ", and each tenant has a line of its own",
            Some(false) => ", and one line for all tenants",
            None => "",
        };
        let quota = match quota {
            Some(Quota::Unlimited) => ", and no quota".to_owned(),
            Some(Quota::Pending(quota)) => format!(", and a quota of {quota} pending jobs"),
            None => String::new(),
        };
        session.out.line(format!("Queue {queue} has a lease time of {}{lines}{quota}.", duration::format(lease_ttl)));
    }
    Ok(Answer::Done)
}

fn quota(text: &str) -> Result<Quota, String> {
    text.parse().map_err(limit)
}

fn lease_ttl(text: &str) -> Result<Duration, String> {
    duration::parse("lease_ttl", text).map_err(limit)
}
