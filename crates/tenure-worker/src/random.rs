//! Randomness, drawn here and handed to the pure rules as arguments.
//!
//! A simulation runs on one thread and wants the same run from the same seed: [`Seeded`] makes everything drawn on the
//! thread follow from it. Nobody else uses it.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tenure_core::backoff::Roll;
use tenure_core::{JobId, Timestamp};
use tenure_store::clock::Clock;

thread_local! {
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Until it is dropped, everything drawn on this thread follows from a seed. For simulations.
#[must_use = "the seed is forgotten when this is dropped"]
pub struct Seeded {
    /// It belongs to the thread that made it.
    _here: PhantomData<*const ()>,
}

impl Seeded {
    /// Begins with `seed`.
    pub fn new(seed: u64) -> Self {
        SEED.set(Some(seed));
        Self { _here: PhantomData }
    }
}

impl Drop for Seeded {
    fn drop(&mut self) {
        SEED.set(None);
    }
}

/// A new job id by this clock.
pub(crate) fn job_id(clock: &Clock) -> JobId {
    let mut random = [0; 10];
    match clock.now() {
        None => {
            fill(&mut random);
            JobId::from_parts(wall_clock(), random)
        }
        // A test's clock stands still: jobs made by it are in the order they were made all the same.
        Some(now) => {
            random[2..].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
            JobId::from_parts(now, random)
        }
    }
}

/// A new job id by the store's own clock, which was just read.
pub(crate) fn job_id_at(now: Timestamp) -> JobId {
    let mut random = [0; 10];
    fill(&mut random);
    JobId::from_parts(now, random)
}

/// Begins anywhere, so that two processes of a test meet no id of each other; the two highest bits are not kept in ids.
static NEXT: LazyLock<AtomicU64> = LazyLock::new(|| {
    let mut random = [0; 8];
    fill(&mut random);
    AtomicU64::new(u64::from_be_bytes(random) >> 3)
});

/// Bits for one decision.
pub(crate) fn roll() -> Roll {
    let mut random = [0; 4];
    fill(&mut random);
    Roll(u32::from_le_bytes(random))
}

/// `duration` give or take a tenth, so that processes that started together do not stay together.
pub(crate) fn jitter(duration: Duration) -> Duration {
    duration.mul_f64(0.9 + 0.2 * f64::from(roll().0) / f64::from(u32::MAX))
}

fn wall_clock() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

fn fill(random: &mut [u8]) {
    if let Some(mut state) = SEED.get() {
        for bytes in random.chunks_mut(8) {
            let drawn = split_mix(&mut state).to_le_bytes();
            bytes.copy_from_slice(&drawn[..bytes.len()]);
        }
        return SEED.set(Some(state));
    }
    // The system's source fails only where there is none at all, and then nothing on the machine works.
    getrandom::fill(random).expect("the operating system gives random bytes");
}

/// SplitMix64: a counter and two rounds of mixing.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_follows_from_the_seed_until_it_is_forgotten() {
        let draw = |seed| {
            let _seeded = Seeded::new(seed);
            [roll(), roll(), roll()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(SEED.get().is_none());
    }
}
