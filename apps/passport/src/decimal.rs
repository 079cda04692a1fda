//! [`Decimal`]: an exact decimal number. No float ever stands for an amount.

use std::fmt;

use tenure::Invalid;

/// Most digits before the point.
pub const WHOLE_DIGITS_MAX: usize = 12;
/// Most digits behind it.
pub const DECIMALS_MAX: usize = 6;

/// Millionths, as they were written: `-12.50` is -12,500,000, and says `-12.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Decimal(i64);

impl Decimal {
    const ONE: i64 = 1_000_000;

    /// Reads `12`, `-0.5`, `3.250`: digits, a point, digits. No plus sign, no comma, no exponent, nothing rounded.
    pub fn parse(field: &'static str, text: &str) -> Result<Self, Invalid> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        match units(digits, DECIMALS_MAX).and_then(|millionths| i64::try_from(millionths).ok()) {
            Some(millionths) => Ok(Self(if digits.len() < text.len() { -millionths } else { millionths })),
            None => {
                let limit = format!(
                    "a decimal is up to {WHOLE_DIGITS_MAX} digits, then a point and up to {DECIMALS_MAX} more, such as 12.5"
                );
                Err(Invalid::new(field, text, limit))
            }
        }
    }

    /// Whether it is above zero.
    pub const fn is_positive(self) -> bool {
        self.0 > 0
    }

    /// A whole number, if it has no more digits than are kept.
    pub fn whole(number: i64) -> Option<Self> {
        let limit = 10_i64.checked_pow(WHOLE_DIGITS_MAX as u32)?;
        (number.unsigned_abs() < limit.unsigned_abs()).then(|| Self(number * Self::ONE))
    }
}

/// How many units of 10^-`decimals` a decimal without sign is: `units("12.5", 3)` is 12,500. `None` when it is no decimal,
/// has more than `decimals` digits behind its point, or more than [`WHOLE_DIGITS_MAX`] before it.
pub fn units(text: &str, decimals: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').map_or((text, None), |(whole, part)| (whole, Some(part)));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if whole.len() > WHOLE_DIGITS_MAX || !is_digits(whole) || part.is_some_and(|part| !is_digits(part)) {
        return None;
    }
    let part = part.unwrap_or_default();
    if part.len() > decimals {
        return None;
    }
    format!("{whole}{part:0<decimals$}").parse().ok()
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, size) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let (whole, part) = (size / Self::ONE.unsigned_abs(), size % Self::ONE.unsigned_abs());
        let part = format!("{part:06}");
        match part.trim_end_matches('0') {
            "" => write!(f, "{sign}{whole}"),
            part => write!(f, "{sign}{whole}.{part}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn decimals_are_exact_and_have_one_text() {
        for (text, shown) in [
            ("0", "0"),
            ("-0.0", "0"),
            ("12.50", "12.5"),
            ("007", "7"),
            ("-0.000001", "-0.000001"),
            ("0.1", "0.1"),
            ("999999999999.999999", "999999999999.999999"),
        ] {
            assert_eq!(Decimal::parse("capacity", text).unwrap().to_string(), shown);
        }
    }

    #[test]
    fn what_would_be_guessed_or_rounded_is_refused() {
        for bad in [
            "",
            "-",
            ".",
            ".5",
            "5.",
            "1,5",
            "+1",
            "1e3",
            " 1",
            "1.2.3",
            "--1",
            "0.1234567",
            "1234567890123",
            "٣",
            "NaN",
        ] {
            let refused = Decimal::parse("capacity", bad).unwrap_err();
            assert!(refused.field == "capacity" && refused.limit.contains("12.5"), "{bad:?}");
        }
    }

    #[test]
    fn units_count_in_the_place_that_is_asked_for() {
        assert_eq!(units("12.5", 3), Some(12_500));
        assert_eq!(units("12", 0), Some(12));
        assert_eq!(units("12.", 3), None);
        assert_eq!(units("0.0001", 3), None, "a tenth of a unit is not rounded");
        assert_eq!(units("-1", 3), None);
    }

    #[test]
    fn whole_numbers_of_too_many_digits_are_none() {
        assert_eq!(Decimal::whole(-7).unwrap().to_string(), "-7");
        assert_eq!(Decimal::whole(999_999_999_999).unwrap().to_string(), "999999999999");
        for bad in [1_000_000_000_000, -1_000_000_000_000, i64::MAX, i64::MIN] {
            assert_eq!(Decimal::whole(bad), None);
        }
    }

    proptest! {
        #[test]
        fn order_is_that_of_the_numbers(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000) {
            let [x, y] = [a, b].map(|n| {
                let sign = if n < 0 { "-" } else { "" };
                let text = format!("{sign}{}.{:03}", n.abs() / 1_000, n.abs() % 1_000);
                Decimal::parse("n", &text).unwrap()
            });
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(Decimal::parse("n", &x.to_string()).unwrap(), x);
        }
    }
}
