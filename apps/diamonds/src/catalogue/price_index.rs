//! Finds the k-th stone, by id, of any price range, without a walk over the others.
//!
//! The stones are sorted by price once; a range of prices is then a stretch of that order, found by two binary searches,
//! and its length is the count. Inside of the stretch the stones are wanted by id. For that the places of the stones in
//! the order of ids, written down in the order of prices, are kept as a *wavelet matrix*: for each binary digit of a
//! place, from the highest, a row of bits; after each row the places with a 0 go before those with a 1, and stay in order
//! otherwise. How many places of the stretch have a 0 says on which side the k-th smallest is, and where the stretch has
//! gone there. So it takes one step a digit, 18 for 200,000 stones, whatever the range and the offset.

use crate::price_range::PriceRange;

/// Counts and pages of one revision.
#[derive(Debug)]
pub(super) struct PriceIndex {
    /// Sorted.
    prices: Vec<u64>,
    /// One row of bits for each digit, the highest first.
    digits: Vec<Bits>,
}

/// Bits, and how many zeros there are before each word of them.
#[derive(Debug)]
struct Bits {
    words: Vec<u64>,
    zeros_before: Vec<usize>,
    zeros: usize,
}

impl PriceIndex {
    /// `prices` are in the order of the stones' ids.
    pub(super) fn new(prices: &[u64]) -> Self {
        let mut places: Vec<usize> = (0..prices.len()).collect();
        places.sort_unstable_by_key(|place| (prices[*place], *place));
        let sorted = places.iter().map(|place| prices[*place]).collect();
        let width = usize::BITS - prices.len().saturating_sub(1).leading_zeros();
        let mut digits = Vec::with_capacity(width as usize);
        for digit in (0..width).rev() {
            let is_one = |place: &usize| place >> digit & 1 == 1;
            digits.push(Bits::new(places.len(), places.iter().map(is_one)));
            let (ones, zeros): (Vec<usize>, Vec<usize>) = places.iter().partition(|place| is_one(place));
            places = zeros;
            places.extend(ones);
        }
        Self { prices: sorted, digits }
    }

    /// How many stones have their price in the range.
    pub(super) fn count(&self, range: PriceRange) -> usize {
        let (from, to) = self.stretch(range);
        to - from
    }

    /// The places, in the order of ids, of the stones of the range from the `offset`-th on, at most `limit`.
    pub(super) fn page(&self, range: PriceRange, offset: usize, limit: usize) -> impl Iterator<Item = usize> {
        let (from, to) = self.stretch(range);
        let end = offset.saturating_add(limit).min(to - from);
        (offset..end).map(move |k| self.smallest(from, to, k))
    }

    fn stretch(&self, range: PriceRange) -> (usize, usize) {
        let below = |cents: u64| self.prices.partition_point(|price| *price < cents);
        (below(range.min_cents()), below(range.max_cents()))
    }

    /// The `k`-th smallest place, from 0, of a stretch that has more than `k`.
    fn smallest(&self, mut from: usize, mut to: usize, mut k: usize) -> usize {
        let mut place = 0;
        for bits in &self.digits {
            let (zeros_from, zeros_to) = (bits.zeros_until(from), bits.zeros_until(to));
            let zeros = zeros_to - zeros_from;
            place <<= 1;
            if k < zeros {
                (from, to) = (zeros_from, zeros_to);
            } else {
                k -= zeros;
                place |= 1;
                // The ones are behind all zeros, those before this stretch first.
                (from, to) = (bits.zeros + from - zeros_from, bits.zeros + to - zeros_to);
            }
        }
        place
    }
}

impl Bits {
    fn new(len: usize, bits: impl Iterator<Item = bool>) -> Self {
        // One word more, so that the end of all bits is inside of a word as well.
        let mut words = vec![0_u64; len / 64 + 1];
        let mut zeros = len;
        for (at, bit) in bits.enumerate() {
            words[at / 64] |= u64::from(bit) << (at % 64);
            zeros -= usize::from(bit);
        }
        let mut before = 0;
        let zeros_before = words.iter().map(|word| {
            let here = before;
            before += word.count_zeros() as usize;
            here
        });
        Self { zeros_before: zeros_before.collect(), words, zeros }
    }

    /// Zeros before the bit at `at`.
    fn zeros_until(&self, at: usize) -> usize {
        let word = !self.words[at / 64] & ((1 << (at % 64)) - 1);
        self.zeros_before[at / 64] + word.count_ones() as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What the index must say, found by looking at each stone.
    fn by_walking(prices: &[u64], range: PriceRange, offset: usize, limit: usize) -> Vec<usize> {
        let inside = prices.iter().enumerate().filter(|(_, price)| range.contains(**price)).map(|(place, _)| place);
        inside.skip(offset).take(limit).collect()
    }

    proptest! {
        #[test]
        fn counts_and_pages_are_those_found_by_walking(
            prices in prop::collection::vec(0..40_u64, 0..300), min in 0..40_u64, width in 1..40_u64,
            offset in 0..80_usize, limit in 0..50_usize,
        ) {
            let index = PriceIndex::new(&prices);
            let range = PriceRange::new(min, min + width).unwrap();
            prop_assert_eq!(index.count(range), by_walking(&prices, range, 0, usize::MAX).len());
            let page: Vec<usize> = index.page(range, offset, limit).collect();
            prop_assert_eq!(page, by_walking(&prices, range, offset, limit));
        }
    }

    #[test]
    fn sizes_around_a_word_of_bits_are_right() {
        for stones in [0, 1, 2, 3, 63, 64, 65, 127, 128, 129] {
            let prices: Vec<u64> = (0..stones).map(|n| (n * 7_919) % 13).collect();
            let index = PriceIndex::new(&prices);
            for (min, max) in [(0, 13), (3, 9), (5, 6), (12, 13)] {
                let range = PriceRange::new(min, max).unwrap();
                let all: Vec<usize> = index.page(range, 0, usize::MAX).collect();
                assert_eq!(all, by_walking(&prices, range, 0, usize::MAX), "{stones} stones, {range}");
            }
        }
    }
}
