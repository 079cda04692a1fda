//! `tenure audit`: verify the journal, anchor it, read it.

mod anchor;
mod list;
pub(crate) mod seen;
mod tail;
mod verify;

use clap::{Args, Subcommand};
use tenure_core::seal::{Anchor, from_hex, to_hex};
use tenure_store::journal::FULL_SEAL_ROWS;
use tenure_store::{Store, StoreError};

use super::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure audit tail --follow                    every transition, as it happens
  tenure audit list --acts                      what people and rules did, newest first
  tenure audit anchor >> anchors.txt            seal, and write the head of the chain down
  tenure audit verify --seal                    recompute every seal, replay every transition
  tenure audit verify --anchor 12:3400:9f86d0…  is the chain still the one I wrote down?

Anchors:
  Every transition leaves a row in the journal, and seals close the rows in a chain of hashes, so that a row that
  was edited, deleted or slipped in is found. Who can write the whole database can also rewrite the whole chain,
  or cut off its end; only an anchor finds that. An anchor is the head of the chain, NO:ROWS:HASH: the number of
  the last seal, the rows under all seals up to it, and its hash. Take one often, keep it where the database's
  owner cannot write, and give it to a later `audit verify --anchor`.";

/// Verify, anchor and read the journal
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AuditArgs {
    #[command(subcommand)]
    what: AuditCommand,
}

#[derive(Debug, Subcommand)]
enum AuditCommand {
    Verify(verify::VerifyArgs),
    Anchor(anchor::AnchorArgs),
    Tail(tail::TailArgs),
    List(list::ListArgs),
}

pub(crate) async fn run(args: AuditArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.what {
        AuditCommand::Verify(args) => verify::run(args, session).await,
        AuditCommand::Anchor(args) => anchor::run(&args, session).await,
        AuditCommand::Tail(args) => tail::run(&args, session).await,
        AuditCommand::List(args) => list::run(args, session).await,
    }
}

/// Small seals after which everything that was there at the beginning is sealed: the first one may finish a part that
/// another sealer began, the second one may close an era.
const SMALL_SEALS: u32 = 3;

/// Seals what is not sealed yet. A store closes a bounded number of rows at a time, and busy writers always leave some.
pub(crate) async fn seal(store: &dyn Store) -> Result<(), StoreError> {
    let mut small = 0;
    while let Some(seal) = store.seal_journal().await? {
        small += u32::from(seal.rows < FULL_SEAL_ROWS);
        if small == SMALL_SEALS {
            break;
        }
    }
    Ok(())
}

/// `NO:ROWS:HASH`, what `--anchor` reads.
fn anchor_text(anchor: &Anchor) -> String {
    format!("{}:{}:{}", anchor.no, anchor.rows, to_hex(&anchor.hash))
}

fn read_anchor(text: &str) -> Result<Anchor, String> {
    let read = || {
        let (no, rest) = text.split_once(':')?;
        let (rows, hash) = rest.split_once(':')?;
        Some(Anchor { no: no.parse().ok()?, rows: rows.parse().ok()?, hash: from_hex(hash)? })
    };
    read()
        .ok_or_else(|| "an anchor is SEAL:ROWS:HASH with 64 hexadecimal digits, as `audit anchor` prints it".to_owned())
}
