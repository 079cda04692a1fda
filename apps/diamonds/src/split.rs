//! From counts to partitions: a catalogue is cut by price into pieces of about one size.
//!
//! All that is known of the catalogue is an answer to "how many stones cost from here to below there?", and each such
//! question is a call over the network. So the range is halved by price again and again, until a piece has at most
//! a quarter of `size_max` stones or is a single price; then neighbouring pieces are packed into partitions.
//!
//! ```text
//!   prices  0 ─────────────────────────────────────────────────────────────▶
//!   halved  │  12 │ 240 │ 180 │ 230 │   9,000   │ 250 │  60 │     3        │     size_max 1,000, pieces ≤ 250
//!   packed  │         662           │   9,000   │          313             │     one price alone is not cut
//! ```
//!
//! One question gives both halves: the other one is the rest. That is right because all questions are about one revision
//! of the catalogue; a supplier that counts otherwise is found out where a part has more than the whole.
//!
//! # Promises
//! With `n` stones in all, `size_max` S, and pieces of at most g = S / 4 (1 at least):
//! - **Gap-free and disjoint**: the first partition begins where the range begins, each next one where the last ended, and
//!   the last ends where the range ends. None is empty, but the only one of an empty range.
//! - **Bounded**: no partition has more than S stones, unless it is a single price (and prices beside it that nobody
//!   asks); such a one says [`is_one_price`](Partition::is_one_price).
//! - **Balanced**: partitions between two of those have together the smallest largest one that so few partitions can have.
//!   Where no single price has more than g stones, the largest is at most the average of them and g: 5/3 of the average
//!   when they are two, and 4/3 of it when they are many.
//! - **Few**: at most 2n / S + 1 partitions ([`partitions_max`]). A plan of more than the limit is refused as soon as the
//!   pieces so far need more.
//! - **Cheap**: at most 1 + d × n / g questions ([`queries_max`]), where d is the number of binary digits of the range's
//!   width, 34 for all prices. In practice it is about 10n / S: some 400 for 200,000 stones in partitions of 5,000.

mod pack;

use crate::price_range::PriceRange;
use pack::Pieces;

/// Pieces have at most this part of a partition's size.
const PIECES_A_PARTITION: u64 = 4;

/// How large partitions may be, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most stones of a partition; zero counts as one.
    pub size_max: u64,
    /// Most partitions; zero counts as one.
    pub partitions_max: u64,
}

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition {
    /// Its prices.
    pub range: PriceRange,
    /// How many stones they have.
    pub stones: u64,
    /// It has more stones than a partition may have, and all of them have one price.
    pub is_one_price: bool,
}

/// The range, cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// By price.
    pub partitions: Vec<Partition>,
    /// How many stones they have together.
    pub stones: u64,
    /// How often was asked.
    pub queries: u64,
}

/// There is no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SplitError<E> {
    /// A question failed.
    #[error("prices {range} could not be counted")]
    Count {
        /// The question.
        range: PriceRange,
        /// Why.
        source: E,
    },
    /// The answers are not about one catalogue.
    #[error("prices {part} have {stones} stones, and {whole}, which they are a part of, only {of}: count one revision")]
    Contradiction {
        /// A part of `whole`.
        part: PriceRange,
        /// Its stones.
        stones: u64,
        /// What was counted before.
        whole: PriceRange,
        /// Its stones.
        of: u64,
    },
    /// There would be too many partitions.
    #[error("{stones} stones in partitions of {size_max} are more than {limit} partitions: take at least {enough}")]
    TooMany {
        /// In all.
        stones: u64,
        /// As it was asked for.
        size_max: u64,
        /// Most partitions.
        limit: u64,
        /// A size that would do, whatever their prices.
        enough: u64,
    },
}

/// Cuts `range` into partitions. `count` answers how many stones have their price in a range.
pub async fn split<E, F, Fut>(range: PriceRange, limits: Limits, mut count: F) -> Result<Plan, SplitError<E>>
where
    F: FnMut(PriceRange) -> Fut,
    Fut: Future<Output = Result<u64, E>>,
{
    let size_max = limits.size_max.max(1);
    let stones = count(range).await.map_err(|source| SplitError::Count { range, source })?;
    let mut queries = 1;
    let mut pieces = Pieces::new(size_max);
    // What is not yet looked at, the cheapest on top, so that pieces come out by price.
    let mut open = vec![Partition { range, stones, is_one_price: false }];
    while let Some(piece) = open.pop() {
        let Some((lower, upper)) = piece.range.halves().filter(|_| piece.stones > piece_max(size_max)) else {
            pieces.push(Partition { is_one_price: piece.stones > size_max, ..piece });
            if pieces.partitions > limits.partitions_max.max(1) {
                return Err(too_many(stones, size_max, limits.partitions_max.max(1)));
            }
            continue;
        };
        let below = count(lower).await.map_err(|source| SplitError::Count { range: lower, source })?;
        queries += 1;
        let Some(above) = piece.stones.checked_sub(below) else {
            return Err(SplitError::Contradiction { part: lower, stones: below, whole: piece.range, of: piece.stones });
        };
        open.push(Partition { range: upper, stones: above, is_one_price: false });
        open.push(Partition { range: lower, stones: below, is_one_price: false });
    }
    Ok(Plan { partitions: pieces.pack(), stones, queries })
}

