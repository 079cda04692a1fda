//! What handlers said that they used: kept with each attempt, and summed by day, tenant, kind and name.

use tenure_core::name::{KindName, TenantName};
use tenure_core::{Invalid, Timestamp};

use crate::record::Sight;

/// Longest name of something that is used; a longer one is cut.
pub const USAGE_NAME_CHARS_MAX: usize = 100;

/// Which sums to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageFilter {
    /// Whose.
    pub sight: Sight,
    /// Only of this kind.
    pub kind: Option<KindName>,
    /// From the day of this moment on, by UTC.
    pub since: Timestamp,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

/// What jobs of one kind used of one thing in one day.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageTotal {
    /// The day, by UTC: its first moment.
    pub day: Timestamp,
    /// Whose jobs.
    pub tenant: TenantName,
    /// Of which kind.
    pub kind: KindName,
    /// Of what.
    pub name: String,
    /// How much.
    pub amount: f64,
    /// By how many attempts.
    pub attempts: u64,
}

impl UsageFilter {
    /// Refuses a page that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::operate::check_batch(self.limit)
    }
}

/// The first moment of a day, by UTC.
pub fn day_of(at: Timestamp) -> Timestamp {
    const DAY_MICROS: i64 = 86_400_000_000;
    Timestamp::from_micros(at.as_micros().div_euclid(DAY_MICROS) * DAY_MICROS)
}
