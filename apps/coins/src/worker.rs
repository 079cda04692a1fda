//! A worker as the seed has it: claims under a lock that its heartbeat keeps, and looks for the stuck jobs of others.

use std::sync::Arc;

use kit::http::HttpOptions;
use kit::{BoxError, Http};
use tenure::core::QueueName;
use tenure::preset::COINS;
use tenure::store::operate::SetQueue;
use tenure::{Builder, Cache, Client, Database, SqliteOptions, SqliteStore, Worker, store::Store};

use crate::QUEUE;
use crate::collect::{Coins, collect};
use crate::settings::Settings;

/// Jobs that one process runs at once: the seed's loop claims one, runs it, and claims the next. More is more processes.
const SLOTS: u32 = 1;

/// What handlers need, with the cache in a file of this machine's own, if there is to be one.
pub async fn open(database: &Database, settings: &Settings) -> Result<Coins, BoxError> {
    if !settings.cache_enabled {
        return with_cache(database, settings, database);
    }
    let cache = SqliteStore::open(&settings.cache_path, SqliteOptions::default())?;
    tenure::migrate(&cache).await?;
    with_cache(database, settings, &cache)
}

/// The same with a cache in any store.
pub fn with_cache(database: &Database, settings: &Settings, cache: impl tenure::IntoStore) -> Result<Coins, BoxError> {
    let timeout = settings.http_timeout;
    let http = Http::new(&HttpOptions { timeout, user_agent: "tenure-coins", ..HttpOptions::default() })?;
    let cache = match settings.cache_enabled {
        true => Cache::new(cache),
        false => Cache::with(cache, false, 0),
    };
    Ok(Coins::new(database.clone(), http, cache, settings.clone())?)
}

/// Sets the queue's lock timeout, which all workers share: the last word counts for all of them.
pub async fn prepare(client: &Client, settings: &Settings) -> Result<(), BoxError> {
    let store: &Arc<dyn Store> = client.store();
    store.set_queue(SetQueue::new(QueueName::new(QUEUE)?, settings.lock_timeout)).await?;
    Ok(())
}

/// A worker in the making, for this program's `main`, its tests and its story.
pub fn worker(builder: Builder, coins: Coins, settings: &Settings) -> Builder<Coins> {
    builder
        .preset(&COINS)
        .reclaim_every(settings.reclaim_every)
        .queue(QUEUE, SLOTS)
        // A lock is one job's.
        .lease_jobs(1)
        .state(coins)
        .handle(collect)
}

/// The worker of this database.
pub async fn build(database: &Database, settings: &Settings) -> Result<Worker, BoxError> {
    prepare(&Client::new(database), settings).await?;
    let coins = open(database, settings).await?;
    Ok(worker(Worker::builder(database), coins, settings).build()?)
}
