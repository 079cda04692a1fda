//! What a scheduler does now, given when it last fired.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Cron, Zone};
use crate::invalid::Invalid;
use crate::time::Timestamp;

/// The grace of a schedule that says nothing.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(60);

/// What becomes of fires that nobody was there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missed {
    /// They are dropped.
    #[default]
    Skip,
    /// The latest of them is made up, once.
    Once,
}

/// When a schedule fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// The times.
    pub cron: Cron,
    /// Whose clock they are read from.
    pub zone: Zone,
    /// What becomes of missed fires.
    pub missed: Missed,
    /// A fire is missed when it is longer ago than this.
    pub grace: Duration,
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The fire to enqueue a job for, if there is one: always after the last one, never after now.
    pub fire: Option<Timestamp>,
    /// The fire after that, or the first to come if there is none to enqueue. It may be due as well.
    pub next: Option<Timestamp>,
}

impl Timing {
    /// In UTC; missed fires are dropped, after a minute's grace.
    pub fn new(cron: Cron) -> Self {
        Self { cron, zone: Zone::UTC, missed: Missed::default(), grace: GRACE_DEFAULT }
    }

    /// The first fire strictly after `after`.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        self.cron.next_after(&self.zone, after)
    }

    /// The fire to enqueue at `now`, when the last one was at `last` (or the schedule was created then).
    ///
    /// ```text
    ///        last                     now - grace        now
    /// ────────┼──────────────────────────┼────────────────┼───────────▶
    ///         │    ▲    ▲    ▲    ▲      │    ▲    ▲      │    ▲
    ///  Skip   │    dropped               │    1    2      │    next
    ///  Once   │    dropped        1      │    2    3      │    next
    /// ```
    /// One call answers one fire. While there is one, enqueue it, take it for `last` and call again. A caller with a
    /// store moves `last` and inserts the row of (schedule, fire time) in one transaction, and only where `last` is
    /// still what it read: two callers a second apart may hold different fires for the latest missed one.
    pub fn due(&self, last: Timestamp, now: Timestamp) -> Due {
        let on_time = now.minus(self.grace);
        let fire = match self.missed {
            Missed::Skip => None,
            Missed::Once => self.latest_between(last, on_time),
        };
        // Fires are on whole seconds: just before `on_time` is early enough to find one at `on_time`.
        let fire = fire.or_else(|| self.next_after(last.max(just_before(on_time)))).filter(|fire| *fire <= now);
        Due { fire, next: self.next_after(fire.unwrap_or(last.max(now))) }
    }

    /// The latest fire after `low` and before `high`. It halves the time in question with each step, so a schedule of
    /// each second that slept for a year is answered as fast as any.
    fn latest_between(&self, low: Timestamp, high: Timestamp) -> Option<Timestamp> {
        let fire_in = |after, before| self.next_after(after).filter(|fire| *fire < before);
        let mut latest = fire_in(low, high)?;
        let mut none_after = high;
        while let Some(next) = fire_in(latest, none_after) {
            let middle = next.plus(none_after.since(next) / 2);
            match fire_in(middle, high) {
                Some(fire) => latest = fire,
                None => (latest, none_after) = (next, middle.plus(Duration::from_micros(1))),
            }
        }
        Some(latest)
    }
}

fn just_before(at: Timestamp) -> Timestamp {
    at.minus(Duration::from_micros(1))
}

impl fmt::Display for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Skip => "skip",
            Self::Once => "once",
        })
    }
}

impl FromStr for Missed {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        match text {
            "skip" => Ok(Self::Skip),
            "once" => Ok(Self::Once),
            _ => Err(Invalid::new("missed", text, "it is skip or once")),
        }
    }
}
