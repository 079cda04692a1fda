//! Sums up what was sealed, so that charts and counters never look at jobs.

use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreError;

use crate::shared::Shared;

/// About as often as there is a seal.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// Batches in a row, so that an old store which is summed for the first time leaves room for others.
const BATCHES_MAX: u32 = 20;

pub(super) async fn run(shared: Arc<Shared>) -> Result<(), StoreError> {
    for _ in 0..BATCHES_MAX {
        if shared.store.fold_rollups().await? == 0 {
            break;
        }
    }
    Ok(())
}
