//! `tenure usage`: what handlers said that they used.

use std::time::Duration;

use clap::Args;
use tenure_core::name::KindName;
use tenure_server::wire::usage::{UsageLine, day};
use tenure_store::operate::BATCH_MAX;
use tenure_store::usage::{UsageFilter, UsageTotal};

use super::{Answer, Session};
use crate::args::{TenantArg, kind, limit};
use crate::failure::Failure;
use crate::table::{Cell, Table};

const EXAMPLES: &str = "\
Examples:
  tenure usage                        the last 30 days, by day, tenant, kind and name
  tenure usage --within 1d --json
  tenure usage --tenant acme --kind crawl

Handlers report it: ctx.usage(…) in Rust, \"usage\" of a completion over HTTP. Only numbers are summed; days are UTC's.";

/// Sum what handlers said that they used
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct UsageArgs {
    /// How far to look back
    #[arg(long, value_name = "DURATION", default_value = "30d", value_parser = within)]
    within: Duration,
    /// Only jobs of this kind
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<KindName>,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(crate) async fn run(args: UsageArgs, session: &mut Session) -> Result<Answer, Failure> {
    let UsageArgs { within, kind, tenant } = args;
    let sight = session.sight(tenant);
    let store = session.store().await?;
    let since = store.now().await?.minus(within);
    let mut filter = UsageFilter { sight, kind, since, after: None, limit: BATCH_MAX };
    let mut totals = Vec::new();
    loop {
        let page = store.sum_usage(&filter).await?;
        let is_last = page.len() < BATCH_MAX as usize;
        totals.extend(page);
        if is_last {
            break;
        }
        filter.after = totals.last().map(UsageTotal::place);
    }
    if session.out.is_json() {
        session.out.json(&totals.iter().map(UsageLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if totals.is_empty() {
        session.out.line("No handler has reported any usage since.");
        return Ok(Answer::Done);
    }
    let mut table = Table::new(&["DAY", "TENANT", "KIND", "OF", "AMOUNT", "ATTEMPTS"]);
    for total in &totals {
        table.row(vec![
            day(total).into(),
            total.tenant.as_str().into(),
            total.kind.as_str().into(),
            total.name.as_str().into(),
            Cell::number(total.amount),
            Cell::number(total.attempts),
        ]);
    }
    session.out.table(&table);
    Ok(Answer::Done)
}

fn within(text: &str) -> Result<Duration, String> {
    tenure_core::duration::parse("within", text).map_err(limit)
}
