//! [`Cache`]: a source's answers, kept for a while, so that a question that was answered lately is not asked again.
//!
//! Answers are kept in a store: in the one that the jobs are in, for all processes, or in a file of this machine's own
//! ([`SqliteStore::open`](https://docs.rs/tenure) beside it). Inside a process one question is asked once at a time:
//! whoever comes meanwhile waits for that answer. A question that failed is not remembered, and the next one asks again.
//!
//! ```text
//!   get_or_fetch(key) ── kept? ──yes──► hit
//!                           │no
//!                     somebody asks it just now? ──yes──► wait, then look again
//!                           │no
//!                        fetch ──► keep it for its time ──► miss
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_store::cache::PutCached;
use tenure_store::{IntoStore, Store, StoreError};

use crate::job::to_json;

/// How long an answer is kept unless somebody says otherwise.
pub const TTL_DEFAULT: Duration = Duration::from_secs(3_600);
/// Most answers that are kept unless somebody says otherwise.
pub const ENTRIES_MAX_DEFAULT: u64 = 100_000;
/// Every so many answers that come, those that are over and those that are too many go.
const PRUNE_EVERY: u64 = 100;

/// Answers by key. Clones share everything.
///
/// ```
/// # use tenure_worker::Cache;
/// # use tenure_sqlite::{SqliteOptions, SqliteStore};
/// # use tenure_store::AdminStore;
/// # use std::time::Duration;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let store = SqliteStore::in_memory(SqliteOptions::default())?;
/// # store.migrate().await?;
/// let cache = Cache::new(&store);
/// let ask = || async { Ok::<_, std::io::Error>(189_900_u64) };
/// let cents: u64 = cache.get_or_fetch("ebay|1921|D|dollar", Duration::from_secs(3_600), ask).await?;
/// let again: u64 = cache.get_or_fetch("ebay|1921|D|dollar", Duration::from_secs(3_600), ask).await?;
/// assert_eq!((cents, again, cache.counts().hits, cache.counts().misses), (189_900, 189_900, 1, 1));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Cache(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    enabled: bool,
    entries_max: u64,
    asked: Mutex<HashMap<String, Weak<tokio::sync::Mutex<()>>>>,
    hits: AtomicU64,
    misses: AtomicU64,
    put: AtomicU64,
}

/// How often it helped, since this process has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Answers that were there.
    pub hits: u64,
    /// Questions that were asked.
    pub misses: u64,
}

impl Cache {
    /// Keeps answers in this store.
    pub fn new(store: impl IntoStore) -> Self {
        Self::with(store, true, ENTRIES_MAX_DEFAULT)
    }

    /// The same; when not `enabled` every question is asked, and nothing is kept. At most `entries_max` answers stay, the
    /// oldest go first.
    pub fn with(store: impl IntoStore, enabled: bool, entries_max: u64) -> Self {
        let zero = || AtomicU64::new(0);
        Self(Arc::new(Inner {
            store: store.into_store(),
            enabled,
            entries_max,
            asked: Mutex::default(),
            hits: zero(),
            misses: zero(),
            put: zero(),
        }))
    }

    /// The answer that is kept under `key`, or the one that `fetch` gets, which is kept for `ttl`.
    ///
    /// An error of `fetch` is answered as it is. When the store fails the question is asked all the same: a cache that is
    /// down costs calls and nothing else. An answer that can no longer be read as `T` counts as none.
    pub async fn get_or_fetch<T, E, F, Fut>(&self, key: &str, ttl: Duration, fetch: F) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        if !self.0.enabled {
            return self.fetch(fetch).await;
        }
        if let Some(known) = self.look(key).await {
            return Ok(known);
        }
        let turn = self.turn(key);
        let _mine = turn.lock().await;
        // Somebody may have asked while we waited for our turn.
        if let Some(known) = self.look(key).await {
            return Ok(known);
        }
        let answer = self.fetch(fetch).await?;
        if let Err(error) = self.keep(key, ttl, &answer).await {
            tracing::warn!(error = %error, "an answer could not be kept");
        }
        Ok(answer)
    }

    /// Forgets the answer of a key, if there is one.
    pub async fn forget(&self, key: &str) -> Result<(), StoreError> {
        self.0.store.forget_cached(key).await
    }

    /// How often it helped.
    pub fn counts(&self) -> CacheCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CacheCounts { hits: of(&self.0.hits), misses: of(&self.0.misses) }
    }

    async fn fetch<T, E, Fut: Future<Output = Result<T, E>>>(&self, fetch: impl FnOnce() -> Fut) -> Result<T, E> {
        self.0.misses.fetch_add(1, Ordering::Relaxed);
        fetch().await
    }

    async fn look<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        let known = match self.0.store.find_cached(key).await {
            Ok(known) => known?,
            Err(error) => {
                tracing::warn!(error = %error, "the cache does not answer");
                return None;
            }
        };
        let known = serde_json::from_str(known.value.as_str()).ok()?;
        self.0.hits.fetch_add(1, Ordering::Relaxed);
        Some(known)
    }

    async fn keep(&self, key: &str, ttl: Duration, answer: &impl Serialize) -> Result<(), StoreError> {
        let value = to_json("cached value", answer)?;
        self.0.store.put_cached(PutCached { key: key.to_owned(), value, ttl }).await?;
        if self.0.put.fetch_add(1, Ordering::Relaxed) % PRUNE_EVERY == PRUNE_EVERY - 1 {
            self.0.store.prune_cache(self.0.entries_max).await?;
        }
        Ok(())
    }

    /// Who has it asks; the others wait. It is forgotten with the last one who holds it.
    fn turn(&self, key: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut asked = self.0.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(turn) = asked.get(key).and_then(Weak::upgrade) {
            return turn;
        }
        asked.retain(|_, turn| turn.strong_count() > 0);
        let turn = Arc::new(tokio::sync::Mutex::new(()));
        asked.insert(key.to_owned(), Arc::downgrade(&turn));
        turn
    }
}
