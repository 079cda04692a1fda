//! `tenure audit anchor`: the head of the chain, to be kept elsewhere.

use clap::Args;
use serde_json::json;
use tenure_core::seal::{Anchor, GENESIS, Hash};
use tenure_store::Store;

use super::{anchor_text, seal};
use crate::command::{Answer, Session};
use crate::failure::{Failure, exit};
use crate::progress::Progress;

/// Seals read at once: a hundred bytes each.
const PAGE_SEALS: u32 = 10_000;

const EXAMPLES: &str = "\
Examples:
  tenure audit anchor                                     seal, then print NO:ROWS:HASH
  tenure audit anchor >> /mnt/elsewhere/anchors.txt       keep it where the database's owner cannot write
  tenure audit anchor --no-seal                           only what is sealed already
  tenure audit verify --anchor \"$(tail -n 1 anchors.txt)\"  is the chain still the one I wrote down?

It reads the seals and no rows, so it is quick and proves nothing: `tenure audit verify` recomputes the hashes.";

/// Print the head of the chain, to be kept elsewhere
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct AnchorArgs {
    /// Leave out what is not sealed yet
    #[arg(long)]
    no_seal: bool,
}

pub(super) async fn run(args: &AnchorArgs, session: &mut Session) -> Result<Answer, Failure> {
    let store = session.store().await?;
    if !args.no_seal {
        seal(&*store).await?;
    }
    let head = head(&*store).await?;
    if session.out.is_json() {
        session.out.json(&json!({
            "anchor": head.as_ref().map(anchor_text),
            "seals": head.as_ref().map_or(0, |head| head.no),
            "rows": head.as_ref().map_or(0, |head| head.rows),
        }))?;
        return Ok(Answer::Done);
    }
    let nothing = || {
        let message = "there is nothing to anchor: no journal row is sealed";
        let hint = "Rows come with the first claim, cancel or pause; without --no-seal they are sealed here.";
        Failure::new("not_found", exit::REFUSED, message).hint(hint)
    };
    let head = head.ok_or_else(nothing)?;
    session.out.line(anchor_text(&head));
    Ok(Answer::Done)
}

/// The last seal, and the rows under all of them: only adding them up tells how many. A chain whose links do not meet
/// is never anchored.
async fn head(store: &dyn Store) -> Result<Option<Anchor>, Failure> {
    let progress = Progress::of_things(None, "seals read");
    let (mut no, mut rows, mut hash): (i64, i64, Hash) = (0, 0, GENESIS);
    loop {
        let seals = store.list_seals(no, PAGE_SEALS).await?;
        for seal in &seals {
            if seal.no != no + 1 || seal.prev != hash {
                let message =
                    format!("seal {} does not follow the seal before it: the chain was cut or forked", seal.no);
                let hint = "Run `tenure audit verify` for everything that is wrong.";
                return Err(Failure::new("conflict", exit::REFUSED, message).hint(hint));
            }
            (no, rows, hash) = (seal.no, rows + seal.rows, seal.hash);
        }
        progress.set(u64::try_from(no).unwrap_or(0));
        if seals.len() < PAGE_SEALS as usize {
            break;
        }
    }
    Ok((no > 0).then_some(Anchor { no, rows, hash }))
}
