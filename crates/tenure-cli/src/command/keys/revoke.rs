//! `tenure keys revoke`.

use clap::Args;
use serde_json::json;
use tenure_core::KeyId;
use tenure_store::access::RevokeKey;

use super::key_id;
use crate::args::{TenantArg, WordArgs};
use crate::command::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure keys revoke k7p2mq4xzc3a --reason 'it leaked'

Servers notice within three seconds.";

/// End a key at once
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RevokeArgs {
    /// Its id, KEY in tenure keys list
    #[arg(value_name = "KEY", value_parser = key_id)]
    key: KeyId,
    #[command(flatten)]
    tenant: TenantArg,
    #[command(flatten)]
    word: WordArgs,
}

pub(super) async fn run(args: RevokeArgs, session: &mut Session) -> Result<Answer, Failure> {
    let RevokeArgs { key, tenant, word } = args;
    let request = RevokeKey { sight: session.sight(tenant), key: key.clone(), word: session.word(word) };
    let is_new = session.store().await?.revoke_key(request).await?;
    let word = if is_new { "now" } else { "before" };
    match session.out.is_json() {
        true => session.out.json(&json!({ "id": key.as_str(), "revoked": word }))?,
        false if is_new => session.out.line(format!("Key {key} is revoked.")),
        false => session.out.line(format!("Key {key} had been revoked before.")),
    }
    Ok(Answer::Done)
}
