//! What the feature `metrics` counts, by the facade of that name: whoever installs a recorder reads it.

use std::time::Duration;

use tenure_core::QueueName;

use crate::observe::AttemptEnded;

/// A claim was answered.
#[cfg(feature = "metrics")]
pub(crate) fn claim_answered(queue: &QueueName, took: Duration) {
    metrics::histogram!("tenure_claim_seconds", "queue" => queue.to_string()).record(took);
}

/// Jobs were claimed, and so many are here now.
#[cfg(feature = "metrics")]
pub(crate) fn jobs_claimed(queue: &QueueName, jobs: usize, running: u32) {
    metrics::counter!("tenure_claimed_jobs", "queue" => queue.to_string()).increment(jobs as u64);
    metrics::gauge!("tenure_running").set(f64::from(running));
}

/// An attempt has ended, and so many are here yet.
#[cfg(feature = "metrics")]
pub(crate) fn attempt_ended(ended: &AttemptEnded<'_>, running: u32) {
    let labels = [
        ("queue", ended.queue.to_string()),
        ("kind", ended.kind.to_string()),
        ("outcome", ended.how.as_str().to_owned()),
    ];
    metrics::histogram!("tenure_attempt_seconds", &labels).record(ended.took);
    metrics::gauge!("tenure_running").set(f64::from(running));
}

#[cfg(not(feature = "metrics"))]
pub(crate) const fn claim_answered(_: &QueueName, _: Duration) {}

#[cfg(not(feature = "metrics"))]
pub(crate) const fn jobs_claimed(_: &QueueName, _: usize, _: u32) {}

#[cfg(not(feature = "metrics"))]
pub(crate) const fn attempt_ended(_: &AttemptEnded<'_>, _: u32) {}
