//! The model passes the whole suite.

use std::sync::Arc;

use tenure_contract::Fixture;
use tenure_contract::model::ModelStore;
use tenure_store::clock::ManualClock;

async fn open(clock: ManualClock) -> Fixture {
    Fixture::new("model", Arc::new(ModelStore::new(clock.clone())), clock)
}

tenure_contract::store_contract! { open }
