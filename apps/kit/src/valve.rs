//! [`Valve`]: what passes it waits while it is shut, so that a test or a story can act while somebody is in the middle.

use std::sync::Arc;

use tokio::sync::watch;

/// Open or shut. Clones are the same valve.
#[derive(Debug, Clone)]
pub struct Valve(Arc<watch::Sender<bool>>);

impl Valve {
    /// One that lets everything through.
    pub fn opened() -> Self {
        Self(Arc::new(watch::Sender::new(true)))
    }

    /// One that holds everything.
    pub fn shut() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Lets go what waits, and all that comes.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Holds what comes from now on.
    pub fn close(&self) {
        self.0.send_replace(false);
    }

    /// Waits while it is shut.
    pub async fn pass(&self) {
        let mut seen = self.0.subscribe();
        // It cannot be gone: this handle has the other end.
        let _open = seen.wait_for(|open| *open).await;
    }
}
