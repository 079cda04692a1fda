//! A flag that is raised once and can be waited for.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Down at first; once raised it stays up.
#[derive(Default)]
pub(crate) struct Flag {
    up: AtomicBool,
    bell: Notify,
}

impl Flag {
    pub(crate) fn raise(&self) {
        self.up.store(true, Ordering::Release);
        self.bell.notify_waiters();
    }

    pub(crate) fn is_up(&self) -> bool {
        self.up.load(Ordering::Acquire)
    }

    /// Waits until it is up.
    pub(crate) async fn raised(&self) {
        // Listen before looking: a raise between the two would otherwise be missed.
        let bell = self.bell.notified();
        tokio::pin!(bell);
        bell.as_mut().enable();
        if !self.is_up() {
            bell.await;
        }
    }
}
