//! The questions of whoever operates it: which partitions go on, which are stuck, how far are the runs? And one deed: a
//! partition that failed goes on.

use std::cmp::Reverse;
use std::time::Duration;

use tenure::store::operate::Word;
use tenure::store::run::{OperatePartition, PartitionAct, PartitionFilter, RunFilter};
use tenure::{Client, Database, PartitionName, PartitionRecord, RunId, RunRecord, Sight, StoreError};

use crate::{SOURCE, claim};

/// A partition that has not moved for this long is stuck.
pub const STUCK_AFTER: Duration = Duration::from_secs(10 * 60);
/// Most lines of one answer of the store. A run has no more partitions than this.
const LINES_MAX: u32 = 1_000;

/// A partition that failed stays so.
#[derive(Debug, thiserror::Error)]
pub enum NotResumed {
    /// There is one run at a time.
    #[error("run {run} cannot go on while {open} does: there is one run at a time")]
    Busy {
        /// Of which run it is.
        run: RunId,
        /// The one that goes on.
        open: RunId,
    },
    /// `Conflict` when it goes on by itself, or its run has succeeded or was canceled.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Partitions that go on, the one that moved last first.
pub async fn active_partitions(client: &Client) -> Result<Vec<PartitionRecord>, StoreError> {
    let filter = PartitionFilter { active: true, ..PartitionFilter::default() };
    let mut active = partitions(client, filter).await?;
    active.sort_by_key(|partition| Reverse(partition.moved_at));
    Ok(active)
}

/// Partitions that go on and have not moved for ten minutes.
pub async fn stuck_partitions(client: &Client) -> Result<Vec<PartitionRecord>, StoreError> {
    partitions(client, PartitionFilter { stuck_for: Some(STUCK_AFTER), ..PartitionFilter::default() }).await
}

/// Runs that have not ended, the newest first: `done` of `total` partitions, and how many `failed`. Others may have runs
/// in the same database: all of them are looked through.
pub async fn open_runs(client: &Client) -> Result<Vec<RunRecord>, StoreError> {
    let (mut ours, mut before) = (Vec::new(), None);
    loop {
        let filter = RunFilter { open: true, before, limit: LINES_MAX, ..RunFilter::default() };
        let page = client.store().list_runs(&filter).await?;
        before = page.last().map(|run| run.id);
        let is_last = page.len() < LINES_MAX as usize;
        ours.extend(page.into_iter().filter(|run| run.source.as_deref() == Some(SOURCE)));
        if is_last {
            return Ok(ours);
        }
    }
}

/// Lets a partition that failed go on where it stopped. (One begins again by `tenure partitions reset`.)
pub async fn resume(
    database: &Database,
    client: &Client,
    run: RunId,
    partition: &PartitionName,
) -> Result<(), NotResumed> {
    if let Some(open) = claim::take(database, client, run, |_, _| Ok(())).await? {
        return Err(NotResumed::Busy { run, open });
    }
    let (sight, partition, act, word) = (Sight::All, partition.clone(), PartitionAct::Resume, Word::default());
    let resumed = client.store().operate_partition(OperatePartition { sight, run, partition, act, word }).await;
    claim::settle(database, run).await?;
    Ok(resumed?)
}

/// Those of our open runs.
async fn partitions(client: &Client, filter: PartitionFilter) -> Result<Vec<PartitionRecord>, StoreError> {
    let mut all = Vec::new();
    for run in open_runs(client).await? {
        let filter = PartitionFilter { run: Some(run.id), limit: LINES_MAX, ..filter.clone() };
        all.extend(client.store().list_partitions(&filter).await?);
    }
    Ok(all)
}
