//! `tenure keys list`: keys, what they allow, and when they were used.

use clap::Args;
use tenure_core::{KeyId, Timestamp};
use tenure_server::wire::access::KeyLine;
use tenure_store::access::{KeyFilter, KeyRecord};

use super::key_id;
use crate::args::{TenantArg, page_size};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use tenure_server::moment;

const EXAMPLES: &str = "\
Examples:
  tenure keys list
  tenure keys list --tenant acme
  tenure keys list --all            also those that have expired or were revoked

USED is to the minute. Secrets are stored nowhere.";

/// List keys
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    /// Also those that have expired or were revoked
    #[arg(long)]
    all: bool,
    /// At most this many
    #[arg(long, value_name = "N", value_parser = page_size, default_value = "100")]
    limit: u32,
    /// Only ids after this one
    #[arg(long, value_name = "KEY", value_parser = key_id)]
    after: Option<KeyId>,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let sight = session.sight(args.tenant);
    let filter = KeyFilter { sight, ended_too: args.all, after: args.after, limit: args.limit };
    let store = session.store().await?;
    let keys = store.list_keys(&filter).await?;
    if session.out.is_json() {
        session.out.json(&keys.iter().map(KeyLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if keys.is_empty() {
        session.out.line("No keys: tenure keys create --name 'what for' --scopes enqueue,read");
        return Ok(Answer::Done);
    }
    let now = store.now().await?;
    let mut table = Table::new(&["KEY", "TENANT", "SCOPES", "MADE", "USED", "ENDS", "NAME"]);
    for key in &keys {
        let ago = |at: Option<Timestamp>| at.map_or_else(|| "-".to_owned(), |at| moment::relative(at, now));
        table.row(vec![
            key.id.as_str().into(),
            key.tenant.as_ref().map_or_else(|| Cell::dim("operators"), |tenant| tenant.as_str().into()),
            key.scopes.to_string().into(),
            Cell::dim(ago(Some(key.created_at))),
            Cell::dim(ago(key.used_at)),
            ends(key, now),
            key.name.as_str().into(),
        ]);
    }
    session.out.table_with_note(table);
    if keys.len() == args.limit as usize
        && let Some(last) = keys.last()
    {
        session.out.line(format!("There may be more: tenure keys list --after {}", last.id));
    }
    Ok(Answer::Done)
}

fn ends(key: &KeyRecord, now: Timestamp) -> Cell {
    match (key.revoked_at, key.expires_at) {
        (Some(at), _) => Cell::painted(format!("revoked {}", moment::relative(at, now)), Paint::Red),
        (None, Some(at)) if at <= now => Cell::painted(format!("expired {}", moment::relative(at, now)), Paint::Red),
        (None, Some(at)) => moment::relative(at, now).into(),
        (None, None) => Cell::dim("-"),
    }
}
