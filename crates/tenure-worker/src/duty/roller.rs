//! Folds sealed journal rows into rollups, so that charts and counters never look at jobs.
//!
//! Jobs have priority over figures. Folding costs about 8 µs of the database's time for each job, which at 30,000 jobs a
//! second would be a sixth of two cores. So a worker that runs jobs rests nine times as long as a batch took, and charts
//! are late for a while. A worker without jobs rests as long as a batch took: after an act on millions of jobs the figures
//! follow within minutes.

use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreError;
use tokio::time::Instant;

use crate::shared::Shared;

/// About as often as there is a seal.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// Rest after a batch, in multiples of the batch's time, while this worker runs jobs.
const REST_BUSY: u32 = 9;
/// The same while it runs none.
const REST_IDLE: u32 = 1;
/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(10);

pub(super) async fn run(shared: Arc<Shared>) -> Result<(), StoreError> {
    loop {
        let began = Instant::now();
        if shared.store.fold_rollups().await? == 0 {
            return Ok(());
        }
        tokio::time::sleep(rest(began.elapsed(), shared.held.is_empty())).await;
    }
}

fn rest(batch: Duration, idle: bool) -> Duration {
    let times = if idle { REST_IDLE } else { REST_BUSY };
    (batch * times).min(REST_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_worker_folds_half_of_its_time_and_a_busy_one_a_tenth() {
        let batch = Duration::from_millis(50);
        assert_eq!(rest(batch, true), batch);
        assert_eq!(rest(batch, false), batch * 9);
        assert_eq!(rest(Duration::from_secs(60), false), REST_MAX);
    }
}
