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
/// A store's clock that moves so much more than ours, or less, has been set.
const JUMP: Duration = Duration::from_secs(5);

/// Reclaims at most once per interval, whoever asks: the loop when it recovers, or the clock.
pub(crate) struct Reclaimer {
    shared: Arc<Shared>,
    rhythm: Mutex<Rhythm>,
}

#[derive(Default)]
struct Rhythm {
    last: Option<Instant>,
    seen: Option<Look>,
    hold_until: Option<Instant>,
}

/// One look at the store's clock: what it said, at some moment between the question and the answer.
#[derive(Clone, Copy)]
struct Look {
    said: Timestamp,
    asked: Instant,
    answered: Instant,
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
    /// lease time, so that long nothing is taken back. Set back, it keeps what is due waiting: that is only told.
    async fn clock_jumped(&self, rhythm: &mut Rhythm) -> Result<bool, StoreError> {
        let asked = Instant::now();
        let said = self.shared.store.now().await?;
        let look = Look { said, asked, answered: Instant::now() };
        match rhythm.seen.replace(look).and_then(|before| Jump::between(before, look)) {
            Some(Jump::Forward(by)) => {
                let queues = self.shared.store.list_queues().await?;
                let ttl = queues.iter().map(|queue| queue.lease_ttl).max().unwrap_or_default();
                rhythm.hold_until = Some(asked + ttl);
                tracing::warn!(
                    jumped_s = by.as_secs(),
                    "the store's clock was set forward: nothing is reclaimed for one lease time"
                );
            }
            Some(Jump::Back(by)) => {
                tracing::warn!(
                    jumped_s = by.as_secs(),
                    "the store's clock was set back: what was due waits until it is that late again"
                );
            }
            None => {}
        }
        Ok(rhythm.hold_until.is_some_and(|until| Instant::now() < until))
    }
}

/// How far the store's clock was set between two looks.
#[derive(Debug, PartialEq, Eq)]
enum Jump {
    Forward(Duration),
    Back(Duration),
}

impl Jump {
    fn between(before: Look, now: Look) -> Option<Self> {
        // So much has passed by our own clock, at least and at most: either answer may have been long on its way.
        let least = now.asked.saturating_duration_since(before.answered);
        let most = now.answered.saturating_duration_since(before.asked);
        let (ahead, behind) = (now.said.since(before.said.plus(most)), before.said.plus(least).since(now.said));
        match (ahead > JUMP, behind > JUMP) {
            (true, _) => Some(Self::Forward(ahead)),
            (_, true) => Some(Self::Back(behind)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    /// Two looks that are answered after `took` seconds each, the second asked ten seconds after the first answer. The
    /// store's clock moved so much between them.
    fn jump(took: [u32; 2], moved_s: i64) -> Option<Jump> {
        let (said, asked) = (Timestamp::from_micros(1_000_000_000_000), Instant::now());
        let before = Look { said, asked, answered: asked + S * took[0] };
        let asked = before.answered + S * 10;
        let said = Timestamp::from_micros(said.as_micros() + moved_s * 1_000_000);
        Jump::between(before, Look { said, asked, answered: asked + S * took[1] })
    }

    #[test]
    fn a_clock_that_goes_has_not_jumped() {
        for moved_s in [5, 10, 15] {
            assert_eq!(jump([0, 0], moved_s), None, "{moved_s}");
        }
    }

    /// The store read its clock at the end of a slow answer, or at its beginning.
    #[test]
    fn an_answer_that_was_slow_is_no_jump() {
        for (took, moved_s) in [([8, 0], 10), ([8, 0], 18), ([0, 8], 10), ([0, 8], 18), ([8, 8], 26)] {
            assert_eq!(jump(took, moved_s), None, "{took:?} {moved_s}");
        }
    }

    #[test]
    fn a_clock_that_was_set_has_jumped() {
        assert_eq!(jump([0, 0], 16), Some(Jump::Forward(S * 6)));
        assert_eq!(jump([0, 0], 4), Some(Jump::Back(S * 6)));
        assert_eq!(jump([1, 1], -600), Some(Jump::Back(S * 610)));
    }
}
