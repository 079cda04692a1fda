//! `GET /metrics`: figures for Prometheus, as text (exposition format 0.0.4).
//!
//! Two kinds: what the store holds, the same at every server and asked for at most every five seconds, and what this
//! process did. Names and meanings are a table (`catalogue`), which docs/METRICS.md repeats for
//! people. Label values are bounded: what users invent (queues, gates) has a hundred series, the rest is `other`.
//!
//! # Layout
//! - `catalogue`: every metric
//! - `text`: families, samples and how they are written
//! - `gather`: what the store holds; `pages`: runs, partitions and their pages; `endings`: how attempts ended
//! - `process`: what this process did

mod catalogue;
mod endings;
mod gather;
mod pages;
mod process;
mod text;

use tenure_store::Store;
use tokio::sync::Mutex;
use tokio::time::{Duration, Instant};

use self::process::Process;
pub(crate) use self::process::measure;
use self::text::Families;

/// The store is asked so often, however many ask us.
const ASK_EVERY: Duration = Duration::from_secs(5);

/// What is remembered for `GET /metrics`.
#[derive(Default)]
pub(crate) struct Metrics {
    /// Requests and failures of this process.
    pub(crate) process: Process,
    /// When the store was asked, and what it said. Whoever comes meanwhile waits for the same answer.
    asked: Mutex<Option<(Instant, String)>>,
}

impl Metrics {
    /// All figures as text. A store that does not answer is `tenure_up 0`, and nothing is told of it.
    pub(crate) async fn render(&self, store: &dyn Store) -> String {
        let of_store = self.of_store(store).await;
        of_store + &self.process.families().to_string()
    }

    async fn of_store(&self, store: &dyn Store) -> String {
        let mut asked = self.asked.lock().await;
        if let Some((_, text)) = asked.as_ref().filter(|(at, _)| at.elapsed() < ASK_EVERY) {
            return text.clone();
        }
        let families = gather::gather(store).await.unwrap_or_else(|error| {
            tracing::warn!(error = %error, "the store does not answer: /metrics tells nothing of it");
            let mut families = Families::new([&catalogue::UP]);
            families.put(&catalogue::UP, &[], 0.0);
            families
        });
        let text = families.to_string();
        *asked = Some((Instant::now(), text.clone()));
        text
    }
}
