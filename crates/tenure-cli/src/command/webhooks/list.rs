//! `tenure webhooks list`: endpoints, what they are told, and how they do.

use clap::Args;
use tenure_core::{EndpointId, Timestamp};
use tenure_server::wire::webhook::EndpointLine;
use tenure_store::webhook::{EndpointFilter, EndpointRecord};

use super::endpoint_id;
use crate::args::{TenantArg, page_size};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use tenure_server::moment;

const EXAMPLES: &str = "\
Examples:
  tenure webhooks list
  tenure webhooks list --tenant acme --json

An endpoint is disabled by hand, by a receiver that answers 410, or when nothing arrived for three days.";

/// List endpoints; secrets are nowhere
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    /// At most this many
    #[arg(long, value_name = "N", value_parser = page_size, default_value = "100")]
    limit: u32,
    /// Only ids after this one
    #[arg(long, value_name = "ENDPOINT", value_parser = endpoint_id)]
    after: Option<EndpointId>,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let filter = EndpointFilter { sight: session.sight(args.tenant), after: args.after, limit: args.limit };
    let store = session.store().await?;
    let endpoints = store.list_endpoints(&filter).await?;
    if session.out.is_json() {
        session.out.json(&endpoints.iter().map(EndpointLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if endpoints.is_empty() {
        session.out.line("No endpoints: tenure webhooks create --url https://example.com/hook");
        return Ok(Answer::Done);
    }
    let now = store.now().await?;
    let mut table = Table::new(&["ENDPOINT", "TENANT", "STATE", "EVENTS", "URL"]);
    for endpoint in &endpoints {
        table.row(vec![
            endpoint.id.to_string().into(),
            endpoint.tenant.as_str().into(),
            state(endpoint, now),
            endpoint.events.to_string().into(),
            endpoint.url.as_deref().map_or_else(|| Cell::dim("as jobs say"), Cell::from),
        ]);
    }
    session.out.table_with_note(table);
    if endpoints.len() == args.limit as usize
        && let Some(last) = endpoints.last()
    {
        session.out.line(format!("There may be more: tenure webhooks list --after {}", last.id));
    }
    Ok(Answer::Done)
}

fn state(endpoint: &EndpointRecord, now: Timestamp) -> Cell {
    match (&endpoint.disabled, endpoint.failing_since) {
        (Some((at, why)), _) => Cell::painted(format!("disabled {}: {why}", moment::relative(*at, now)), Paint::Red),
        (None, Some(since)) => Cell::painted(format!("failing since {}", moment::relative(since, now)), Paint::Yellow),
        (None, None) => Cell::painted("ok".to_owned(), Paint::Green),
    }
}
