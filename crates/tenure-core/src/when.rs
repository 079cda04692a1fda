//! A moment as people say it: a date, or how long ago.

use std::time::Duration;

use crate::duration;
use crate::invalid::Invalid;
use crate::time::Timestamp;

/// A moment in the past, mostly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// This one.
    At(Timestamp),
    /// So long before now.
    Ago(Duration),
}

impl When {
    /// Reads `2026-11-15T09:30:00Z`, or a duration such as `90m`: that long ago.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, Invalid> {
        if let Ok(ago) = duration::parse(field, text) {
            return Ok(Self::Ago(ago));
        }
        let limit = "it is a date such as 2026-11-15T09:30:00Z, or how long ago, such as 90m";
        Timestamp::parse(field, text).map(Self::At).map_err(|_| Invalid::new(field, text, limit))
    }

    /// The moment itself.
    pub fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(ago) => now.minus(ago),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_and_a_duration_are_told_apart() {
        let now = Timestamp::from_micros(1_763_197_200_000_000);
        let at = |text| When::parse("since", text).unwrap().at(now);
        assert_eq!(at("90m"), now.minus(Duration::from_secs(5_400)));
        assert_eq!(at(&now.to_string()), now);
        for bad in ["", "yesterday", "-1h", "1"] {
            assert_eq!(When::parse("since", bad).unwrap_err().field, "since", "{bad}");
        }
    }
}
