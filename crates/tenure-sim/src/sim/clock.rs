//! The store's clock: it follows virtual time, a little too fast or too slow, and is set forward and back.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tenure_contract::fixture::START;
use tenure_core::Timestamp;
use tenure_store::clock::ManualClock;
use tokio::time::Instant;

pub(crate) struct StoreClock {
    shown: ManualClock,
    began: Instant,
    drift_ppm: i64,
    set: Mutex<Set>,
}

#[derive(Default)]
struct Set {
    offset_us: i64,
    jumps: u64,
}

impl StoreClock {
    pub(crate) fn new(drift_ppm: i64) -> Self {
        Self { shown: ManualClock::new(START), began: Instant::now(), drift_ppm, set: Mutex::default() }
    }

    /// The clock to give to the store.
    pub(crate) fn shown(&self) -> ManualClock {
        self.shown.clone()
    }

    /// Virtual time since the run began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Lets the store see what time it is. Nobody else moves its clock, so this is done before every verb.
    pub(crate) fn sync(&self) -> Timestamp {
        let elapsed = i64::try_from(self.elapsed().as_micros()).unwrap_or(i64::MAX);
        let drifted = elapsed + elapsed / 1_000_000 * self.drift_ppm + elapsed % 1_000_000 * self.drift_ppm / 1_000_000;
        let now = Timestamp::from_micros(START.as_micros() + drifted + self.lock().offset_us);
        self.shown.set(now);
        now
    }

    /// Sets it forward, or back.
    pub(crate) fn jump(&self, by_ms: i64) {
        let mut set = self.lock();
        set.offset_us += by_ms * 1_000;
        set.jumps += 1;
    }

    /// How often it was set.
    pub(crate) fn jumps(&self) -> u64 {
        self.lock().jumps
    }

    /// How far it was set in all, in milliseconds.
    pub(crate) fn offset_ms(&self) -> i64 {
        self.lock().offset_us / 1_000
    }

    fn lock(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
