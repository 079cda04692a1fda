//! Random choices that a seed repeats: splitmix64, ten lines instead of a crate.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure_core::{JobId, Timestamp};

/// A stream of random numbers.
pub(crate) struct Rng(u64);

impl Rng {
    /// The stream of actor `n` in the run of `seed`.
    pub(crate) fn new(seed: u64, n: u64) -> Self {
        let mut rng = Self(seed ^ n.wrapping_mul(0xd134_2543_de82_ef95));
        rng.next();
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// `low..=high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// True in so many of a hundred cases.
    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.between(1, 100) <= percent
    }

    /// Milliseconds in `low..=high`.
    pub(crate) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }

    /// One of these; there is at least one.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// An index below `len`.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.between(0, len as u64 - 1)).expect("a small number")
    }

    /// Puts them into another order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.index(i + 1));
        }
    }

    /// A new job id. Its time is the real one, its random part the seed's.
    pub(crate) fn job_id(&mut self) -> JobId {
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros();
        let mut random = [0; 10];
        random[..8].copy_from_slice(&self.next().to_le_bytes());
        random[8..].copy_from_slice(&self.next().to_le_bytes()[..2]);
        JobId::from_parts(Timestamp::from_micros(i64::try_from(micros).expect("before 292,000")), random)
    }
}
