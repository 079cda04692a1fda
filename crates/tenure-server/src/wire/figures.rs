//! Rollups as JSON.

use serde::Serialize;
use tenure_core::Histogram;
use tenure_store::rollup::{Figures, Rollup};
use utoipa::ToSchema;

/// How many attempts began, how they ended, and how long they took: in a step of time, or of a queue, a kind or a tenant.
#[derive(Debug, Serialize, ToSchema)]
pub struct FiguresLine {
    /// The first moment of what is summed
    #[schema(format = DateTime)]
    at: String,
    queue: Option<String>,
    kind: Option<String>,
    tenant: Option<String>,
    /// Attempts that began
    claimed: u64,
    succeeded: u64,
    /// Attempts that are tried again
    retried: u64,
    failed: u64,
    dead: u64,
    canceled: u64,
    snoozed: u64,
    released: u64,
    /// Attempts whose lease was lost
    lost: u64,
    /// How long attempts ran that ended as succeeded, retried, failed or dead
    run: Took,
    /// How long jobs waited for their first start, from when they were due
    wait: Took,
}

/// How long something took, in milliseconds. The quantiles are read from fixed buckets: about right.
#[derive(Debug, Serialize, ToSchema)]
pub struct Took {
    /// How many
    count: u64,
    /// All together
    sum_ms: u64,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
}

impl From<&Histogram> for Took {
    fn from(took: &Histogram) -> Self {
        // Nothing finer than a microsecond was ever there.
        let quantile = |q| took.quantile(q).map(|took| took.as_micros() as f64 / 1_000.0);
        let (p50_ms, p95_ms, p99_ms) = (quantile(0.5), quantile(0.95), quantile(0.99));
        Self { count: took.count(), sum_ms: took.sum_ms(), p50_ms, p95_ms, p99_ms }
    }
}

impl From<&Rollup> for FiguresLine {
    fn from(line: &Rollup) -> Self {
        let Figures { claimed, succeeded, retried, failed, dead, canceled, snoozed, released, lost, .. } = line.figures;
        Self {
            at: line.at.to_string(),
            queue: line.queue.as_ref().map(ToString::to_string),
            kind: line.kind.as_ref().map(ToString::to_string),
            tenant: line.tenant.as_ref().map(ToString::to_string),
            claimed,
            succeeded,
            retried,
            failed,
            dead,
            canceled,
            snoozed,
            released,
            lost,
            run: (&line.figures.run).into(),
            wait: (&line.figures.wait).into(),
        }
    }
}
