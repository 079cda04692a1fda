//! Answers that are kept for a while.

use std::time::Duration;

use tenure_core::Json;
use tenure_store::StoreError;
use tenure_store::cache::PutCached;

use crate::fixture::Fixture;

const MINUTE: Duration = Duration::from_secs(60);

async fn put(t: &Fixture, key: &str, value: &str, ttl: Duration) {
    let request = PutCached { key: key.into(), value: Json::parse("value", value).expect("JSON"), ttl };
    t.store.put_cached(request).await.expect("put");
}

async fn find(t: &Fixture, key: &str) -> Option<String> {
    let found = t.store.find_cached(key).await.expect("find");
    found.map(|cached| cached.value.as_str().split_whitespace().collect())
}

/// It is good until its time is over, by the store's clock.
pub async fn an_answer_is_kept_for_its_time(t: Fixture) {
    put(&t, "a", "{\"cents\":7}", MINUTE).await;
    assert_eq!(find(&t, "a").await.as_deref(), Some("{\"cents\":7}"));
    let expires_at = t.store.find_cached("a").await.expect("find").map(|cached| cached.expires_at);
    assert_eq!(expires_at, Some(t.clock.now().plus(MINUTE)));
    assert_eq!(find(&t, "b").await, None);
    t.advance(MINUTE);
    assert_eq!(find(&t, "a").await, None);
}

/// The last word stands, with its own time; and can be taken back.
pub async fn an_answer_is_replaced_and_forgotten(t: Fixture) {
    put(&t, "a", "1", MINUTE).await;
    t.advance(MINUTE / 2);
    put(&t, "a", "null", MINUTE).await;
    t.advance(MINUTE / 2);
    assert_eq!(find(&t, "a").await.as_deref(), Some("null"));
    t.store.forget_cached("a").await.expect("forget");
    t.store.forget_cached("a").await.expect("forget nothing");
    assert_eq!(find(&t, "a").await, None);
}

/// What is over goes, and of what is good the oldest when there is too much.
pub async fn a_cache_is_kept_small(t: Fixture) {
    for n in 0..10 {
        put(&t, &format!("short {n}"), "1", Duration::from_secs(1)).await;
    }
    for n in 0..10 {
        t.advance(Duration::from_secs(1));
        put(&t, &format!("long {n}"), "1", MINUTE).await;
    }
    assert_eq!(t.store.prune_cache(100).await.expect("prune"), 10);
    assert_eq!(t.store.prune_cache(7).await.expect("prune"), 3);
    assert_eq!(t.store.prune_cache(7).await.expect("prune"), 0);
    for n in 0..10 {
        assert_eq!(find(&t, &format!("long {n}")).await.is_some(), n >= 3, "{n}");
    }
}

/// Each by its name, and nothing is kept.
pub async fn what_cannot_be_kept_is_refused(t: Fixture) {
    let large = Json::from_store(format!("\"{}\"", "x".repeat(1 << 20)));
    let one = Json::from_store("1");
    let bad = [
        ("cache key", PutCached { key: String::new(), value: one.clone(), ttl: MINUTE }),
        ("cache key", PutCached { key: "a\0b".into(), value: one.clone(), ttl: MINUTE }),
        ("cached value", PutCached { key: "a".into(), value: large, ttl: MINUTE }),
        ("ttl", PutCached { key: "a".into(), value: one.clone(), ttl: Duration::ZERO }),
        ("ttl", PutCached { key: "a".into(), value: one, ttl: Duration::MAX }),
    ];
    for (field, request) in bad {
        match t.store.put_cached(request).await {
            Err(StoreError::Invalid(invalid)) => assert_eq!(invalid.field, field),
            other => panic!("{field}: {other:?}"),
        }
    }
    assert_eq!(find(&t, "a").await, None);
}
