//! Asking sources about a coin: one job for each pair of an intake and a source.

use std::time::Duration;

use tenure::core::backoff::{Backoff, Count, Jitter};
use tenure::store::enqueue::Enqueued;
use tenure::{Client, StoreError};

use crate::collect::Collect;
use crate::intake::Intake;
use crate::source::Source;

/// The longest wait before a job is tried again.
const RETRY_CAP: Duration = Duration::from_secs(24 * 3_600);

/// Asks these sources about a coin, those that are enabled. A pair that is asked already is found, not asked again. What
/// fails is tried again after `base`, then after twice that, and so on, a day at most.
pub async fn ask(
    client: &Client,
    intake: &Intake,
    sources: &[Source],
    base: Duration,
) -> Result<Vec<Enqueued>, StoreError> {
    let mut asked = Vec::new();
    for source in sources.iter().filter(|source| source.enabled) {
        let job = Collect { intake: intake.id.clone(), source: source.id.clone() };
        // Neither may have a `|` in it, so no other pair has this key.
        let key = format!("{}|{}", intake.id, source.id);
        asked.push(client.enqueue(job).gate(&source.gate()).backoff(doubling(base)).unique(key).await?);
    }
    Ok(asked)
}

/// Asks one source about one coin so many times at once, whatever is asked already: to see that workers do not meet.
pub async fn ask_times(
    client: &Client,
    intake: &str,
    source: &Source,
    times: usize,
    base: Duration,
) -> Result<Vec<Enqueued>, StoreError> {
    let jobs = (0..times).map(|_| Collect { intake: intake.to_owned(), source: source.id.clone() });
    client.enqueue_many(jobs).each(|_, job| job.gate(&source.gate()).backoff(doubling(base))).await
}

/// `base × 2^failures before this one`, a day at most.
fn doubling(base: Duration) -> Backoff {
    Backoff::Exponential { base, cap: RETRY_CAP, by: Count::Failures, jitter: Jitter::NONE }
}
