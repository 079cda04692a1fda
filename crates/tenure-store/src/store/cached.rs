//! The verbs of answers that are kept.

use async_trait::async_trait;

use crate::cache::{Cached, PutCached};
use crate::error::StoreError;

/// Answers that are kept for a while.
#[async_trait]
pub trait CacheStore: Send + Sync {
    /// The answer of a key, while it is good.
    async fn find_cached(&self, key: &str) -> Result<Option<Cached>, StoreError>;

    /// Keeps an answer; what was there goes.
    async fn put_cached(&self, request: PutCached) -> Result<(), StoreError>;

    /// Forgets the answer of a key, if there is one.
    async fn forget_cached(&self, key: &str) -> Result<(), StoreError>;

    /// Deletes what is over, and the oldest of what is more than `most`, a bounded batch of each; answers how many went.
    async fn prune_cache(&self, most: u64) -> Result<u64, StoreError>;
}
