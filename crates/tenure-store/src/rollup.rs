//! Rollups: how many jobs began and ended, and how long they ran and waited, summed by time, tenant, queue and kind.
//!
//! The sums come from the sealed journal and from nowhere else: a fold reads what was sealed since the last one, adds it
//! up and moves its cursor, all in one transaction. So whatever is read here is counted exactly once, and reading never
//! looks at a job. What happened is seen here about two seconds later; a job that was pruned before is left out.

use std::time::Duration;

use tenure_core::journal::JournalEvent;
use tenure_core::name::{GateName, KindName, QueueName, TenantName};
use tenure_core::{Histogram, How, Invalid, Timestamp};

use crate::record::Sight;

/// How much time one sum covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Step {
    /// A minute.
    Minute,
    /// A quarter of an hour.
    Quarter,
    /// Two hours.
    TwoHours,
    /// All of it: one sum for ever, whose moment is 1970. It only grows.
    All,
}

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

impl Step {
    /// Every step.
    pub const ALL: [Self; 4] = [Self::Minute, Self::Quarter, Self::TwoHours, Self::All];

    /// As a store keeps it.
    pub const fn code(self) -> i16 {
        match self {
            Self::Minute => 0,
            Self::Quarter => 1,
            Self::TwoHours => 2,
            Self::All => 3,
        }
    }

    /// How much time it covers; `None`: all of it.
    pub const fn width(self) -> Option<Duration> {
        match self {
            Self::Minute => Some(MINUTE),
            Self::Quarter => Some(Duration::from_secs(15 * 60)),
            Self::TwoHours => Some(Duration::from_secs(2 * 3_600)),
            Self::All => None,
        }
    }

    /// How long its sums are kept; `None`: for ever.
    pub const fn keep(self) -> Option<Duration> {
        match self {
            Self::Minute => Some(Duration::from_secs(2 * DAY.as_secs())),
            Self::Quarter => Some(Duration::from_secs(14 * DAY.as_secs())),
            Self::TwoHours => Some(Duration::from_secs(400 * DAY.as_secs())),
            Self::All => None,
        }
    }

    /// The step that shows so much time in some dozen lines.
    pub fn of_span(span: Duration) -> Self {
        match span {
            span if span <= 120 * MINUTE => Self::Minute,
            span if span <= 2 * DAY => Self::Quarter,
            _ => Self::TwoHours,
        }
    }

    /// The first moment of the sum that `at` is counted in.
    pub fn start_of(self, at: Timestamp) -> Timestamp {
        let Some(width) = self.width() else { return Timestamp::EPOCH };
        let width = i64::try_from(width.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(at.as_micros().div_euclid(width) * width)
    }

    /// Whether the sum that begins at `start` is still kept.
    pub fn keeps(self, start: Timestamp, now: Timestamp) -> bool {
        self.keep().is_none_or(|keep| start >= now.minus(keep))
    }
}

/// What a line of the answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// One step of time.
    Time,
    /// A queue, over the whole time.
    Queue,
    /// A kind, over the whole time.
    Kind,
    /// A tenant, over the whole time.
    Tenant,
    /// A kind in a queue, over the whole time.
    QueueAndKind,
}

impl By {
    /// Whether lines differ by their time.
    pub const fn has_time(self) -> bool {
        matches!(self, Self::Time)
    }

    /// Whether lines differ by their queue.
    pub const fn has_queue(self) -> bool {
        matches!(self, Self::Queue | Self::QueueAndKind)
    }

    /// Whether lines differ by their kind.
    pub const fn has_kind(self) -> bool {
        matches!(self, Self::Kind | Self::QueueAndKind)
    }

    /// Whether lines differ by their tenant.
    pub const fn has_tenant(self) -> bool {
        matches!(self, Self::Tenant)
    }
}

/// Which sums to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollupFilter {
    /// Whose.
    pub sight: Sight,
    /// By which step.
    pub step: Step,
    /// From the step of this moment on; with [`Step::All`] it says nothing.
    pub since: Timestamp,
    /// Up to this moment: steps that begin before it.
    pub until: Timestamp,
    /// Only of this queue.
    pub queue: Option<QueueName>,
    /// Only of this kind.
    pub kind: Option<KindName>,
    /// One line for each what.
    pub by: By,
    /// At most this many lines, 1..=1,000.
    pub limit: u32,
}

impl RollupFilter {
    /// Refuses a page that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        check_limit(self.limit)
    }

    /// The first moment of the first sum.
    pub fn start(&self) -> Timestamp {
        self.step.start_of(self.since)
    }
}

/// A line of the answer. What it is not about is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollup {
    /// The first moment of what is summed.
    pub at: Timestamp,
    /// Of which queue.
    pub queue: Option<QueueName>,
    /// Of which kind.
    pub kind: Option<KindName>,
    /// Whose.
    pub tenant: Option<TenantName>,
    /// The sums.
    pub figures: Figures,
}

/// How many attempts began and how they ended, and how long they took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// Attempts that began.
    pub claimed: u64,
    /// Those that ended well.
    pub succeeded: u64,
    /// Those that are tried again.
    pub retried: u64,
    /// Those that failed for good.
    pub failed: u64,
    /// Those that left a dead letter.
    pub dead: u64,
    /// Those that were canceled, before they began or after.
    pub canceled: u64,
    /// Those that wait until later.
    pub snoozed: u64,
    /// Those that were given back.
    pub released: u64,
    /// Those whose lease was lost.
    pub lost: u64,
    /// How long attempts ran that ended as succeeded, retried, failed or dead.
    pub run: Histogram,
    /// How long jobs waited for their first start, from when they were due. What waited to be opened is left out.
    pub wait: Histogram,
}

