//! `tenure keys rotate`: a new key takes an old one's place.

use std::time::Duration;

use clap::Args;
use tenure_core::KeyId;
use tenure_store::access::NewKey;
use tenure_store::{Store, StoreError};

use super::{key_id, new_key, show_new, time};
use crate::args::WordArgs;
use crate::command::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure keys rotate k7p2mq4xzc3a                  the old one is good for a day yet
  tenure keys rotate k7p2mq4xzc3a --overlap 0s     it ends now

The new one has the old one's name, tenant, scopes and end. A key that has ended is not rotated.";

/// Make a key that takes another one's place; it is shown once
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RotateArgs {
    /// The old one's id, KEY in tenure keys list
    #[arg(value_name = "KEY", value_parser = key_id)]
    key: KeyId,
    /// How long the old one is good yet
    #[arg(long, value_name = "DURATION", default_value = "1d", value_parser = time)]
    overlap: Duration,
    /// How long the new one is good [default: as long as the old one was to be]
    #[arg(long, value_name = "DURATION", value_parser = time)]
    life: Option<Duration>,
    #[command(flatten)]
    word: WordArgs,
}

pub(super) async fn run(args: RotateArgs, session: &mut Session) -> Result<Answer, Failure> {
    let RotateArgs { key, overlap, life, word } = args;
    let store = session.store().await?;
    let old = find(&*store, &key).await?;
    let (id, credential) = new_key()?;
    let request = NewKey {
        id,
        hash: credential.hash(),
        tenant: old.tenant,
        name: old.name,
        scopes: old.scopes,
        life,
        replaces: Some((key, overlap)),
        word: session.word(word),
    };
    let record = store.create_key(request).await?;
    show_new(&record, &credential, session)?;
    Ok(Answer::Done)
}

async fn find(store: &dyn Store, key: &KeyId) -> Result<tenure_store::access::KeyRecord, StoreError> {
    let old = store.find_key(key).await?.ok_or_else(|| StoreError::NotFound(format!("key {key}")))?;
    match old.revoked_at {
        None => Ok(old),
        Some(_) => Err(StoreError::Conflict(format!("key {key} is revoked: make a new one"))),
    }
}
