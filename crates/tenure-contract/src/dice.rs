//! Choices that are the same for the same seed.

/// Splitmix64: small, and the same on every machine.
#[derive(Debug, Clone)]
pub struct Dice(u64);

impl Dice {
    /// Dice that roll as this seed says.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Random bits.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        self.roll() % end
    }

    /// A place in something of this length.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("small")
    }

    /// One of the last twelve: most of what happens is about what happened lately.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        let lately = of.len().min(12);
        if lately == 0 {
            return None;
        }
        of.get(of.len() - 1 - self.index(lately)).cloned()
    }
}
