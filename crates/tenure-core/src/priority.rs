//! Priority 0 (critical) to 3 (low). Lower goes first, then the earlier `run_at`.
//!
//! Only four: the claim probes each priority as a range of its own, which keeps it flat however deep the backlog is.

use std::str::FromStr;

use crate::invalid::Invalid;

/// How urgent a job is among the due ones of its queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Priority(u8);

impl Priority {
    /// System maintenance and the like.
    pub const CRITICAL: Self = Self(0);
    /// Ahead of the ordinary.
    pub const HIGH: Self = Self(1);
    /// The default.
    pub const NORMAL: Self = Self(2);
    /// Whenever there is time.
    pub const LOW: Self = Self(3);
    /// All of them, most urgent first.
    pub const ALL: [Self; 4] = [Self::CRITICAL, Self::HIGH, Self::NORMAL, Self::LOW];

    /// Checks that `value` is 0..=3.
    pub fn new(value: i64) -> Result<Self, Invalid> {
        match u8::try_from(value) {
            Ok(p) if p <= Self::LOW.0 => Ok(Self(p)),
            _ => Err(Invalid::new("priority", value, "priorities are 0 (critical) to 3 (low)")),
        }
    }

    /// 0..=3.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// The name that people use for it: `critical`, `high`, `normal` or `low`.
    pub const fn as_str(self) -> &'static str {
        match self.0 {
            0 => "critical",
            1 => "high",
            2 => "normal",
            _ => "low",
        }
    }
}

/// Reads a name or a number, as people write it.
impl FromStr for Priority {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let named = Self::ALL.into_iter().find(|priority| priority.as_str() == text);
        let numbered = || text.parse().ok().and_then(|number| Self::new(number).ok());
        named.or_else(numbered).ok_or_else(|| {
            Invalid::new("priority", text, "a priority is critical, high, normal or low, or 0 to 3 (0 is critical)")
        })
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::NORMAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_and_its_number_are_the_same_priority() {
        for priority in Priority::ALL {
            assert_eq!(priority.as_str().parse(), Ok(priority));
            assert_eq!(priority.get().to_string().parse(), Ok(priority));
        }
        for bad in ["", "High", "urgent", "4", "-1", "2.0"] {
            let refused = bad.parse::<Priority>().unwrap_err();
            assert!(refused.to_string().contains("critical, high, normal or low, or 0 to 3"), "{refused}");
        }
    }

    #[test]
    fn only_zero_to_three_are_priorities() {
        assert_eq!(Priority::ALL.map(|p| Priority::new(i64::from(p.get())).unwrap()), Priority::ALL);
        for bad in [-1, 4, 256, i64::MIN, i64::MAX] {
            assert_eq!(Priority::new(bad).unwrap_err().field, "priority");
        }
    }
}
