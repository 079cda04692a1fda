//! The pass line: what every row has to show, measured by the same instruments.
//!
//! - *lost*: acknowledged enqueues that are neither ended nor open, by the client's [history](crate::history)
//! - *stale accepted*: endings that the store took from a lease that no longer held the job, by its journal
//! - *double effects*: rows that one job left twice in a table it wrote in its completing transaction
//! - *deadlocks*: as the server counts them
//! - *stuck*: jobs that nobody has ended, though nothing went wrong any more for a lease, a look for expired leases and 5 s

use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, Instant};

use tenure_store::StoreError;
use tenure_store::record::Sight;

use crate::record::{Grant, Record};
use crate::stage::Stage;

/// Nothing ends for so long beyond a lease and a look for expired ones, and what is open is stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// The counts; all but the first and third are 0 when all is well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PassLine {
    /// Enqueues that were acknowledged.
    pub acknowledged: usize,
    /// Those that are gone.
    pub lost: usize,
    /// Rows that completing transactions left behind.
    pub effects: usize,
    /// Those that are there twice.
    pub double_effects: usize,
    /// Endings from a lease that was over.
    pub stale_accepted: usize,
    /// Handlers that were started twice under one fence.
    pub started_twice: usize,
    /// Deadlocks.
    pub deadlocks: usize,
    /// Jobs that do not come to an end.
    pub stuck: usize,
}

impl PassLine {
    /// Waits until everything has ended, or nothing moves any more; then proves the journal and counts.
    pub async fn measure(stage: &mut Stage) -> (Self, Record) {
        let stuck = settle(stage).await;
        let record = Record::prove(&*stage.store).await;
        let line = Self::count(stage, &record, stuck).await;
        (line, record)
    }

    async fn count(stage: &mut Stage, record: &Record, stuck: usize) -> Self {
        let acknowledged = stage.history.acknowledged();
        let ended = record.ended_jobs();
        let mut lost = 0;
        for job in acknowledged.iter().filter(|job| !ended.contains(job)) {
            match stage.store.show_job(&Sight::All, *job).await {
                Err(StoreError::NotFound(_)) => lost += 1,
                Err(error) => panic!("{error}"),
                Ok(_) => {}
            }
        }
        let starts: Vec<Grant> = stage.noted("start").iter().map(|entry| (entry.job, entry.fence)).collect();
        let once: HashSet<&Grant> = starts.iter().collect();
        let (effects, double_effects) = stage.effects();
        Self {
            acknowledged: acknowledged.len(),
            lost,
            effects,
            double_effects,
            stale_accepted: record.stale_accepted,
            started_twice: starts.len() - once.len(),
            deadlocks: stage.deadlocks(),
            stuck,
        }
    }

    /// What should be 0 and is not.
    pub fn broken(&self) -> Vec<String> {
        let counts = [
            (self.lost, "acknowledged jobs lost"),
            (self.stale_accepted, "stale endings accepted"),
            (self.double_effects, "transactional effects doubled"),
            (self.started_twice, "handlers started twice under one fence"),
            (self.deadlocks, "deadlocks"),
            (self.stuck, "jobs stuck"),
        ];
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect()
    }
}

impl fmt::Display for PassLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { acknowledged, lost, effects, double_effects, stale_accepted, deadlocks, stuck, .. } = self;
        write!(
            f,
            "lost {lost} of {acknowledged}, stale accepted {stale_accepted}, double effects {double_effects} of {effects}, \
             deadlocks {deadlocks}, stuck {stuck}"
        )
    }
}

/// Waits while jobs come to an end; answers how many are left when none does any more.
async fn settle(stage: &Stage) -> usize {
    let patience = stage.lease() + stage.reclaim_every() + PATIENCE;
    let (mut least, mut since) = (usize::MAX, Instant::now());
    loop {
        // A store that is not back yet is no progress.
        if let Some(open) = stage.open_jobs().await {
            if open < least {
                (least, since) = (open, Instant::now());
            }
            if open == 0 {
                return 0;
            }
        }
        if since.elapsed() > patience {
            return least;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
