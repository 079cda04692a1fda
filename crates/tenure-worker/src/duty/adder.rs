//! Adds up what handlers said that they used, so that sums stay cheap.

use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreError;

use crate::shared::Shared;

pub(super) const EVERY: Duration = Duration::from_secs(20);

pub(super) async fn run(shared: Arc<Shared>) -> Result<(), StoreError> {
    while shared.store.fold_usage().await? > 0 {}
    Ok(())
}
