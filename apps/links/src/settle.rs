//! [`settle`]: counts the links of an import that have ended, one page after the other, until none is left.
//!
//! A page marks its links as processed and moves the run's partition by as many rows, in one transaction: whatever happens
//! to the worker, each link is counted once. Between two pages lies a second, longer while nothing happens.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Completed, Ctx, Fail, Job, Page, State, Timestamp, Tx, row};

use crate::begin::end_if_canceled;
use crate::import::{COUNT_ITEMS, Counts};
use crate::tend::tend;
use crate::worker::Links;

/// While nothing happens an import looks so many times less often.
const PATIENCE: u32 = 10;

/// Look which links of an import have ended.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[job(kind = "link.settle", queue = "links-imports", max_attempts = 20, timeout = "2m")]
#[job(backoff = "exponential 1s..1m by failures")]
pub struct Settle {
    /// Of which.
    pub import: String,
}

/// What a page came to.
enum Settled {
    Completed(Completed),
    /// Nothing has ended since.
    Nothing {
        /// How long it is since something has.
        quiet: Duration,
    },
    /// It is not long since the page before.
    TooEarly(Duration),
    /// All have ended, and none is enriched.
    Barren(Counts),
}

/// Counts what has ended. Links that do not go on by themselves are helped first.
pub async fn settle(job: Settle, State(links): State<Links>, ctx: Ctx, page: Page) -> Result<Completed, Fail> {
    let every = links.settings.settle_every;
    // Whoever canceled it may not have come to end its run.
    if end_if_canceled(&links.database, ctx.client(), &job.import).await? {
        return Err(Fail::canceled());
    }
    tend(&links, ctx.client(), &job.import).await?;
    match links.database.transaction(move |tx| count(tx, &job.import, &page, every)).await? {
        Settled::Completed(completed) => Ok(completed),
        Settled::Nothing { quiet } => Err(Fail::snooze((quiet / PATIENCE).clamp(every, every * PATIENCE))),
        Settled::TooEarly(rest) => Err(Fail::snooze(rest)),
        Settled::Barren(counts) => {
            Err(Fail::permanent(format!("none of its {} links could be enriched", counts.total)))
        }
    }
}

fn count(tx: &Tx<'_>, import: &str, page: &Page, every: Duration) -> Result<Settled, Fail> {
    let now = tx.now()?;
    let select = "select settled_at, created_at from link_import where id = $1";
    let own = tx.query_first(select, row![import])?;
    let own = own.ok_or_else(|| Fail::permanent(format!("import {import} is not known here")))?;
    let settled_at: Option<Timestamp> = own.get("settled_at")?;
    let quiet = now.since(settled_at.unwrap_or(own.get("created_at")?));

    if settled_at.is_some() && quiet < every {
        return Ok(Settled::TooEarly(every - quiet));
    }
    let rows = tx.execute(include_str!("sql/settle_items.sql"), row![import])?;
    let counts = counts(tx, import)?;
    let is_over = counts.processed == counts.total;
    let is_barren = counts.total > 0 && counts.failed == counts.total;
    match rows {
        0 if is_barren => return Ok(Settled::Barren(counts)),
        0 if !is_over => return Ok(Settled::Nothing { quiet }),
        _ => {}
    }
    tx.execute("update link_import set settled_at = $2 where id = $1", row![import, now])?;
    // One that has come to nothing says so on a page of its own: an error takes the rows of its page back.
    let moved = if is_over && !is_barren { page.finish(tx, rows) } else { page.advance(tx, rows) };
    moved.map(Settled::Completed)
}

fn counts(tx: &Tx<'_>, import: &str) -> Result<Counts, Fail> {
    let row = tx.query_first(COUNT_ITEMS, row![import])?;
    Ok(Counts::read(&row.ok_or_else(|| Fail::transient("a count was not answered"))?)?)
}
