//! One run at a time: whoever opens one, a new run or one that had failed, takes the catalogue first.
//!
//! The claim is one row. It is free when the run that has it is over. That is asked first; then the row is changed, only
//! if it is still as it was seen, so that of two who come at once one takes it. The run itself is opened after that, in
//! a transaction of Tenure's own: until then the claim is *pending*, and nobody else takes it. Who dies in between leaves
//! it so for a minute.
//!
//! `tenure partitions reset` does not ask here. Two open runs do no harm, each publishes its own revision.

use std::time::Duration;

use tenure::{Client, Database, RunId, StoreError, Timestamp, Tx, row};

use crate::SOURCE;

/// How long it may take to open a run.
const PENDING: Duration = Duration::from_secs(60);
const FIND: &str = "select run_id, turn from diamonds_claim where source = $1";

/// The run that goes on, if there is one.
pub async fn open_run(database: &Database, client: &Client) -> Result<Option<RunId>, StoreError> {
    match find(database).await? {
        Some((run, _)) if goes_on(client, run).await? => Ok(Some(run)),
        _ => Ok(None),
    }
}

/// Takes the catalogue for a run that is about to be opened, together with what `note` writes; or answers who has it.
pub(crate) async fn take(
    database: &Database,
    client: &Client,
    run: RunId,
    note: impl FnOnce(&Tx<'_>, Timestamp) -> Result<(), StoreError> + Send + 'static,
) -> Result<Option<RunId>, StoreError> {
    let seen = find(database).await?;
    if let Some((holder, _)) = seen
        && holder != run
        && goes_on(client, holder).await?
    {
        return Ok(Some(holder));
    }
    let turn = seen.map_or(0, |(_, turn)| turn);
    database
        .transaction(move |tx| {
            let now = tx.now()?;
            let params = row![SOURCE, run, now.plus(PENDING), turn, now];
            if tx.execute(include_str!("sql/take_claim.sql"), params)? > 0 {
                note(tx, now)?;
                return Ok(None);
            }
            let holder = tx.query_first(FIND, row![SOURCE])?;
            holder.map(|holder| read(&holder).map(|(holder, _)| holder)).transpose()
        })
        .await
}

/// The run is open, or will not be: from now on its state counts.
pub(crate) async fn settle(database: &Database, run: RunId) -> Result<(), StoreError> {
    let settle = "update diamonds_claim set pending_until = null where run_id = $1";
    database.execute(settle, row![run]).await.map(drop)
}

async fn find(database: &Database) -> Result<Option<(RunId, i64)>, StoreError> {
    database.query(FIND, row![SOURCE]).await?.first().map(read).transpose()
}

fn read(claim: &tenure::Record) -> Result<(RunId, i64), StoreError> {
    Ok((claim.get::<String>("run_id")?.parse()?, claim.get("turn")?))
}

/// A run that is not there was never made, or was removed long ago.
async fn goes_on(client: &Client, run: RunId) -> Result<bool, StoreError> {
    match client.show_run(run).await {
        Ok(record) => Ok(record.run.state.is_open()),
        Err(StoreError::NotFound(_)) => Ok(false),
        Err(error) => Err(error),
    }
}
