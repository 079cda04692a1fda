//! `tenure tenants create` and `tenure tenants set`.

use clap::Args;
use tenure_core::name::TenantName;
use tenure_server::wire::access::TenantLine;
use tenure_store::access::SetTenant;
use tenure_store::operate::Quota;

use crate::args::{WordArgs, limit, tenant};
use crate::command::{Answer, Session};
use crate::failure::Failure;

pub(super) const EXAMPLES: &str = "\
Examples:
  tenure tenants set acme --quota 500      at most so many pending jobs in each fair queue
  tenure tenants set acme --quota none     as many as the queue's own quota allows

A tenant's quota counts where tenants have lines of their own: tenure queues set QUEUE --fair true";

#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// The tenant
    #[arg(value_name = "TENANT", value_parser = tenant)]
    tenant: TenantName,
    /// Pending jobs it may have in each fair queue: 1 to 100000, or none
    #[arg(long, value_name = "JOBS", value_parser = quota)]
    quota: Option<Quota>,
    #[command(flatten)]
    word: WordArgs,
}

pub(super) async fn run(args: SetArgs, session: &mut Session) -> Result<Answer, Failure> {
    let SetArgs { tenant, quota, word } = args;
    let store = session.store_to_add().await?;
    let request = SetTenant { tenant: tenant.clone(), quota, word: session.word(word) };
    let is_new = store.set_tenant(request).await?;
    let record = store.show_tenant(&tenant).await?;
    if session.out.is_json() {
        session.out.json(&TenantLine::from(&record))?;
        return Ok(Answer::Done);
    }
    let made = if is_new { "is made" } else { "is there" };
    let quota = match record.quota {
        Some(quota) => format!("at most {quota} pending jobs in each fair queue"),
        None => "no quota of its own".to_owned(),
    };
    session.out.line(format!("Tenant {tenant} {made}, with {quota}."));
    Ok(Answer::Done)
}

fn quota(text: &str) -> Result<Quota, String> {
    text.parse().map_err(limit)
}
