//! Closes the hash chain over what the journal got since the last seal, in parts.

use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreError;
use tenure_store::journal::FULL_SEAL_ROWS;
use tokio::time::Instant;

use crate::shared::Shared;

pub(super) const EVERY: Duration = Duration::from_secs(1);

/// Seals until little is left. After a large act there are hundreds of parts; the rest between two is as long as a part took,
/// so that jobs keep at least half of the database's time.
pub(super) async fn run(shared: Arc<Shared>) -> Result<(), StoreError> {
    loop {
        let began = Instant::now();
        match shared.store.seal_journal().await {
            Ok(Some(seal)) if seal.rows >= FULL_SEAL_ROWS => tokio::time::sleep(began.elapsed()).await,
            // Another worker sealed in the same moment.
            Ok(_) | Err(StoreError::Conflict(_)) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
