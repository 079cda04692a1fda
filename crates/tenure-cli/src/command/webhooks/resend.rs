//! `tenure webhooks resend`: one delivery again, or a range of an endpoint's.

use clap::Args;
use serde_json::json;
use tenure_core::{EndpointId, JobId, Timestamp};
use tenure_store::webhook::{DeliveryFilter, DeliveryState};
use tenure_webhooks::resend::{resend_one, resend_range};

use super::deliveries::{date, state};
use super::endpoint_id;
use crate::args::{TenantArg, WordArgs, job_id};
use crate::command::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure webhooks resend 01933c5e-7b5a-7000-8000-000000000002
  tenure webhooks resend --endpoint 01933c5e-7b5a-7000-8000-000000000001 --since 2026-11-15T09:00:00Z
  tenure webhooks resend --endpoint 01933c5e-7b5a-7000-8000-000000000001 --state delivered

Each is a new delivery with the same event id: a receiver that has it already drops it.";

/// Send a delivery again, or those of an endpoint that failed
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ResendArgs {
    /// DELIVERY in tenure webhooks deliveries
    #[arg(value_name = "DELIVERY", value_parser = job_id, required_unless_present = "endpoint", conflicts_with = "endpoint")]
    delivery: Option<JobId>,
    /// All of this endpoint that match, the newest first, at most 10,000
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoint_id)]
    endpoint: Option<EndpointId>,
    /// Only these: pending, delivered or failed [default: failed]
    #[arg(long, value_name = "STATE", value_parser = state, requires = "endpoint")]
    state: Option<DeliveryState>,
    /// Only those made then or later
    #[arg(long, value_name = "DATE", value_parser = date, requires = "endpoint")]
    since: Option<Timestamp>,
    /// Only those made before
    #[arg(long, value_name = "DATE", value_parser = date, requires = "endpoint")]
    until: Option<Timestamp>,
    /// Only deliveries older than this one
    #[arg(long, value_name = "DELIVERY", value_parser = job_id, requires = "endpoint")]
    before: Option<JobId>,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    word: WordArgs,
}

pub(super) async fn run(args: ResendArgs, session: &mut Session) -> Result<Answer, Failure> {
    let (sight, word) = (session.sight(args.tenant), session.word(args.word));
    let store = session.store().await?;
    if let Some(delivery) = args.delivery {
        let new = resend_one(&*store, sight, delivery, word).await?;
        match session.out.is_json() {
            true => session.out.json(&json!({ "id": new.to_string(), "resend_of": delivery.to_string() }))?,
            false => session.out.line(format!("Delivery {new} sends the event of {delivery} again.")),
        }
        return Ok(Answer::Done);
    }
    let filter = DeliveryFilter {
        endpoint: args.endpoint,
        state: Some(args.state.unwrap_or(DeliveryState::Failed)),
        since: args.since,
        until: args.until,
        before: args.before,
        ..DeliveryFilter::new(sight, 1)
    };
    let resent = resend_range(&*store, filter, word).await?;
    let more = resent.more_before.map(|before| before.to_string());
    if session.out.is_json() {
        session.out.json(&json!({ "resent": resent.count, "more_before": more }))?;
        return Ok(Answer::Done);
    }
    session.out.line(format!("{} sent again.", resent.count));
    if let Some(before) = more {
        session.out.line(format!("There are more: the same with --before {before}"));
    }
    Ok(Answer::Done)
}
