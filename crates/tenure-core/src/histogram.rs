//! How long things took, counted by fixed bounds: small enough to keep for every minute, and sums of sums stay right.

use std::time::Duration;

/// The upper bounds of all buckets but the last, in milliseconds. A stored sum is read by its place in this list: a bound
/// is added behind the others or never.
pub const BOUNDS_MS: [u64; 21] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000, 600_000,
    1_800_000, 3_600_000, 21_600_000,
];

/// One for each bound, and one for what is above them all.
pub const BUCKETS: usize = BOUNDS_MS.len() + 1;

/// Counts by bucket, and the sum of what was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: [u64; BUCKETS],
    sum_micros: u64,
}

impl Histogram {
    /// As a store keeps it: the counts in the order of the bounds, missing ones are zero, and the sum in microseconds.
    pub fn from_store(counts: impl IntoIterator<Item = u64>, sum_micros: u64) -> Self {
        let mut histogram = Self { sum_micros, ..Self::default() };
        histogram.counts.iter_mut().zip(counts).for_each(|(count, stored)| *count = stored);
        histogram
    }

    /// The upper bounds of all buckets but the last; a bound belongs to the bucket below it.
    pub fn bounds() -> [Duration; BOUNDS_MS.len()] {
        BOUNDS_MS.map(Duration::from_millis)
    }

    /// Counts one.
    pub fn add(&mut self, took: Duration) {
        self.counts[Self::bounds().partition_point(|bound| *bound < took)] += 1;
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.sum_micros = self.sum_micros.saturating_add(micros);
    }

    /// Counts all that another has counted.
    pub fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        self.sum_micros = self.sum_micros.saturating_add(other.sum_micros);
    }

    /// How many in each bucket.
    pub fn counts(&self) -> &[u64; BUCKETS] {
        &self.counts
    }

    /// How many in all.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How long all of them took together, in microseconds.
    pub fn sum_micros(&self) -> u64 {
        self.sum_micros
    }

    /// How long all of them took together, in milliseconds.
    pub fn sum_ms(&self) -> u64 {
        self.sum_micros / 1_000
    }

    /// How long the part `q` of them took at most, 0 to 1: as far into the bucket as it is into the bucket's counts. What
    /// is above all bounds counts as the last bound. `None` when nothing was counted.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = q.clamp(0.0, 1.0) * total as f64;
        let (mut below, mut lower) = (0.0, Duration::ZERO);
        for (count, upper) in self.counts.into_iter().zip(Self::bounds()) {
            let here = count as f64;
            if count > 0 && below + here >= rank {
                return Some(lower + (upper - lower).mul_f64(((rank - below) / here).clamp(0.0, 1.0)));
            }
            (below, lower) = (below + here, upper);
        }
        Some(lower)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(micros: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        micros.iter().for_each(|took| histogram.add(Duration::from_micros(*took)));
        histogram
    }

    fn bucket(took: Duration) -> usize {
        of(&[took.as_micros() as u64]).counts().iter().position(|count| *count == 1).unwrap()
    }

    #[test]
    fn a_bound_belongs_to_the_bucket_below_it() {
        for (place, bound) in Histogram::bounds().into_iter().enumerate() {
            assert_eq!(bucket(bound), place);
            assert_eq!(bucket(bound + Duration::from_micros(1)), place + 1);
        }
        assert_eq!(bucket(Duration::ZERO), 0);
        assert!(BOUNDS_MS.is_sorted());
    }

    #[test]
    fn nothing_has_no_quantile_and_too_much_is_the_last_bound() {
        assert_eq!(Histogram::default().quantile(0.5), None);
        assert_eq!(of(&[u64::MAX / 2]).quantile(0.5), Some(Duration::from_secs(21_600)));
        assert_eq!(of(&[1_500, 1_500]).quantile(0.5), Some(Duration::from_micros(1_500)));
    }

    #[test]
    fn what_a_store_kept_is_read_back() {
        let histogram = of(&[10, 1_000, 7_000_000]);
        assert_eq!(Histogram::from_store(*histogram.counts(), histogram.sum_micros()), histogram);
        assert_eq!((histogram.count(), histogram.sum_ms()), (3, 7_001));
    }

    proptest! {
        #[test]
        fn a_quantile_lies_in_the_bucket_of_the_true_one(
            mut took in prop::collection::vec(0..30_000_000_000_u64, 1..60), percent in 1..=100_u64
        ) {
            let told = of(&took).quantile(percent as f64 / 100.0).unwrap();
            took.sort_unstable();
            let rank = (percent as usize * took.len()).div_ceil(100);
            let place = bucket(Duration::from_micros(took[rank - 1])).min(BOUNDS_MS.len() - 1);
            let lower = if place == 0 { Duration::ZERO } else { Histogram::bounds()[place - 1] };
            prop_assert!(lower <= told && told <= Histogram::bounds()[place], "{told:?} in bucket {place}");
        }

        #[test]
        fn a_higher_quantile_is_not_shorter(took in prop::collection::vec(0..30_000_000_000_u64, 1..60), a in 0.0..1.0, b in 0.0..1.0) {
            let histogram = of(&took);
            let (low, high) = if a < b { (a, b) } else { (b, a) };
            prop_assert!(histogram.quantile(low) <= histogram.quantile(high));
        }

        #[test]
        fn two_sums_are_the_sum_of_all(
            one in prop::collection::vec(0..30_000_000_000_u64, 0..20), two in prop::collection::vec(0..30_000_000_000_u64, 0..20)
        ) {
            let mut sum = of(&one);
            sum.merge(&of(&two));
            prop_assert_eq!(sum, of(&[one, two].concat()));
        }
    }
}
