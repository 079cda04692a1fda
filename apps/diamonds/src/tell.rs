//! [`tell`]: writes WORK_DONE of partitions that failed.
//!
//! A partition that completes says so in the transaction of its last page. One that fails has nobody left to say so: its
//! page has used up its tries, or its workers died one after the other. So every ten seconds somebody looks.
//!
//! A run that has failed may still change, by `resume` or `reset`, so it is looked at for a day; so is one that was noted
//! and never made.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::store::StoreError;
use tenure::{Attempt, Completed, Ctx, Fail, Job, RunId, RunState, State, Timestamp, row};

use crate::work_done::WorkDone;
use crate::worker::Diamonds;

/// When it is looked, as a schedule says it.
pub const EVERY: &str = "*/10 * * * * *";
/// Most runs that are looked at in one go.
const RUNS_MAX: u32 = 100;
/// So long a run is looked at that does not go on.
const LOOKED_AT: Duration = Duration::from_secs(86_400);

/// Look for partitions that failed.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, Job)]
#[job(kind = "diamonds.tell", queue = "diamonds", max_attempts = 1, timeout = "1m")]
pub struct Tell {}

/// What one run has to say.
struct News {
    run: String,
    noted_at: Timestamp,
    /// `None`: there is no such run, or not yet.
    state: Option<RunState>,
    /// Each with the time when its partition last moved.
    failed: Vec<(WorkDone, Timestamp)>,
}

/// Looks at every run that has not said all.
pub async fn tell(_: Tell, State(diamonds): State<Diamonds>, ctx: Ctx, attempt: Attempt) -> Result<Completed, Fail> {
    let untold =
        "select run_id, trace_id, created_at from diamonds_run where not told order by created_at desc limit $1";
    let mut news = Vec::new();
    for row in diamonds.database.query(untold, row![RUNS_MAX]).await? {
        let (run, trace_id): (String, String) = (row.get("run_id")?, row.get("trace_id")?);
        news.push(look(&ctx, run, row.get("created_at")?, &trace_id).await?);
    }
    diamonds
        .database
        .transaction(move |tx| {
            let (now, mut told) = (tx.now()?, 0);
            for news in &news {
                for (done, moved_at) in &news.failed {
                    told += done.store_as_of(tx, *moved_at)?;
                }
                if news.is_all(now) {
                    tx.execute("update diamonds_run set told = true where run_id = $1", row![news.run.as_str()])?;
                }
            }
            attempt.complete_with(tx, &told)
        })
        .await
}

impl News {
    /// Whether nothing can come after it.
    fn is_all(&self, now: Timestamp) -> bool {
        match self.state {
            Some(RunState::Queued | RunState::Running) => false,
            Some(RunState::Succeeded | RunState::Canceled) => true,
            Some(RunState::Failed) | None => now.since(self.noted_at) >= LOOKED_AT,
        }
    }
}

async fn look(ctx: &Ctx, run: String, noted_at: Timestamp, trace_id: &str) -> Result<News, Fail> {
    let id: RunId = run.parse()?;
    let state = match ctx.client().show_run(id).await {
        Ok(record) => Some(record.run.state),
        Err(StoreError::NotFound(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let mut failed = ctx.client().partitions_of(id).await?;
    failed.retain(|partition| partition.state == RunState::Failed);
    let failed = failed.iter().map(|it| (WorkDone::failed(it, trace_id), it.moved_at)).collect();
    Ok(News { run, noted_at, state, failed })
}
