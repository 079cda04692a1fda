//! Takes back what expired leases held: a crashed worker's jobs run again within their lease time and a moment.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::{How, Timestamp};
use tenure_store::StoreError;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::shared::Shared;

/// Leases reclaimed in one call; more are due at once.
const BATCH: u32 = 100;
/// A store's clock that moves so much more than ours has been set forward.
const JUMP: Duration = Duration::from_secs(5);

/// Reclaims at most once per interval, whoever asks: the loop when it recovers, or the clock.
pub(crate) struct Reclaimer {
    shared: Arc<Shared>,
    rhythm: Mutex<Rhythm>,
}

#[derive(Default)]
struct Rhythm {
    last: Option<Instant>,
    seen: Option<(Timestamp, Instant)>,
    hold_until: Option<Instant>,
}

impl Reclaimer {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, rhythm: Mutex::default() }
    }

    pub(crate) async fn run_if_due(&self) -> Result<(), StoreError> {
        let mut rhythm = self.rhythm.lock().await;
        // A little early counts: the timer that asks is jittered around the same interval.
        if rhythm.last.is_some_and(|last| last.elapsed() < self.shared.options.reclaim_every.mul_f64(0.8)) {
            return Ok(());
        }
        rhythm.last = Some(Instant::now());
        if self.clock_jumped(&mut rhythm).await? {
            return Ok(());
        }
        loop {
            let taken = self.shared.store.reclaim_jobs(self.shared.worker.get().copied(), BATCH).await?;
            let mut leases: Vec<_> = taken.iter().map(|job| job.lease).collect();
            leases.dedup();
            for job in &taken {
                let from = job.worker.as_ref().map_or("unknown", |name| name.as_str());
                match job.how {
                    How::Dead => {
                        tracing::error!(job.id = %job.job, lease.no = %job.lease, from, "a lease expired once too often: the job is dead");
                    }
                    how => {
                        tracing::warn!(job.id = %job.job, lease.no = %job.lease, from, how = how.as_str(), "a lease expired: the job is taken back");
                    }
                }
            }
            if leases.len() < BATCH as usize {
                return Ok(());
            }
        }
    }

    /// When the store's clock is set forward, every lease of everybody seems expired. Their holders renew within one
    /// lease time, so that long nothing is taken back.
    async fn clock_jumped(&self, rhythm: &mut Rhythm) -> Result<bool, StoreError> {
        let asked = Instant::now();
        let now = self.shared.store.now().await?;
        if let Some((before, at)) = rhythm.seen.replace((now, asked)) {
            let (theirs, ours) = (now.since(before), asked - at);
            if theirs > ours + asked.elapsed() + JUMP {
                let queues = self.shared.store.list_queues().await?;
                let ttl = queues.iter().map(|queue| queue.lease_ttl).max().unwrap_or_default();
                rhythm.hold_until = Some(asked + ttl);
                tracing::warn!(
                    jumped_s = (theirs - ours).as_secs(),
                    "the store's clock was set forward: nothing is reclaimed for one lease time"
                );
            }
        }
        Ok(rhythm.hold_until.is_some_and(|until| Instant::now() < until))
    }
}
