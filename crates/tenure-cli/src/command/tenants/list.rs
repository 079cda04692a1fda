//! `tenure tenants list`: tenants, their quotas and the number of their keys.

use clap::Args;
use tenure_core::name::TenantName;
use tenure_server::wire::access::TenantLine;
use tenure_store::access::TenantFilter;

use crate::args::{page_size, tenant};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::table::{Cell, Table};

/// List tenants
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  tenure tenants list\n  tenure tenants list --after acme --limit 10 --json")]
pub(super) struct ListArgs {
    /// At most this many
    #[arg(long, value_name = "N", value_parser = page_size, default_value = "100")]
    limit: u32,
    /// Only names after this one
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    after: Option<TenantName>,
}

pub(super) async fn run(args: ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let filter = TenantFilter { after: args.after, limit: args.limit };
    let tenants = session.store().await?.list_tenants(&filter).await?;
    if session.out.is_json() {
        session.out.json(&tenants.iter().map(TenantLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if tenants.is_empty() {
        session.out.line("No tenants yet: tenure tenants create NAME, or a first job, makes one.");
        return Ok(Answer::Done);
    }
    let mut table = Table::new(&["TENANT", "QUOTA", "KEYS"]);
    for tenant in &tenants {
        let quota = tenant.quota.map_or_else(|| Cell::dim("-"), Cell::number);
        table.row(vec![tenant.name.as_str().into(), quota, Cell::number(tenant.keys)]);
    }
    session.out.table(&table);
    if tenants.len() == args.limit as usize
        && let Some(last) = tenants.last()
    {
        session.out.line(format!("There may be more: tenure tenants list --after {}", last.name));
    }
    Ok(Answer::Done)
}
