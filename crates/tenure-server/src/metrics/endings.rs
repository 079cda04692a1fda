//! How attempts ended and how long they took, since the store began: from its rollups, so that whoever worked is counted.

use tenure_core::{Histogram, Timestamp};
use tenure_store::operate::BATCH_MAX;
use tenure_store::record::Sight;
use tenure_store::rollup::{By, Figures, RollupFilter, Step};
use tenure_store::{Store, StoreError};

use super::catalogue as is;
use super::text::{Families, Metric, OTHER, bounded};

/// Between a queue and a kind: neither has it.
const BETWEEN: char = '\n';

pub(super) async fn gather(families: &mut Families, store: &dyn Store) -> Result<(), StoreError> {
    let filter = RollupFilter {
        sight: Sight::All,
        step: Step::All,
        since: Timestamp::EPOCH,
        until: Timestamp::MAX,
        queue: None,
        kind: None,
        by: By::QueueAndKind,
        limit: BATCH_MAX,
    };
    let lines = store.list_rollups(&filter).await?.into_iter().filter_map(|line| {
        let (queue, kind) = (line.queue?, line.kind?);
        Some((format!("{queue}{BETWEEN}{kind}"), line.figures))
    });
    for (name, figures) in bounded(lines, |others: &mut Figures, one| others.merge(&one)) {
        // What is beyond the hundred is not told: it would jump when another one comes, as no counter may.
        let Some((queue, kind)) = name.split_once(BETWEEN) else { continue };
        let counts = [
            ("succeeded", figures.succeeded),
            ("retry", figures.retried),
            ("failed", figures.failed),
            ("dead", figures.dead),
            ("canceled", figures.canceled),
            ("snoozed", figures.snoozed),
            ("released", figures.released),
            ("lost", figures.lost),
        ];
        // Also those that have not happened: an increase is seen only of what was there before.
        for (outcome, count) in counts {
            let labels = [("queue", queue), ("kind", kind), ("outcome", outcome)];
            families.put(&is::ATTEMPTS, &labels, count as f64);
        }
    }
    let queues = store.list_rollups(&RollupFilter { by: By::Queue, ..filter }).await?;
    let queues = queues.into_iter().filter_map(|line| Some((line.queue?.to_string(), line.figures)));
    for (queue, figures) in bounded(queues, |others: &mut Figures, one| others.merge(&one)) {
        if queue == OTHER {
            continue;
        }
        times(families, &is::RUN_SECONDS, &queue, &figures.run);
        times(families, &is::WAIT_SECONDS, &queue, &figures.wait);
    }
    Ok(())
}

fn times(families: &mut Families, metric: &'static Metric, queue: &str, times: &Histogram) {
    let mut below = 0;
    for (bound, count) in Histogram::bounds().iter().zip(times.counts()) {
        below += count;
        let bound = bound.as_secs_f64().to_string();
        families.put_part(metric, "_bucket", &[("queue", queue), ("le", &bound)], below as f64);
    }
    families.put_part(metric, "_bucket", &[("queue", queue), ("le", "+Inf")], times.count() as f64);
    families.put_part(metric, "_sum", &[("queue", queue)], times.sum_micros() as f64 / 1e6);
    families.put_part(metric, "_count", &[("queue", queue)], times.count() as f64);
}
