//! Randomness, drawn here and handed to the pure rules as arguments.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tenure_core::backoff::Roll;
use tenure_core::{JobId, Timestamp};
use tenure_store::clock::Clock;

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
    // The system's source fails only where there is none at all, and then nothing on the machine works.
    getrandom::fill(random).expect("the operating system gives random bytes");
}
