//! `tenure keys create`.

use std::time::Duration;

use clap::Args;
use tenure_core::Scopes;
use tenure_core::name::TenantName;
use tenure_store::StoreError;
use tenure_store::access::NewKey;

use super::{new_key, show_new, time};
use crate::args::{WordArgs, limit, tenant};
use crate::command::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure keys create --name 'web shop' --tenant acme --scopes enqueue,read
  tenure keys create --name 'CI' --scopes read --life 90d
  tenure keys create --name ops --scopes enqueue,read,operate,admin
  TENURE_KEY=$(tenure keys create --name workers --scopes worker --json | jq -r .key)";

/// Make a key; it is shown once
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CreateArgs {
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    name: String,
    /// What it allows, with commas between: enqueue, read, operate, worker, admin
    #[arg(long, value_name = "SCOPES", value_parser = scopes)]
    scopes: Scopes,
    /// Whose it is; an operator's, who sees every tenant, if left out
    #[arg(long, value_name = "NAME", value_parser = tenant)]
    tenant: Option<TenantName>,
    /// How long it is good; until it is revoked if left out
    #[arg(long, value_name = "DURATION", value_parser = time)]
    life: Option<Duration>,
    #[command(flatten)]
    word: WordArgs,
}

pub(super) async fn run(args: CreateArgs, session: &mut Session) -> Result<Answer, Failure> {
    let CreateArgs { name, scopes, tenant, life, word } = args;
    let (id, credential) = new_key()?;
    let word = session.word(word);
    let request =
        NewKey { id, hash: credential.hash(), tenant: tenant.clone(), name, scopes, life, replaces: None, word };
    request.check()?;
    let made = session.store_to_add().await?.create_key(request).await;
    let record = made.map_err(|error| match (&error, tenant) {
        (StoreError::NotFound(_), Some(tenant)) => {
            Failure::from(error).hint(format!("Make it first: tenure tenants create {tenant}"))
        }
        _ => error.into(),
    })?;
    show_new(&record, &credential, session)?;
    Ok(Answer::Done)
}

fn scopes(text: &str) -> Result<Scopes, String> {
    text.parse().map_err(limit)
}
