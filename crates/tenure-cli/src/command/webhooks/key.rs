//! `tenure webhooks key`: what seals the secrets of endpoints.

use clap::Args;
use serde_json::json;

use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::settings::new_webhook_key;

const EXAMPLES: &str = "\
Examples:
  tenure webhooks key
  TENURE_WEBHOOK_KEYS=$(tenure webhooks key) tenure server
  TENURE_WEBHOOK_KEYS=$(tenure webhooks key --id 2027-01),$OLD tenure server    the first one seals, all open

Keep it where secrets are kept, not beside the database: with both, secrets can be read. Every server needs it.
An embedded store without one has a key in a file beside it.";

/// Make a key to seal the secrets of endpoints with
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct KeyArgs {
    /// What it is called; secrets remember with which key they are sealed
    #[arg(long, value_name = "ID", default_value = "1", value_parser = id)]
    id: String,
}

pub(super) fn run(args: &KeyArgs, session: &mut Session) -> Result<Answer, Failure> {
    let key = new_webhook_key(&args.id)?;
    match session.out.is_json() {
        true => session.out.json(&json!({ "key": key }))?,
        false => session.out.line(key),
    }
    Ok(Answer::Done)
}

fn id(text: &str) -> Result<String, String> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    match !text.is_empty() && text.len() <= 32 && text.bytes().all(allowed) {
        true => Ok(text.to_owned()),
        false => Err("it is 1 to 32 of a-z A-Z 0-9 . _ -".to_owned()),
    }
}
