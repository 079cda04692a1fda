//! Answers that are kept for a while.

use async_trait::async_trait;
use tenure_store::cache::{Cached, PutCached, check_key};
use tenure_store::{CacheStore, StoreError};

use super::ModelStore;

#[async_trait]
impl CacheStore for ModelStore {
    async fn find_cached(&self, key: &str) -> Result<Option<Cached>, StoreError> {
        check_key(key)?;
        self.look(|tables, now| {
            let kept = tables.cache.get(key).filter(|(_, cached)| cached.expires_at > now);
            Ok(kept.map(|(_, cached)| cached.clone()))
        })
    }

    async fn put_cached(&self, request: PutCached) -> Result<(), StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            let cached = Cached { value: request.value, expires_at: now.plus(request.ttl) };
            tables.cache.insert(request.key, (now, cached));
            Ok(())
        })
    }

    async fn forget_cached(&self, key: &str) -> Result<(), StoreError> {
        check_key(key)?;
        self.transact(|tables, _| {
            tables.cache.remove(key);
            Ok(())
        })
    }

    async fn prune_cache(&self, most: u64) -> Result<u64, StoreError> {
        self.transact(|tables, now| {
            let before = tables.cache.len();
            let mut order: Vec<_> = tables.cache.iter().map(|(key, (put_at, _))| (*put_at, key.clone())).collect();
            order.sort_unstable();
            order.truncate(before.saturating_sub(usize::try_from(most).unwrap_or(usize::MAX)));
            order.iter().for_each(|(_, key)| drop(tables.cache.remove(key)));
            tables.cache.retain(|_, (_, cached)| cached.expires_at > now);
            Ok((before - tables.cache.len()) as u64)
        })
    }
}
