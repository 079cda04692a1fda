//! The charts of the overview, from rollups.

use std::collections::HashMap;
use std::time::Duration;

use tenure_core::Timestamp;
use tenure_store::record::Sight;
use tenure_store::rollup::{By, Figures, GateFailures, Rollup, RollupFilter, Step};
use tenure_store::{Store, StoreError};

use super::Within;
use crate::bits::{self, Markup};
use crate::chart::{self, Column, Point};

/// Kinds, and gates, that are told.
const TOLD: u32 = 6;

/// Everything that charts show.
pub(super) struct Charts {
    pub(super) now: Timestamp,
    /// All of the time that is shown.
    pub(super) all: Figures,
    pub(super) kinds: Vec<Rollup>,
    pub(super) failing: Vec<GateFailures>,
    points: Vec<(Timestamp, Figures)>,
    width: Duration,
    /// How much of the shown time there are figures for: a rate divides by it.
    covered: Duration,
}

impl Charts {
    pub(super) async fn read(
        store: &dyn Store,
        sight: &Sight,
        within: Within,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let step = match within {
            Within::Hour => Step::Minute,
            Within::Day => Step::Quarter,
            Within::Week => Step::TwoHours,
        };
        let width = step.width().unwrap_or(within.time());
        let since = step.start_of(now.minus(within.time())).plus(width);
        let filter = filter_of(sight, step, since);
        let lines = store.list_rollups(&filter).await?;
        let kinds = store.list_rollups(&RollupFilter { by: By::Kind, limit: TOLD, ..filter }).await?;
        let failing = store.list_failing_gates(sight, since, TOLD).await?;
        let mut all = Figures::default();
        lines.iter().for_each(|line| all.merge(&line.figures));
        let is_older = has_figures_before(store, &filter_of(sight, step, since)).await?;
        let covered = covered(since, lines.first().map(|line| line.at).filter(|_| !is_older), now);
        let known: HashMap<Timestamp, Figures> = lines.into_iter().map(|line| (line.at, line.figures)).collect();
        // A time in which nothing happened is a column, too.
        let mut points = Vec::new();
        let mut at = since;
        while at <= now {
            points.push((at, known.get(&at).copied().unwrap_or_default()));
            at = at.plus(width);
        }
        Ok(Self { now, all, kinds, failing, points, width, covered })
    }

    pub(super) fn throughput(&self) -> Markup {
        let columns: Vec<Column> =
            self.points.iter().map(|(at, figures)| Column { at: *at, parts: parts(figures) }).collect();
        let [good, again, bad] = parts(&self.all);
        let label = format!("Attempts that ended: {good} succeeded, {again} tried again, {bad} failed or dead");
        chart::bars(&columns, self.width, &label)
    }

    pub(super) fn latency(&self) -> Markup {
        let point = |(at, figures): &(Timestamp, Figures)| Point {
            at: *at,
            values: [figures.run.quantile(0.5), figures.run.quantile(0.95)],
        };
        let points: Vec<Point> = self.points.iter().map(point).collect();
        chart::lines(&points, &format!("How long jobs ran: {}", self.ran()))
    }

    /// How long jobs ran, in a few words.
    pub(super) fn ran(&self) -> String {
        said(&self.all.run)
    }

    /// How long they waited.
    pub(super) fn waited(&self) -> String {
        said(&self.all.wait)
    }

    /// Of those that did their work or failed at it.
    pub(super) fn failure_share(&self, figures: &Figures) -> String {
        let [good, again, bad] = parts(figures);
        match good + again + bad {
            0 => "–".to_owned(),
            all => format!("{:.1} %", (again + bad) as f64 * 100.0 / all as f64),
        }
    }

    /// In a second, or in a minute.
    pub(super) fn rate(&self) -> String {
        rate(self.all.succeeded, self.covered)
    }

    /// What the picture shows, as numbers.
    pub(super) fn table(&self) -> Vec<(Markup, [u64; 3])> {
        let happened = self.points.iter().rev().filter(|(_, figures)| parts(figures).iter().any(|part| *part > 0));
        happened.take(20).map(|(at, figures)| (bits::clock(at), parts(figures))).collect()
    }
}

/// Whether anything happened before the shown time: then all of that time is covered, also where nothing happened in it.
/// Sums of two hours tell about all but the last two hours before it, sums of the shown step about those.
async fn has_figures_before(store: &dyn Store, shown: &RollupFilter) -> Result<bool, StoreError> {
    let whole = Step::TwoHours.start_of(shown.since);
    let older = RollupFilter {
        step: Step::TwoHours,
        since: whole.minus(Within::Week.time()),
        until: whole,
        limit: 1,
        ..shown.clone()
    };
    let newer = RollupFilter { since: whole, until: shown.since, limit: 1, ..shown.clone() };
    Ok(!store.list_rollups(&older).await?.is_empty() || !store.list_rollups(&newer).await?.is_empty())
}

/// Sums of all kinds together, from this moment on.
fn filter_of(sight: &Sight, step: Step, since: Timestamp) -> RollupFilter {
    RollupFilter {
        sight: sight.clone(),
        step,
        since,
        until: Timestamp::MAX,
        queue: None,
        kind: None,
        by: By::Time,
        limit: 1_000,
    }
}

/// From the beginning of the shown time, or from the first figures there are, until now.
fn covered(since: Timestamp, first: Option<Timestamp>, now: Timestamp) -> Duration {
    now.since(first.map_or(since, |first| first.max(since)))
}

fn rate(jobs: u64, time: Duration) -> String {
    let rate = jobs as f64 / time.as_secs_f64().max(1.0);
    match rate {
        10.0.. => format!("{rate:.0}/s"),
        1.0.. => format!("{rate:.1}/s"),
        _ => format!("{:.1}/min", rate * 60.0),
    }
}

fn parts(figures: &Figures) -> [u64; 3] {
    [figures.succeeded, figures.retried + figures.lost, figures.failed + figures.dead]
}

fn said(times: &tenure_core::Histogram) -> String {
    let quantile = |q| times.quantile(q).map_or("–".to_owned(), |time| bits::span(&time));
    format!("p50 {}, p95 {}, p99 {}", quantile(0.5), quantile(0.95), quantile(0.99))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_divides_by_the_time_that_is_covered() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let since = Timestamp::EPOCH.plus(minutes(600));
        let now = since.plus(minutes(59)).plus(Duration::from_secs(30));
        let first = since.plus(minutes(54));
        assert_eq!(covered(since, Some(first), now), Duration::from_secs(330), "the first figures are 5½ minutes old");
        assert_eq!(rate(33_000, covered(since, Some(first), now)), "100/s");
        assert_eq!(covered(since, None, now), Duration::from_secs(59 * 60 + 30), "the last minute is not over");
        assert_eq!(covered(since, Some(since.minus(minutes(3))), now), Duration::from_secs(59 * 60 + 30));
        assert_eq!(rate(0, Duration::ZERO), "0.0/min");
        assert_eq!(rate(30, minutes(60)), "0.5/min");
    }
}