impl Figures {
    /// Counts what happened to one job, if it is something that is counted.
    pub fn count(&mut self, event: JournalEvent, run: Option<Duration>, wait: Option<Duration>) {
        let counter = match event {
            JournalEvent::Claimed => &mut self.claimed,
            JournalEvent::Ended(How::Succeeded) => &mut self.succeeded,
            JournalEvent::Ended(How::Retry) => &mut self.retried,
            JournalEvent::Ended(How::Failed) => &mut self.failed,
            JournalEvent::Ended(How::Dead) => &mut self.dead,
            JournalEvent::Ended(How::Canceled) => &mut self.canceled,
            JournalEvent::Ended(How::Snoozed) => &mut self.snoozed,
            JournalEvent::Ended(How::Released) => &mut self.released,
            JournalEvent::Ended(How::Lost) => &mut self.lost,
            _ => return,
        };
        *counter += 1;
        run.into_iter().for_each(|run| self.run.add(run));
        wait.into_iter().for_each(|wait| self.wait.add(wait));
    }

    /// The counters in the order of the endings' codes, after the claims.
    pub const fn counters(&self) -> [u64; 9] {
        let Self { claimed, succeeded, retried, failed, dead, canceled, snoozed, released, lost, .. } = *self;
        [claimed, succeeded, retried, failed, dead, canceled, snoozed, released, lost]
    }

    /// From [counters](Self::counters).
    pub const fn from_store(counters: [u64; 9], run: Histogram, wait: Histogram) -> Self {
        let [claimed, succeeded, retried, failed, dead, canceled, snoozed, released, lost] = counters;
        Self { claimed, succeeded, retried, failed, dead, canceled, snoozed, released, lost, run, wait }
    }

    /// Counts all that another has counted.
    pub fn merge(&mut self, other: &Self) {
        let (mut counters, more) = (self.counters(), other.counters());
        counters.iter_mut().zip(more).for_each(|(counter, more)| *counter += more);
        let (mut run, mut wait) = (self.run, self.wait);
        run.merge(&other.run);
        wait.merge(&other.wait);
        *self = Self::from_store(counters, run, wait);
    }
}

/// Whether an ending tells how its gate did: not what was canceled, put off or given back, nor a lease that we lost.
/// `Some(true)`: badly.
pub const fn is_unhealthy(event: JournalEvent) -> Option<bool> {
    match event {
        JournalEvent::Ended(How::Succeeded) => Some(false),
        JournalEvent::Ended(How::Retry | How::Failed | How::Dead) => Some(true),
        _ => None,
    }
}

/// How jobs of one gate ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateFailures {
    /// Which gate.
    pub gate: GateName,
    /// Attempts that ended as succeeded, retried, failed or dead.
    pub ended: u64,
    /// Those of them that did not succeed.
    pub unhealthy: u64,
}

/// Refuses an answer that is empty or too large.
pub fn check_limit(limit: u32) -> Result<(), Invalid> {
    crate::operate::check_batch(limit)
}

/// The order of lines: by time, or the busiest first; then by name.
pub fn sort(lines: &mut [Rollup]) {
    lines.sort_by(|a, b| {
        let names = |line: &Rollup| (line.queue.clone(), line.kind.clone(), line.tenant.clone());
        a.at.cmp(&b.at).then(b.figures.claimed.cmp(&a.figures.claimed)).then_with(|| names(a).cmp(&names(b)))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_counted_in_the_step_that_holds_it() {
        let at: Timestamp = "2026-11-15T09:47:31.5Z".parse().unwrap();
        for (step, start) in [
            (Step::Minute, "2026-11-15T09:47:00Z"),
            (Step::Quarter, "2026-11-15T09:45:00Z"),
            (Step::TwoHours, "2026-11-15T08:00:00Z"),
            (Step::All, "1970-01-01T00:00:00Z"),
        ] {
            assert_eq!(step.start_of(at).to_string(), start);
            assert_eq!(step.start_of(step.start_of(at)), step.start_of(at));
        }
    }

    #[test]
    fn an_hour_a_day_and_a_week_have_some_dozen_lines() {
        for (hours, lines) in [(1, 60), (24, 96), (7 * 24, 84)] {
            let span = Duration::from_secs(hours * 3_600);
            let width = Step::of_span(span).width().unwrap();
            assert_eq!(span.as_secs() / width.as_secs(), lines);
        }
    }

    #[test]
    fn every_ending_has_a_counter_of_its_own() {
        let mut figures = Figures::default();
        figures.count(JournalEvent::Claimed, None, Some(Duration::from_secs(1)));
        for how in How::ALL {
            figures.count(JournalEvent::Ended(how), Some(Duration::from_secs(2)), None);
        }
        figures.count(JournalEvent::Opened, None, None);
        assert_eq!(figures.counters(), [1; 9]);
        assert_eq!((figures.wait.count(), figures.run.sum_ms()), (1, 16_000));
        let mut twice = figures;
        twice.merge(&figures);
        assert_eq!(twice.counters(), [2; 9]);
        assert_eq!((twice.wait.count(), twice.run.sum_ms()), (2, 32_000));
    }
}
