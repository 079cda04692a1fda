//! The jobs that are measured: nothing to do, and a payload of a hundred bytes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};
use tenure_core::Priority;
use tenure_store::Store;
use tenure_worker::{Client, Job};

/// Jobs that one bulk enqueue carries: the most that one call takes is more, and no faster.
pub const BULK: u32 = 1_000;
/// Far enough away that nobody sees the day.
const LATER: Duration = Duration::from_secs(30 * 86_400);

/// A job that does nothing.
#[derive(Debug, Serialize, Deserialize)]
pub struct Noop {
    p: String,
}

impl Job for Noop {
    const KIND: &'static str = "noop";
}

impl Noop {
    /// One whose payload is a hundred bytes of text.
    pub fn new() -> Self {
        Self { p: "x".repeat(100) }
    }
}

impl Default for Noop {
    fn default() -> Self {
        Self::new()
    }
}

/// When and how urgently a load is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// Now, at normal priority.
    Now,
    /// Now, after everything of a higher priority.
    Last,
    /// Some day.
    Later,
    /// Now, each through one of so many gates, in turn.
    Through(u32),
}

/// Enqueues `jobs` jobs in bulks, from two producers.
pub async fn fill(store: &Arc<dyn Store>, jobs: u32, due: Due) -> Result<()> {
    let half = jobs / 2;
    let (one, other) = (produce(store, half, due), produce(store, jobs - half, due));
    let (one, other) = tokio::join!(tokio::spawn(one), tokio::spawn(other));
    one??;
    other?
}

fn produce(store: &Arc<dyn Store>, jobs: u32, due: Due) -> impl Future<Output = Result<()>> + Send + 'static {
    let client = Client::new(store);
    async move {
        let mut left = jobs;
        while left > 0 {
            let now = left.min(BULK);
            let many = client.enqueue_many((0..now).map(|_| Noop::new()));
            let many = match due {
                Due::Now => many,
                Due::Last => many.each(|_, one| one.priority(Priority::LOW)),
                Due::Later => many.each(|_, one| one.delay(LATER)),
                Due::Through(gates) => many.each(|n, one| one.gate(&format!("g:{}", n % gates as usize))),
            };
            many.await?;
            left -= now;
        }
        Ok(())
    }
}
