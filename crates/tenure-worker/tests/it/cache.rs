//! A question that was answered lately is not asked again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tenure_store::cache::PutCached;
use tenure_store::{CacheStore, StoreError};
use tenure_worker::{Cache, CacheCounts};

use crate::bench::Bench;

const HOUR: Duration = Duration::from_secs(3_600);

/// Asks through a cache; answers with a number that is higher each time it was really asked.
async fn ask(cache: &Cache, key: &str, asked: &AtomicU32) -> u32 {
    let fetch = || async { Ok::<_, StoreError>(asked.fetch_add(1, Ordering::SeqCst) + 1) };
    cache.get_or_fetch(key, HOUR, fetch).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_who_ask_at_once_ask_once() {
    let bench = Bench::new().await;
    let (cache, asked) = (Cache::new(&bench.inner), Arc::new(AtomicU32::new(0)));
    let started = Arc::new(tokio::sync::Barrier::new(100));
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let (cache, asked, started) = (cache.clone(), Arc::clone(&asked), Arc::clone(&started));
        callers.spawn(async move {
            started.wait().await;
            ask(&cache, "a", &asked).await
        });
    }
    assert_eq!(callers.join_all().await, vec![1; 100]);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(cache.counts(), CacheCounts { hits: 99, misses: 1 });
}

#[tokio::test]
async fn two_keys_are_two_questions_and_a_forgotten_one_is_asked_again() {
    let bench = Bench::new().await;
    let (cache, asked) = (Cache::new(&bench.inner), AtomicU32::new(0));
    assert_eq!(
        [ask(&cache, "a", &asked).await, ask(&cache, "b", &asked).await, ask(&cache, "a", &asked).await],
        [1, 2, 1]
    );
    cache.forget("a").await.unwrap();
    assert_eq!(ask(&cache, "a", &asked).await, 3);
}

#[tokio::test]
async fn an_error_is_answered_and_not_remembered() {
    let bench = Bench::new().await;
    let (cache, asked) = (Cache::new(&bench.inner), AtomicU32::new(0));
    let fails = || async { Err::<u32, _>(std::io::Error::other("down")) };
    assert_eq!(cache.get_or_fetch("a", HOUR, fails).await.unwrap_err().to_string(), "down");
    assert_eq!(ask(&cache, "a", &asked).await, 1);
}

#[tokio::test]
async fn a_cache_that_is_off_keeps_nothing() {
    let bench = Bench::new().await;
    let (cache, asked) = (Cache::with(&bench.inner, false, 10), AtomicU32::new(0));
    assert_eq!([ask(&cache, "a", &asked).await, ask(&cache, "a", &asked).await], [1, 2]);
    assert_eq!(bench.inner.find_cached("a").await.unwrap(), None);
    assert_eq!(cache.counts(), CacheCounts { hits: 0, misses: 2 });
}

#[tokio::test]
async fn an_answer_of_another_shape_counts_as_none() {
    let bench = Bench::new().await;
    let (cache, asked) = (Cache::new(&bench.inner), AtomicU32::new(0));
    let value = tenure_core::Json::from_store("\"once it was text\"");
    bench.inner.put_cached(PutCached { key: "a".into(), value, ttl: HOUR }).await.unwrap();
    assert_eq!([ask(&cache, "a", &asked).await, ask(&cache, "a", &asked).await], [1, 1]);
}

#[tokio::test]
async fn a_cache_stays_as_small_as_it_was_told() {
    let bench = Bench::new().await;
    let (cache, asked) = (Cache::with(&bench.inner, true, 10), AtomicU32::new(0));
    for n in 0..100 {
        ask(&cache, &n.to_string(), &asked).await;
    }
    let mut kept = 0;
    for n in 0..100 {
        kept += u32::from(bench.inner.find_cached(&n.to_string()).await.unwrap().is_some());
    }
    assert_eq!(kept, 10);
}

/// Nobody has made its tables: every look and every answer fails.
#[tokio::test]
async fn a_cache_that_is_down_costs_calls_and_nothing_else() {
    let store = tenure_sqlite::SqliteStore::in_memory(tenure_sqlite::SqliteOptions::default()).unwrap();
    let (cache, asked) = (Cache::new(&store), AtomicU32::new(0));
    assert_eq!([ask(&cache, "a", &asked).await, ask(&cache, "a", &asked).await], [1, 2]);
}
