//! Gives back what a claim took whose reply was lost: nobody renews it, and nobody should have to wait for its end.
//!
//! Only the loop asks, between two claims: what it does not know then was never handed out here. A claim that was given
//! up may still be committed a little later, so the question is asked for a while.

use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreError;
use tokio::time::Instant;

use crate::shared::Shared;

/// How long a claim that was given up may still be committed: a little more than a verb's deadline.
const UNSURE_FOR: Duration = Duration::from_secs(15);
const ASK_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct Sweeper {
    shared: Arc<Shared>,
    unsure_until: Option<Instant>,
    ask_at: Instant,
}

impl Sweeper {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, unsure_until: None, ask_at: Instant::now() }
    }

    /// A claim was sent and not answered.
    pub(crate) fn set_unsure(&mut self) {
        self.unsure_until = Some(Instant::now() + UNSURE_FOR);
        self.ask_at = Instant::now();
    }

    /// Waits until there is something to ask.
    pub(crate) async fn due(&self) {
        match self.unsure_until {
            Some(_) => tokio::time::sleep_until(self.ask_at).await,
            None => std::future::pending().await,
        }
    }

    /// Whether there is something to ask now.
    pub(crate) fn is_due(&self) -> bool {
        self.unsure_until.is_some() && Instant::now() >= self.ask_at
    }

    pub(crate) async fn run_if_unsure(&mut self) -> Result<(), StoreError> {
        let (Some(until), Some(worker)) = (self.unsure_until, self.shared.worker.get().copied()) else { return Ok(()) };
        if !self.is_due() {
            return Ok(());
        }
        // Asked first: the sweep may be applied later than it is waited for, and then the loop has claimed again.
        let newest = self.shared.store.newest_lease().await?;
        let released = self.shared.store.release_unknown(worker, self.shared.held.known(), newest).await?;
        for job in &released {
            tracing::info!(job.id = %job, "given back: the reply of its claim was lost");
        }
        self.ask_at = Instant::now() + ASK_EVERY;
        if self.ask_at > until {
            self.unsure_until = None;
        }
        Ok(())
    }
}
