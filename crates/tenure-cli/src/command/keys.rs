//! `tenure keys`: who may use the API, and for what.

mod create;
mod list;
mod revoke;
mod rotate;

use clap::{Args, Subcommand};
use tenure_core::{Credential, KeyId};
use tenure_server::wire::access::NewKeyDocument;
use tenure_store::access::KeyRecord;

use super::{Answer, Session};
use crate::args::limit;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure keys create --name 'web shop' --tenant acme --scopes enqueue,read
  tenure keys create --name 'workers' --scopes worker        workers belong to no tenant
  tenure keys list
  tenure keys rotate k7p2mq4xzc3a --overlap 1d               a new one; the old one is good for a day
  tenure keys revoke k7p2mq4xzc3a --reason 'it leaked'

Scopes: enqueue (store jobs), read (see), operate (cancel, requeue, pause …), worker (claim and report),
admin (tenants, keys). A key without a tenant is an operator's: it sees every tenant.";

/// Make, list, rotate and revoke API keys
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct KeysArgs {
    #[command(subcommand)]
    what: KeysCommand,
}

#[derive(Debug, Subcommand)]
enum KeysCommand {
    Create(create::CreateArgs),
    List(list::ListArgs),
    Rotate(rotate::RotateArgs),
    Revoke(revoke::RevokeArgs),
}

pub(crate) async fn run(args: KeysArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.what {
        KeysCommand::Create(args) => create::run(args, session).await,
        KeysCommand::List(args) => list::run(args, session).await,
        KeysCommand::Rotate(args) => rotate::run(args, session).await,
        KeysCommand::Revoke(args) => revoke::run(args, session).await,
    }
}

/// A new key: its id and its text.
fn new_key() -> Result<(KeyId, Credential), Failure> {
    let mut random = [0; tenure_core::key::KEY_RANDOM_BYTES];
    getrandom::fill(&mut random)?;
    Ok(Credential::new_key(random))
}

/// Shows a new key, this once.
fn show_new(record: &KeyRecord, credential: &Credential, session: &mut Session) -> Result<(), Failure> {
    if session.out.is_json() {
        return session.out.json(&NewKeyDocument::new(record, credential));
    }
    let whose = record.tenant.as_ref().map_or_else(|| "operators".to_owned(), |tenant| format!("tenant {tenant}"));
    session.out.line(credential.reveal());
    session.out.line("");
    session.out.line(format!("Key {} of {whose} allows {}.", record.id, record.scopes));
    session.out.line("It is shown this once: keep it where secrets are kept.");
    Ok(())
}

fn key_id(text: &str) -> Result<KeyId, String> {
    text.parse().map_err(limit)
}

fn time(text: &str) -> Result<std::time::Duration, String> {
    tenure_core::duration::parse("time", text).map_err(limit)
}
