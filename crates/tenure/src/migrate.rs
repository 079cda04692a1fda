//! Bringing a store's schema up.

use tenure_store::record::Migration;
use tenure_store::{IntoStore, StoreError};

/// Brings a store's schema up to this program's version; answers what was applied. Harmless when there is nothing to do,
/// and when several processes start at once: one migrates, the others wait.
///
/// `Schema` when the store was written by a newer program, `Unavailable` when it does not answer.
pub async fn migrate(store: impl IntoStore) -> Result<Vec<Migration>, StoreError> {
    store.into_store().migrate().await
}
