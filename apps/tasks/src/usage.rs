//! [`Usage`]: what a task used, in time, in bytes and in units.
//!
//! Time is what its handler took, bytes are what went over the wire or through its hands, and units are what somebody
//! would be charged: one for each begun KiB of a document that is fetched, one for each begun hundred of words that are
//! counted, one for each task in a report.

use std::ops::AddAssign;
use std::time::Instant;

use serde::{Deserialize, Serialize};

/// Bytes of a unit of fetching.
const FETCHED_PER_UNIT: u64 = 1 << 10;
/// Words of a unit of counting.
const WORDS_PER_UNIT: u64 = 100;

/// What one task used, or many together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Milliseconds that it took.
    pub ms: u64,
    /// Bytes that it read.
    pub bytes: u64,
    /// What it is charged.
    pub units: u64,
}

impl Usage {
    /// Of fetching so many bytes.
    pub fn of_fetch(since: Instant, bytes: u64) -> Self {
        Self { ms: millis(since), bytes, units: bytes.div_ceil(FETCHED_PER_UNIT) }
    }

    /// Of counting so many words in so many bytes.
    pub fn of_digest(since: Instant, bytes: u64, words: u64) -> Self {
        Self { ms: millis(since), bytes, units: words.div_ceil(WORDS_PER_UNIT) }
    }

    /// Of a report over so many tasks; what they read is not read again.
    pub fn of_report(since: Instant, tasks: u64) -> Self {
        Self { ms: millis(since), bytes: 0, units: tasks }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.ms = self.ms.saturating_add(other.ms);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.units = self.units.saturating_add(other.units);
    }
}

fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_begun_unit_is_a_unit_and_nothing_is_none() {
        let now = Instant::now();
        let fetched = [0, 1, 1_024, 1_025].map(|bytes| Usage::of_fetch(now, bytes).units);
        assert_eq!(fetched, [0, 1, 1, 2]);
        let counted = [0, 1, 100, 101].map(|words| Usage::of_digest(now, 7, words).units);
        assert_eq!(counted, [0, 1, 1, 2]);
        assert_eq!((Usage::of_report(now, 3).bytes, Usage::of_report(now, 3).units), (0, 3));
    }

    #[test]
    fn sums_do_not_overflow() {
        let mut sum = Usage { ms: 1, bytes: u64::MAX, units: 2 };
        sum += Usage { ms: 2, bytes: 1, units: 3 };
        assert_eq!(sum, Usage { ms: 3, bytes: u64::MAX, units: 5 });
    }
}
