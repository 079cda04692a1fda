//! [`value`]: what a coin is worth, from what is known of its price.
//!
//! One wrong listing (a lot of ten coins, a typing error, a dreamer's price) must not move the answer, so everything here
//! is a median of something:
//!
//! 1. Only points count whose match is at least [`STRENGTH_MIN`]: listings about another coin say nothing about this one.
//! 2. Outliers go. Around the median of all that count, a point is an outlier when it is further away than 4.5 times the
//!    median distance, but never when it is within half of the median: few points that agree closely must not throw out
//!    one that merely differs.
//! 3. The value is the weighted median of the rest: what was paid counts four times, what is bid twice, what is asked once.
//!    Of an even weight the lower middle is taken.
//! 4. `low` and `high` are the least and the largest of the rest.
//!
//! Cents are whole numbers, and nothing is rounded but the two medians of step 2.

use crate::point::PriceKind;

/// Points that match less do not count.
pub const STRENGTH_MIN: u32 = 60;

/// What a price point says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// What kind of price.
    pub kind: PriceKind,
    /// How much.
    pub cents: i64,
    /// How well it matches.
    pub strength: u32,
}

/// What a coin is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Valuation {
    /// The value.
    pub cents: i64,
    /// The least that counted.
    pub low: i64,
    /// The most that counted.
    pub high: i64,
    /// How many counted.
    pub points: u32,
    /// How many were thrown out.
    pub outliers: u32,
}

/// The valuation, when there is anything to value by.
pub fn value(prices: &[Price]) -> Option<Valuation> {
    let mut counted: Vec<Price> = prices.iter().copied().filter(|price| price.strength >= STRENGTH_MIN).collect();
    counted.sort_by_key(|price| (price.cents, price.kind));
    let all = counted.len();
    let middle = median(counted.iter().map(|price| price.cents))?;
    let distance = median(counted.iter().map(|price| (price.cents - middle).abs()))?;
    let allowed = (distance.saturating_mul(9) / 2).max(middle / 2);
    counted.retain(|price| (price.cents - middle).abs() <= allowed);
    Some(Valuation {
        cents: weighted_median(&counted)?,
        low: counted.first()?.cents,
        high: counted.last()?.cents,
        points: u32::try_from(counted.len()).ok()?,
        outliers: u32::try_from(all - counted.len()).ok()?,
    })
}

/// How much a kind of price says.
const fn weight(kind: PriceKind) -> u64 {
    match kind {
        PriceKind::Sold => 4,
        PriceKind::Bid => 2,
        PriceKind::Ask => 1,
    }
}

fn weighted_median(sorted: &[Price]) -> Option<i64> {
    let total: u64 = sorted.iter().map(|price| weight(price.kind)).sum();
    let mut before = 0;
    sorted.iter().find_map(|price| {
        before += weight(price.kind);
        (before * 2 >= total).then_some(price.cents)
    })
}

/// The lower middle.
fn median(values: impl Iterator<Item = i64>) -> Option<i64> {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    values.get(values.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::PriceKind::{Ask, Bid, Sold};
    use super::*;

    fn prices(list: &[(PriceKind, i64)]) -> Vec<Price> {
        list.iter().map(|(kind, cents)| Price { kind: *kind, cents: *cents, strength: 100 }).collect()
    }

    #[test]
    fn nothing_is_worth_nothing() {
        assert_eq!(value(&[]), None);
        let weak = Price { kind: Sold, cents: 100, strength: STRENGTH_MIN - 1 };
        assert_eq!(value(&[weak]), None);
        let one = value(&prices(&[(Ask, 100)])).unwrap();
        assert_eq!(one, Valuation { cents: 100, low: 100, high: 100, points: 1, outliers: 0 });
    }

    #[test]
    fn what_was_paid_counts_more_than_what_is_asked() {
        let list = [(Sold, 100), (Ask, 150), (Ask, 150), (Ask, 150)];
        assert_eq!(value(&prices(&list)).unwrap().cents, 100);
    }

    #[test]
    fn one_absurd_price_moves_nothing() {
        let fair = [(Sold, 18_000), (Sold, 19_000), (Bid, 17_500), (Ask, 21_000), (Ask, 22_500)];
        let before = value(&prices(&fair)).unwrap();
        for absurd in [1, 1_899_000, i64::MAX / 4] {
            let mut list = fair.to_vec();
            list.push((Ask, absurd));
            let after = value(&prices(&list)).unwrap();
            assert_eq!((after.cents, after.low, after.high), (before.cents, before.low, before.high), "{absurd}");
            assert_eq!((after.points, after.outliers), (5, 1));
        }
    }

    #[test]
    fn points_that_agree_do_not_throw_out_one_that_differs() {
        let list = [(Sold, 100), (Sold, 100), (Sold, 100), (Sold, 140)];
        assert_eq!(value(&prices(&list)).unwrap().outliers, 0);
    }

    #[test]
    fn the_order_in_which_points_came_makes_no_difference() {
        let mut list = vec![(Sold, 5), (Bid, 9), (Ask, 7), (Sold, 7), (Ask, 12), (Bid, 6)];
        let first = value(&prices(&list));
        list.reverse();
        assert_eq!(value(&prices(&list)), first);
    }
}
