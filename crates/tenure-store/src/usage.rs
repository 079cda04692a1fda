//! What handlers said that they used: kept with each attempt, and summed by day, tenant, kind and name.

use std::fmt;
use std::str::FromStr;

use tenure_core::name::{KindName, TenantName};
use tenure_core::{Invalid, Json, Timestamp};

use crate::record::Sight;

/// Largest usage record, in bytes of JSON.
pub const USAGE_BYTES_MAX: usize = 16 << 10;
/// Most figures of one usage record: its own members that are numbers.
pub const USAGE_FIGURES_MAX: usize = 100;
/// Longest name of a figure, in characters.
pub const USAGE_NAME_CHARS_MAX: usize = 100;
/// Largest figure. A billion attempts of this size add up far below what a 64-bit float can hold.
pub const USAGE_AMOUNT_MAX: f64 = 1e15;

/// Refuses a usage record that the daily totals cannot hold. On Postgres `tenure.check_usage` refuses the same.
pub fn check_usage(usage: &Json) -> Result<(), Invalid> {
    usage.check_bytes("usage", USAGE_BYTES_MAX)?;
    let figures = usage.figures();
    if figures.len() > USAGE_FIGURES_MAX {
        let given = format!("of {} figures", figures.len());
        return Err(Invalid::new("usage", given, format!("it has at most {USAGE_FIGURES_MAX} figures")));
    }
    for (name, amount) in figures {
        if name.chars().count() > USAGE_NAME_CHARS_MAX {
            let limit = format!("the name of a figure has at most {USAGE_NAME_CHARS_MAX} characters");
            return Err(Invalid::new("usage", name, limit));
        }
        if !(0.0..=USAGE_AMOUNT_MAX).contains(&amount) {
            return Err(Invalid::new("usage", format!("{name}: {amount}"), "a figure is 0 to 1e15"));
        }
    }
    Ok(())
}

/// Which sums to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageFilter {
    /// Whose.
    pub sight: Sight,
    /// Only of this kind.
    pub kind: Option<KindName>,
    /// From the day of this moment on, by UTC.
    pub since: Timestamp,
    /// Only totals behind this one, in the order of the list.
    pub after: Option<UsagePlace>,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

/// The place of a total in a list: the newest day first, then by tenant, kind and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsagePlace {
    /// The day, by UTC: its first moment.
    pub day: Timestamp,
    /// Whose jobs.
    pub tenant: TenantName,
    /// Of which kind.
    pub kind: KindName,
    /// Of what.
    pub name: String,
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

impl UsageTotal {
    /// Its place in a list.
    pub fn place(&self) -> UsagePlace {
        UsagePlace { day: self.day, tenant: self.tenant.clone(), kind: self.kind.clone(), name: self.name.clone() }
    }
}

impl UsagePlace {
    /// Whether a total of this place comes later in a list than the other one.
    pub fn is_behind(&self, other: &Self) -> bool {
        let names = |place: &Self| (place.tenant.clone(), place.kind.clone(), place.name.clone());
        self.day < other.day || self.day == other.day && names(self) > names(other)
    }
}

impl fmt::Display for UsagePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.day.as_micros(), self.tenant, self.kind, self.name)
    }
}

impl FromStr for UsagePlace {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let refuse = || Invalid::new("place", text, "it is a day, a tenant, a kind and a name");
        let mut parts = text.splitn(4, ' ');
        let mut part = || parts.next().ok_or_else(refuse);
        let day = part()?.parse().map_err(|_| refuse())?;
        Ok(Self {
            day: Timestamp::from_micros(day),
            tenant: part()?.parse()?,
            kind: part()?.parse()?,
            name: part()?.to_owned(),
        })
    }
}

/// The first moment of a day, by UTC.
pub fn day_of(at: Timestamp) -> Timestamp {
    const DAY_MICROS: i64 = 86_400_000_000;
    Timestamp::from_micros(at.as_micros().div_euclid(DAY_MICROS) * DAY_MICROS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_record_that_the_totals_cannot_hold_is_refused() {
        let checked = |text: &str| check_usage(&Json::parse("usage", text).expect("JSON")).map_err(|why| why.limit);
        let many: Vec<String> = (0..101).map(|n| format!("\"{n}\":1")).collect();
        for (bad, why) in [
            (r#"{"tokens":-1}"#.to_owned(), "a figure is 0 to 1e15"),
            (r#"{"tokens":1.7e308}"#.to_owned(), "a figure is 0 to 1e15"),
            (format!("{{\"{}\":1}}", "x".repeat(101)), "at most 100 characters"),
            (format!("{{{}}}", many.join(",")), "at most 100 figures"),
            (format!("{{\"note\":\"{}\"}}", "x".repeat(USAGE_BYTES_MAX)), "at most 16384 bytes"),
        ] {
            let refused = checked(&bad).expect_err(&bad);
            assert!(refused.contains(why), "{bad:.40}: {refused}");
        }
        for good in [r#"{"tokens":0,"cost":1e15,"note":"-1"}"#, "{}", "[1,-2]", r#"{"deep":{"a":-1}}"#] {
            assert_eq!(checked(good), Ok(()), "{good}");
        }
        assert_eq!(checked(&format!("{{{}}}", many[..100].join(","))), Ok(()));
    }
}
