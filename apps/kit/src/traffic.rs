//! [`Traffic`]: how many calls came, and how many were there at once, by whatever key tells them apart.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Counts of calls by key. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct Traffic(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    counts: Mutex<BTreeMap<String, Count>>,
    changed: Notify,
}

/// What is known of one key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Calls that came.
    pub calls: u64,
    /// Those that are there now.
    pub now: u64,
    /// The most that were there at once.
    pub most: u64,
}

/// A call that is there until this is dropped.
#[derive(Debug)]
#[must_use = "the call is over when this is dropped"]
pub struct Visit {
    traffic: Traffic,
    key: String,
}

impl Traffic {
    /// A call comes in.
    pub fn enter(&self, key: impl Into<String>) -> Visit {
        let key = key.into();
        {
            let mut counts = self.counts();
            let count = counts.entry(key.clone()).or_default();
            count.calls += 1;
            count.now += 1;
            count.most = count.most.max(count.now);
        }
        self.0.changed.notify_waiters();
        Visit { traffic: self.clone(), key }
    }

    /// What is known of a key.
    pub fn of(&self, key: &str) -> Count {
        self.counts().get(key).copied().unwrap_or_default()
    }

    /// What is known of every key.
    pub fn all(&self) -> BTreeMap<String, Count> {
        self.counts().clone()
    }

    /// All calls together.
    pub fn calls(&self) -> u64 {
        self.counts().values().map(|count| count.calls).sum()
    }

    /// Waits until what is known of a key is as wanted.
    pub async fn wait_for(&self, key: &str, wanted: impl Fn(Count) -> bool) -> Count {
        loop {
            // Listen before looking: a call between the two would otherwise be missed.
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.of(key) {
                count if wanted(count) => return count,
                _ => changed.await,
            }
        }
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, Count>> {
        self.0.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if let Some(count) = self.traffic.counts().get_mut(&self.key) {
            count.now -= 1;
        }
        self.traffic.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_are_counted_while_they_are_there() {
        let traffic = Traffic::default();
        let first = traffic.enter("a.example");
        let second = traffic.enter("a.example");
        drop(first);
        let third = traffic.enter("a.example");
        assert_eq!(traffic.of("a.example"), Count { calls: 3, now: 2, most: 2 });
        drop((second, third));
        assert_eq!(traffic.wait_for("a.example", |count| count.now == 0).await.most, 2);
        assert_eq!((traffic.calls(), traffic.of("b.example")), (3, Count::default()));
    }
}
