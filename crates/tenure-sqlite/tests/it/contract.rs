//! What every store promises, on both kinds of this one.

use std::sync::Arc;

use tenure_contract::Fixture;
use tenure_sqlite::SqliteStore;
use tenure_store::AdminStore;
use tenure_store::clock::ManualClock;

use crate::fixture::{Directory, options};

mod memory {
    use super::*;

    async fn open(clock: ManualClock) -> Fixture {
        let store = SqliteStore::in_memory(options(&clock)).unwrap();
        store.migrate().await.unwrap();
        Fixture::new("sqlite in memory", Arc::new(store), clock)
    }

    tenure_contract::store_contract! { open }
}

mod file {
    use super::*;

    async fn open(clock: ManualClock) -> Fixture {
        let directory = Directory::new();
        let store = SqliteStore::open(directory.file(), options(&clock)).unwrap();
        store.migrate().await.unwrap();
        Fixture::new("sqlite on a file", Arc::new(store), clock).keeping(directory)
    }

    tenure_contract::store_contract! { open }
}
