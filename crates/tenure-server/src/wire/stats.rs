//! Figures as JSON: queues, and how attempts ended lately.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tenure_core::How;
use tenure_core::name::KindName;
use tenure_store::record::{ENDING_COUNTS_MAX, EndingCount, QueueRecord};
use utoipa::ToSchema;

use super::worker::QueueLine;

/// Attempts by how they ended.
#[derive(Debug, Clone, Default)]
pub struct Endings(BTreeMap<&'static str, u64>);

/// Attempts by how they ended, and by kind.
#[derive(Debug, Default)]
pub struct Counted {
    /// Of each kind.
    pub kinds: BTreeMap<KindName, Endings>,
    /// Of all.
    pub total: Endings,
    /// Whether the store counted to the end.
    pub complete: bool,
}

/// Attempts by how they ended, and the share of failures among them.
#[derive(Debug, Serialize, ToSchema)]
pub struct EndingsLine {
    succeeded: u64,
    retry: u64,
    failed: u64,
    dead: u64,
    canceled: u64,
    snoozed: u64,
    released: u64,
    lost: u64,
    /// Null where nothing did the work or failed at it
    failure_share: Option<f64>,
}

/// The endings of one kind.
#[derive(Debug, Serialize, ToSchema)]
pub struct KindLine {
    kind: String,
    #[serde(flatten)]
    endings: EndingsLine,
}

/// What waits, and how attempts ended lately.
#[derive(Debug, Serialize, ToSchema)]
pub struct StatsDocument {
    within_ms: u64,
    queues: Vec<QueueLine>,
    kinds: Vec<KindLine>,
    total: EndingsLine,
    /// False when there were too many kinds to count them all
    complete: bool,
}

impl Endings {
    fn add(&mut self, how: How, count: u64) {
        *self.0.entry(how.as_str()).or_default() += count;
    }

    /// How many ended so.
    pub fn get(&self, how: How) -> u64 {
        self.0.get(how.as_str()).copied().unwrap_or(0)
    }

    /// All of them.
    pub fn sum(&self) -> u64 {
        self.0.values().sum()
    }

    /// Failures among the attempts that did the work or failed at it; `None` where there was none of either.
    pub fn share(&self) -> Option<f64> {
        let failures: u64 = [How::Retry, How::Failed, How::Dead, How::Lost].into_iter().map(|how| self.get(how)).sum();
        let all = failures + self.get(How::Succeeded);
        (all > 0).then(|| failures as f64 / all as f64)
    }
}

impl Counted {
    /// Counts of a store, gathered by kind.
    pub fn new(counts: Vec<EndingCount>, wanted: impl Fn(&EndingCount) -> bool) -> Self {
        // A store answers a bounded number of lines, and tells by their number that it stopped there.
        let complete = counts.len() < ENDING_COUNTS_MAX as usize;
        let mut counted = Self { complete, ..Self::default() };
        for count in counts.into_iter().filter(wanted) {
            counted.kinds.entry(count.kind).or_default().add(count.how, count.count);
            counted.total.add(count.how, count.count);
        }
        counted
    }
}

impl From<&Endings> for EndingsLine {
    fn from(endings: &Endings) -> Self {
        Self {
            succeeded: endings.get(How::Succeeded),
            retry: endings.get(How::Retry),
            failed: endings.get(How::Failed),
            dead: endings.get(How::Dead),
            canceled: endings.get(How::Canceled),
            snoozed: endings.get(How::Snoozed),
            released: endings.get(How::Released),
            lost: endings.get(How::Lost),
            failure_share: endings.share(),
        }
    }
}

impl StatsDocument {
    /// Queues as they are, and endings of the last `within`.
    pub fn new(within: Duration, queues: &[QueueRecord], counted: &Counted) -> Self {
        let kind =
            |(kind, endings): (&KindName, &Endings)| KindLine { kind: kind.to_string(), endings: endings.into() };
        Self {
            within_ms: u64::try_from(within.as_millis()).unwrap_or(u64::MAX),
            queues: queues.iter().map(QueueLine::from).collect(),
            kinds: counted.kinds.iter().map(kind).collect(),
            total: (&counted.total).into(),
            complete: counted.complete,
        }
    }
}