/// Most partitions that so many stones can be cut into.
pub fn partitions_max(stones: u64, size_max: u64) -> u64 {
    (2 * u128::from(stones) / u128::from(size_max.max(1)) + 1).try_into().unwrap_or(u64::MAX)
}

/// Most questions that are asked about so many stones.
pub fn queries_max(range: PriceRange, stones: u64, size_max: u64) -> u64 {
    // Halving a range of w prices ends after as many steps as w - 1 has digits; at each depth the pieces that are halved
    // have more than g stones each.
    let depth = u64::from(u64::BITS - (range.width() - 1).leading_zeros());
    depth.saturating_mul(stones / piece_max(size_max)).saturating_add(1)
}

/// Most stones of a piece, unless it is a single price.
fn piece_max(size_max: u64) -> u64 {
    (size_max / PIECES_A_PARTITION).max(1)
}

fn too_many<E>(stones: u64, size_max: u64, limit: u64) -> SplitError<E> {
    // 2n / S + 1 is at most the limit when S is more than 2n / limit.
    let enough = (2 * u128::from(stones) / u128::from(limit) + 1).try_into().unwrap_or(u64::MAX);
    SplitError::TooMany { stones, size_max, limit, enough }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::convert::Infallible;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;

    use super::*;
    use crate::catalogue::{Catalogue, Snapshot};

    /// The answers here are ready at once.
    fn now<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(it) => it,
            Poll::Pending => panic!("a count that is ready was waited for"),
        }
    }

    fn range(min: u64, max: u64) -> PriceRange {
        PriceRange::new(min, max).unwrap()
    }

    fn limits(size_max: u64) -> Limits {
        Limits { size_max, partitions_max: u64::MAX }
    }

    fn of_prices(prices: &BTreeMap<u64, u64>, range: PriceRange) -> u64 {
        prices.range(range.min_cents()..range.max_cents()).map(|(_, stones)| stones).sum()
    }

    fn plan_of(prices: &BTreeMap<u64, u64>, whole: PriceRange, size_max: u64) -> Plan {
        now(split(whole, limits(size_max), |range| async move { Ok::<_, Infallible>(of_prices(prices, range)) }))
            .unwrap()
    }

    fn plan_of_snapshot(snapshot: &Snapshot, size_max: u64) -> Plan {
        let count = |range| async move { Ok::<_, Infallible>(snapshot.count(range)) };
        now(split(PriceRange::ALL, limits(size_max), count)).unwrap()
    }

    /// What holds of every plan.
    #[track_caller]
    fn check(plan: &Plan, whole: PriceRange, size_max: u64, count: impl Fn(PriceRange) -> u64) {
        let parts = &plan.partitions;
        let joined = parts[1..].iter().try_fold(parts[0].range, |all, next| all.joined(&next.range));
        assert_eq!(joined, Some(whole), "no gap, no overlap, and all of it");
        assert_eq!(parts.iter().map(|part| part.stones).sum::<u64>(), plan.stones);
        assert_eq!(plan.stones, count(whole));
        for part in parts {
            assert_eq!(part.stones, count(part.range), "{part:?}");
            assert!(part.stones > 0 || parts.len() == 1, "{part:?} is empty");
            assert_eq!(part.is_one_price, part.stones > size_max, "{part:?}");
        }
        assert!(parts.len() as u64 <= partitions_max(plan.stones, size_max), "{} partitions", parts.len());
        assert!(plan.queries <= queries_max(whole, plan.stones, size_max), "{} queries", plan.queries);
    }

    proptest! {
        #[test]
        fn every_plan_covers_all_without_overlap_and_within_its_bounds(
            prices in prop::collection::btree_map(0..2_000_u64, 1..60_u64, 0..80),
            min in 0..1_000_u64, width in 1..2_000_u64, size_max in 1..120_u64,
        ) {
            let whole = range(min, min + width);
            let plan = plan_of(&prices, whole, size_max);
            check(&plan, whole, size_max, |range| of_prices(&prices, range));
            // What is too large has one price, and is there because of it.
            for part in plan.partitions.iter().filter(|part| part.is_one_price) {
                let crowds = prices.range(part.range.min_cents()..part.range.max_cents());
                prop_assert_eq!(crowds.count(), 1);
            }
        }

        #[test]
        fn without_crowds_the_largest_is_the_average_and_a_quarter_of_a_partition_at_most(
            prices in prop::collection::btree_map(0..5_000_u64, 1..=5_u64, 1..400), size_max in 20..200_u64,
        ) {
            let plan = plan_of(&prices, range(0, 5_000), size_max);
            let largest = plan.partitions.iter().map(|part| part.stones).max().unwrap();
            let average = plan.stones.div_ceil(plan.partitions.len() as u64);
            prop_assert!(largest <= average + size_max / 4, "{largest} of {average}");
            if plan.partitions.len() > 1 {
                prop_assert!(3 * largest <= 5 * average, "{largest} of {average}");
            }
        }
    }

    #[test]
    fn the_whole_catalogue_is_split_into_balanced_partitions_by_few_questions() {
        for (stones, size_max, queries_usual) in [(200_000, 5_000, 500), (20_000, 500, 500)] {
            let catalogue = Catalogue::new(1, stones).unwrap();
            let plan = plan_of_snapshot(catalogue.latest(), size_max);
            check(&plan, PriceRange::ALL, size_max, |range| catalogue.latest().count(range));
            assert!(plan.queries <= queries_usual, "{} questions", plan.queries);
            assert!(plan.partitions.iter().any(|part| part.is_one_price), "the advertised price is a crowd");
            let usual: Vec<u64> = plan.partitions.iter().filter(|part| !part.is_one_price).map(|p| p.stones).collect();
            let average = usual.iter().sum::<u64>() / usual.len() as u64;
            assert!(usual.iter().max().unwrap() <= &(2 * average), "{usual:?}");
        }
    }

    #[test]
    fn an_empty_range_is_one_partition_without_stones() {
        let plan = plan_of(&BTreeMap::new(), PriceRange::ALL, 100);
        let only = Partition { range: PriceRange::ALL, stones: 0, is_one_price: false };
        assert_eq!(plan, Plan { partitions: vec![only], stones: 0, queries: 1 });
    }

    #[test]
    fn a_price_with_more_stones_than_a_partition_may_have_is_one_and_says_so() {
        let prices = BTreeMap::from([(10, 90), (500, 1_000), (700, 5)]);
        let plan = plan_of(&prices, range(0, 1_000), 100);
        let told: Vec<(u64, bool)> = plan.partitions.iter().map(|part| (part.stones, part.is_one_price)).collect();
        assert_eq!(told, [(90, false), (1_000, true), (5, false)]);
    }

    #[test]
    fn a_plan_of_too_many_partitions_is_refused_with_a_size_that_would_do() {
        let prices: BTreeMap<u64, u64> = (0..1_000).map(|cents| (cents, 1)).collect();
        let ask = |size_max| {
            let limits = Limits { size_max, partitions_max: 10 };
            now(split(range(0, 1_000), limits, |range| {
                let stones = of_prices(&prices, range);
                async move { Ok::<_, Infallible>(stones) }
            }))
        };
        let refused = ask(100).unwrap_err();
        assert_eq!(refused, SplitError::TooMany { stones: 1_000, size_max: 100, limit: 10, enough: 201 });
        let SplitError::TooMany { enough, .. } = refused else { panic!("{refused}") };
        assert!(ask(enough).unwrap().partitions.len() <= 10);
    }

    #[test]
    fn what_fits_the_limit_is_cut_though_worse_prices_would_not() {
        let catalogue = Catalogue::new(1, 250_000).unwrap();
        let limits = Limits { size_max: 5_000, partitions_max: 99 };
        let latest = catalogue.latest();
        let count = |range| async move { Ok::<_, Infallible>(latest.count(range)) };
        let plan = now(split(PriceRange::ALL, limits, count)).unwrap();
        assert!(partitions_max(plan.stones, 5_000) > 99, "the worst prices would need more");
        assert!(plan.partitions.len() <= 99, "{} partitions", plan.partitions.len());
    }

    #[test]
    fn counts_that_contradict_each_other_are_found_out() {
        // Each answer is about a later revision, with more stones.
        let mut stones = 1_000;
        let count = |_| {
            stones += 1;
            async move { Ok::<_, Infallible>(stones) }
        };
        let refused = now(split(range(0, 1_000), limits(100), count)).unwrap_err();
        assert!(matches!(refused, SplitError::Contradiction { stones: 1_002, of: 1_001, .. }), "{refused}");
    }

    #[test]
    fn a_question_that_fails_ends_the_split_and_is_named() {
        let count = |asked: PriceRange| async move { if asked.width() > 500 { Ok(1_000) } else { Err("down") } };
        let refused = now(split(range(0, 1_000), limits(100), count)).unwrap_err();
        assert_eq!(refused, SplitError::Count { range: range(0, 500), source: "down" });
    }
}
