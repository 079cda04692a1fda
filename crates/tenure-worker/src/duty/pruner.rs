//! Deletes jobs that ended long ago, a bounded batch at a time. Dead letters stay.

use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreError;
use tenure_store::operate::{BATCH_MAX, PruneJobs};

use crate::shared::Shared;

pub(super) const EVERY: Duration = Duration::from_secs(60);
/// A breath between two batches: pruning has all day.
const BREATH: Duration = Duration::from_millis(50);

pub(super) async fn run(shared: Arc<Shared>, retention: Duration) -> Result<(), StoreError> {
    loop {
        let request = PruneJobs { older_than: retention, dead_too: false, limit: BATCH_MAX };
        if shared.store.prune_jobs(request).await? < u64::from(BATCH_MAX) {
            return Ok(());
        }
        tokio::time::sleep(BREATH).await;
    }
}
