//! Whose time it is.
//!
//! In production every deadline is written and read by the database's own clock. A test gives a store a [`ManualClock`]
//! instead and moves it: nothing ever sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tenure_core::Timestamp;

/// A clock that only moves when told to. Clones show the same time.
#[derive(Debug, Clone)]
pub struct ManualClock(Arc<AtomicI64>);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(now.as_micros())))
    }

    /// What it shows.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }

    /// Moves it on.
    pub fn advance(&self, by: Duration) {
        self.set(self.now().plus(by));
    }

    /// Sets it, back as well.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.as_micros(), Ordering::SeqCst);
    }
}

/// The store's own clock, or one moved by a test.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The database's.
    #[default]
    Store,
    /// A test's.
    Manual(ManualClock),
}

impl Clock {
    /// The time to pass to the store; `None` means that it uses its own.
    pub fn now(&self) -> Option<Timestamp> {
        match self {
            Self::Store => None,
            Self::Manual(clock) => Some(clock.now()),
        }
    }
}
