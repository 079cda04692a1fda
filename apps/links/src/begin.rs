//! [`begin`]: makes the run of an import that was stored. A repetition finds it and changes nothing.

use serde::{Deserialize, Serialize};
use tenure::{Client, Ctx, Database, Fail, Job, RunId, State, StoreError, row};

use crate::import::SOURCE_TYPE;
use crate::settle::Settle;
use crate::worker::Links;

/// The partition whose rows are the links that have ended.
pub const PARTITION: &str = "links";
/// A page of any size is full: the partition ends when it says so.
const ROWS_MIN: u32 = 1;

/// Begin with an import.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[job(kind = "link.begin", queue = "links-imports", priority = "high", max_attempts = 20, timeout = "1m")]
#[job(backoff = "exponential 1s..1m by failures")]
pub struct Begin {
    /// Which.
    pub import: String,
}

/// Makes its run, and ends it at once when its user has canceled the import. That is read once the run is there: who cancels
/// later finds the run.
pub async fn begin(job: Begin, State(links): State<Links>, ctx: Ctx) -> Result<(), Fail> {
    let select = "select user_name, total_items from link_import where id = $1";
    let found = links.database.query(select, row![job.import.as_str()]).await?;
    let own = found.first().ok_or_else(|| Fail::permanent(format!("import {} is not known here", job.import)))?;
    let (run, client): (RunId, _) = (job.import.parse()?, ctx.client());
    client
        .new_run()
        .id(run)
        .owner(own.get::<String>("user_name")?)
        .source(SOURCE_TYPE)
        .partition(PARTITION, client.enqueue(Settle { import: job.import.clone() }), ROWS_MIN)
        .expected(own.get("total_items")?)
        .await?;
    end_if_canceled(&links.database, client, &job.import).await?;
    Ok(())
}

/// Ends the run of an import whose user has canceled it; answers whether they have.
pub(crate) async fn end_if_canceled(database: &Database, client: &Client, import: &str) -> Result<bool, StoreError> {
    let select = "select 1 as one from link_import where id = $1 and canceled_at is not null";
    if database.query(select, row![import]).await?.is_empty() {
        return Ok(false);
    }
    match client.cancel_run(import.parse()?).await {
        // It had ended by itself before.
        Ok(_) | Err(StoreError::Conflict(_)) => Ok(true),
        Err(error) => Err(error),
    }
}
