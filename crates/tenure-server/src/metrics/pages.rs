//! Runs, partitions and their pages: an active partition is always at one page, whose job waits or runs.

use std::collections::HashSet;
use std::time::Duration;

use tenure_core::{RunState, State, Timestamp};
use tenure_store::operate::BATCH_MAX;
use tenure_store::record::JobFilter;
use tenure_store::run::{PartitionFilter, RunFilter};
use tenure_store::{Store, StoreError};

use super::catalogue as is;
use super::gather::count;
use super::text::Families;

/// A partition that has not moved for so long is stuck.
const STUCK_FOR: Duration = Duration::from_secs(600);

pub(super) async fn gather(families: &mut Families, store: &dyn Store, now: Timestamp) -> Result<(), StoreError> {
    let open = RunFilter { open: true, limit: BATCH_MAX, ..RunFilter::default() };
    families.put(&is::RUNS_OPEN, &[], count(&store.list_runs(&open).await?));
    let active = PartitionFilter { active: true, limit: BATCH_MAX, ..PartitionFilter::default() };
    let stuck = PartitionFilter { stuck_for: Some(STUCK_FOR), ..active.clone() };
    let active = store.list_partitions(&active).await?;
    for state in [RunState::Queued, RunState::Running] {
        let of_state = active.iter().filter(|partition| partition.state == state).count();
        families.put(&is::PARTITIONS, &[("state", state.as_str())], of_state as f64);
    }
    // Where nothing is active nothing is stuck, and nothing more is asked.
    let (mut stuck_now, mut due) = (0.0, 0);
    if !active.is_empty() {
        stuck_now = count(&store.list_partitions(&stuck).await?);
        let running = JobFilter { state: Some(State::Running), limit: BATCH_MAX, ..JobFilter::default() };
        let running: HashSet<_> = store.list_jobs(&running).await?.into_iter().map(|job| job.id).collect();
        due = active.iter().filter(|partition| !running.contains(&partition.job)).count();
    }
    families.put(&is::PARTITIONS_STUCK, &[], stuck_now);
    families.put(&is::PAGES_DUE, &[], due as f64);
    let begun = active.iter().filter(|partition| partition.state == RunState::Running);
    let oldest = begun.map(|partition| now.since(partition.moved_at)).max().unwrap_or_default();
    families.put(&is::PAGE_OLDEST, &[], oldest.as_secs_f64());
    Ok(())
}
