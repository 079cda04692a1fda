//! `tenure webhooks deliveries` and `show`: what was told, and what came of it.

use clap::Args;
use serde_json::Value;
use tenure_core::{EndpointId, JobId, Timestamp};
use tenure_server::wire::webhook::{DeliveryDocument, DeliveryLine};
use tenure_store::webhook::{DeliveryFilter, DeliveryState};

use super::endpoint_id;
use crate::args::{TenantArg, job_id, limit, page_size};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table, printable};
use tenure_server::moment;

const EXAMPLES: &str = "\
Examples:
  tenure webhooks deliveries
  tenure webhooks deliveries --state failed --since 2026-11-15T00:00:00Z
  tenure webhooks show 01933c5e-7b5a-7000-8000-000000000002      one of them in full";
const SHOW: &str = "\
Examples:
  tenure webhooks show 01933c5e-7b5a-7000-8000-000000000002
  tenure webhooks show 01933c5e-7b5a-7000-8000-000000000002 --json

A delivery's id is that of the job that sends it: tenure jobs show says the same of its attempts.";

/// List deliveries, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DeliveriesArgs {
    /// Only to this endpoint
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoint_id)]
    endpoint: Option<EndpointId>,
    /// Only these: pending, delivered or failed
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<DeliveryState>,
    /// Only those made then or later
    #[arg(long, value_name = "DATE", value_parser = date)]
    since: Option<Timestamp>,
    /// Only those made before
    #[arg(long, value_name = "DATE", value_parser = date)]
    until: Option<Timestamp>,
    /// Only deliveries older than this one
    #[arg(long, value_name = "DELIVERY", value_parser = job_id)]
    before: Option<JobId>,
    /// At most this many
    #[arg(long, value_name = "N", value_parser = page_size, default_value = "20")]
    limit: u32,
    #[command(flatten)]
    tenant: TenantArg,
}

/// Show one delivery: its body, and what came of each try
#[derive(Debug, Args)]
#[command(after_help = SHOW)]
pub(super) struct ShowArgs {
    /// DELIVERY in tenure webhooks deliveries
    #[arg(value_name = "DELIVERY", value_parser = job_id)]
    delivery: JobId,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: DeliveriesArgs, session: &mut Session) -> Result<Answer, Failure> {
    let DeliveriesArgs { endpoint, state, since, until, before, limit, tenant } = args;
    let filter = DeliveryFilter { sight: session.sight(tenant), endpoint, state, since, until, before, limit };
    let store = session.store().await?;
    let deliveries = store.list_deliveries(&filter).await?;
    if session.out.is_json() {
        session.out.json(&deliveries.iter().map(DeliveryLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if deliveries.is_empty() {
        session.out.line("No deliveries.");
        return Ok(Answer::Done);
    }
    let now = store.now().await?;
    let mut table = Table::new(&["DELIVERY", "STATE", "EVENT", "OF", "TRIES", "MADE"]);
    for delivery in &deliveries {
        table.row(vec![
            delivery.job.to_string().into(),
            state_cell(delivery.state),
            delivery.event_type.as_str().into(),
            delivery.subject.as_str().into(),
            delivery.tries.to_string().into(),
            Cell::dim(moment::relative(delivery.created_at, now)),
        ]);
    }
    session.out.table_with_note(table);
    if deliveries.len() == limit as usize
        && let Some(last) = deliveries.last()
    {
        session.out.line(format!("There may be more: tenure webhooks deliveries --before {}", last.job));
    }
    Ok(Answer::Done)
}

pub(super) async fn show(args: ShowArgs, session: &mut Session) -> Result<Answer, Failure> {
    let sight = session.sight(args.tenant);
    let store = session.store().await?;
    let record = store.show_delivery(&sight, args.delivery).await?;
    if session.out.is_json() {
        session.out.json(&DeliveryDocument::from(&record))?;
        return Ok(Answer::Done);
    }
    let summary = &record.summary;
    let now = store.now().await?;
    let when = |at: Timestamp| format!("{}  ({})", moment::absolute(at), moment::relative(at, now));
    let mut pairs = vec![
        ("delivery", summary.job.to_string().into()),
        ("state", state_cell(summary.state)),
        ("event", format!("{} {}", summary.event_type, summary.event_id).into()),
        ("endpoint", summary.endpoint.to_string().into()),
        ("tenant", summary.tenant.as_str().into()),
        ("made", when(summary.created_at).into()),
    ];
    pairs.extend(summary.finished_at.map(|at| ("finished", when(at).into())));
    pairs.extend(summary.callback_url.as_deref().map(|url| ("callback", printable(url).into())));
    pairs.extend(summary.resend_of.map(|of| ("repeats", of.to_string().into())));
    session.out.table(&Table::pairs(pairs));
    session.out.line("");
    let tries: Vec<Value> = serde_json::from_str(record.tries.as_str()).unwrap_or_default();
    for entry in &tries {
        session.out.line(try_line(entry));
    }
    session.out.line(format!("body      {}", printable(&record.body)));
    Ok(Answer::Done)
}

/// `try 2   2026-11-15T09:30:00Z  500  in 12ms  the receiver answered 500`
fn try_line(entry: &Value) -> String {
    let text = |name: &str| entry[name].as_str().unwrap_or_default();
    let status = entry["status"].as_u64().map_or_else(|| "-".to_owned(), |status| status.to_string());
    let line = format!(
        "try {}     {}  {status}  in {}ms  {}",
        entry["attempt"].as_u64().unwrap_or_default(),
        text("at"),
        entry["took_ms"].as_u64().unwrap_or_default(),
        text("error"),
    );
    printable(line.trim_end()).to_string()
}

fn state_cell(state: DeliveryState) -> Cell {
    let paint = match state {
        DeliveryState::Pending => Paint::Yellow,
        DeliveryState::Delivered => Paint::Green,
        DeliveryState::Failed => Paint::Red,
    };
    Cell::painted(state.as_str().to_owned(), paint)
}

pub(super) fn state(text: &str) -> Result<DeliveryState, String> {
    DeliveryState::parse(text).ok_or_else(|| "it is pending, delivered or failed".to_owned())
}

pub(super) fn date(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse("date", text).map_err(limit)
}
