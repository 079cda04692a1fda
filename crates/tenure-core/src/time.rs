//! A moment in time: microseconds since 1970, what both databases store exactly.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::invalid::Invalid;

/// A moment, by the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp(i64);

impl Timestamp {
    /// 1970-01-01, the earliest date accepted from outside.
    pub const EPOCH: Self = Self(0);
    /// 9999-12-30T00:00:00Z, the latest: both databases, RFC 3339 and every time zone's local time can hold it.
    pub const MAX: Self = Self(253_402_128_000_000_000);

    /// From microseconds since 1970; clamped into the accepted range.
    pub const fn from_micros(micros: i64) -> Self {
        if micros < Self::EPOCH.0 {
            Self::EPOCH
        } else if micros > Self::MAX.0 {
            Self::MAX
        } else {
            Self(micros)
        }
    }

    /// Microseconds since 1970.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Milliseconds since 1970.
    pub const fn as_millis(self) -> i64 {
        self.0 / 1_000
    }

    /// Later by `by`; stops at [`Timestamp::MAX`] instead of overflowing.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.0.saturating_add(by))
    }

    /// Earlier by `by`; stops at [`Timestamp::EPOCH`].
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        Self::from_micros(self.0.saturating_sub(by))
    }

    /// How long from `earlier` to here; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// Reads an RFC 3339 date such as `2026-11-15T09:30:00Z`; `field` names it in the refusal.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, Invalid> {
        let refuse = || Invalid::new(field, text, "a date is RFC 3339 from 1970 to 9999, such as 2026-11-15T09:30:00Z");
        let micros = text.parse::<jiff::Timestamp>().map_err(|_| refuse())?.as_microsecond();
        if (Self::EPOCH.0..=Self::MAX.0).contains(&micros) { Ok(Self(micros)) } else { Err(refuse()) }
    }
}

impl FromStr for Timestamp {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::parse("date", text)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(at) => at.fmt(f),
            // Cannot happen: every constructor clamps into jiff's range.
            Err(_) => write!(f, "{} µs", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_and_written_as_rfc_3339() {
        let at = Timestamp::parse("run_at", "2026-11-15T09:30:00.25+01:00").unwrap();
        assert_eq!(at.to_string(), "2026-11-15T08:30:00.25Z");
        assert_eq!(Timestamp::MAX.to_string(), "9999-12-30T00:00:00Z");
    }

    #[test]
    fn dates_no_database_could_hold_are_refused() {
        for bad in ["", "tomorrow", "1969-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "infinity"]
        {
            assert_eq!(Timestamp::parse("run_at", bad).unwrap_err().field, "run_at", "{bad}");
        }
    }

    #[test]
    fn arithmetic_stops_at_the_ends() {
        assert_eq!(Timestamp::MAX.plus(Duration::MAX), Timestamp::MAX);
        assert_eq!(Timestamp::EPOCH.minus(Duration::MAX), Timestamp::EPOCH);
        assert_eq!(Timestamp::EPOCH.since(Timestamp::MAX), Duration::ZERO);
        assert_eq!(Timestamp::EPOCH.plus(Duration::from_secs(90)).since(Timestamp::EPOCH), Duration::from_secs(90));
    }
}
