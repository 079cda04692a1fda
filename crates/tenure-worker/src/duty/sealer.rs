//! Closes the hash chain over what the journal got since the last seal.

use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreError;

use crate::shared::Shared;

pub(super) const EVERY: Duration = Duration::from_secs(1);

pub(super) async fn run(shared: Arc<Shared>) -> Result<(), StoreError> {
    match shared.store.seal_journal().await {
        // Another worker sealed in the same moment.
        Ok(_) | Err(StoreError::Conflict(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
