//! Prices from so many cents to below so many.
//!
//! Money is whole cents everywhere, in 64 bits, and never a float: a tenth of a dollar has no exact float, and a sum of a
//! hundred thousand prices shows it. Ranges have their start and not their end, so that neighbours share a number and no
//! price lies between them.

use std::fmt;
use std::str::FromStr;

use tenure::Invalid;

/// Dearest stone that is taken, in cents: a hundred million. The dearest at any auction so far was some seventy.
pub const PRICE_CENTS_MAX: u64 = 10_000_000_000;

/// From `min_cents` to below `max_cents`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PriceRange {
    min_cents: u64,
    max_cents: u64,
}

impl PriceRange {
    /// Every price that a stone may have, and zero.
    pub const ALL: Self = Self { min_cents: 0, max_cents: PRICE_CENTS_MAX + 1 };

    /// Refused: a range without a price in it, and one that goes beyond [`PriceRange::ALL`].
    pub fn new(min_cents: u64, max_cents: u64) -> Result<Self, Invalid> {
        let shown = format!("{min_cents}-{max_cents}");
        if min_cents >= max_cents {
            return Err(Invalid::new("price range", shown, "its end is greater than its start, and is not part of it"));
        }
        if max_cents > Self::ALL.max_cents {
            let limit = format!("prices are at most {PRICE_CENTS_MAX} cents, so its end is at most one more");
            return Err(Invalid::new("price range", shown, limit));
        }
        Ok(Self { min_cents, max_cents })
    }

    /// Its first price.
    pub const fn min_cents(&self) -> u64 {
        self.min_cents
    }

    /// The first price behind it.
    pub const fn max_cents(&self) -> u64 {
        self.max_cents
    }

    /// How many prices are in it: one at least.
    pub const fn width(&self) -> u64 {
        self.max_cents - self.min_cents
    }

    /// Whether a price is in it.
    pub const fn contains(&self, cents: u64) -> bool {
        self.min_cents <= cents && cents < self.max_cents
    }

    /// Its lower and its upper half, the upper one greater by one where they differ; `None` for a single price.
    pub fn halves(&self) -> Option<(Self, Self)> {
        let middle = self.min_cents + self.width() / 2;
        let lower = Self { min_cents: self.min_cents, max_cents: middle };
        (self.width() > 1).then_some((lower, Self { min_cents: middle, max_cents: self.max_cents }))
    }

    /// This one and the one that begins where it ends, as one; `None` when there is a gap or an overlap.
    pub fn joined(&self, next: &Self) -> Option<Self> {
        let joined = Self { min_cents: self.min_cents, max_cents: next.max_cents };
        (self.max_cents == next.min_cents).then_some(joined)
    }
}

/// `min-max` in cents: fit to name a partition.
impl fmt::Display for PriceRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.min_cents, self.max_cents)
    }
}

/// Reads what [`Display`](fmt::Display) writes: the name of a partition.
impl FromStr for PriceRange {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let cents = |text: &str| text.parse().ok();
        let ends = text.split_once('-').and_then(|(min, max)| Some((cents(min)?, cents(max)?)));
        let (min, max) =
            ends.ok_or_else(|| Invalid::new("price range", text, "it is two prices in cents: 0-100000"))?;
        Self::new(min, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_start_and_not_its_end() {
        let range = PriceRange::new(1_000, 2_000).unwrap();
        let inside = [999, 1_000, 1_999, 2_000].map(|cents| range.contains(cents));
        assert_eq!((inside, range.width()), ([false, true, true, false], 1_000));
    }

    #[test]
    fn ranges_without_a_price_or_beyond_all_prices_are_refused() {
        for (min, max) in [(5, 5), (6, 5), (0, 0), (u64::MAX, 0), (0, PRICE_CENTS_MAX + 2), (0, u64::MAX)] {
            assert_eq!(PriceRange::new(min, max).unwrap_err().field, "price range", "{min} {max}");
        }
        assert_eq!(PriceRange::new(0, PRICE_CENTS_MAX + 1), Ok(PriceRange::ALL));
    }

    #[test]
    fn halves_join_to_the_whole_and_a_single_price_has_none() {
        for (min, max) in [(0, 2), (0, 3), (7, 9), (0, PRICE_CENTS_MAX + 1)] {
            let whole = PriceRange::new(min, max).unwrap();
            let (lower, upper) = whole.halves().unwrap();
            assert_eq!((lower.joined(&upper), upper.joined(&lower)), (Some(whole), None));
            assert!(upper.width() - lower.width() <= 1);
        }
        assert_eq!(PriceRange::new(7, 8).unwrap().halves(), None);
    }

    #[test]
    fn its_text_names_a_partition_and_is_read_again() {
        let name = PriceRange::ALL.to_string();
        assert_eq!((name.as_str(), name.parse()), ("0-10000000001", Ok(PriceRange::ALL)));
        assert!(tenure::PartitionName::new(name).is_ok());
        for bad in ["", "-", "7", "partition-1", "7-7", "9-8", "0-99999999999", "-1-5", "1-2-3"] {
            assert_eq!(bad.parse::<PriceRange>().unwrap_err().field, "price range", "{bad}");
        }
    }
}
