//! Follows the journal and tells the board.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tenure_core::How;
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_store::record::{JobRecord, Sight};
use tenure_store::{Store, StoreError};

use super::board::Board;
use crate::command::audit::seen::Seen;
use tenure_server::moment;

/// Pause between two looks.
const EVERY: Duration = Duration::from_millis(60);
/// More workers than a demo has.
const WORKERS_MAX: u32 = 100;

/// Follows until dropped. A look that fails says nothing: the next one sees the same and more.
pub(super) async fn follow(store: Arc<dyn Store>, board: Board) {
    let mut seen = Seen::nothing();
    loop {
        let _again = look(&*store, &board, &mut seen).await;
        tokio::time::sleep(EVERY).await;
    }
}

async fn look(store: &dyn Store, board: &Board, seen: &mut Seen) -> Result<(), StoreError> {
    let news = seen.look(store).await?;
    for row in seen.take(news) {
        if board.look().is_stranger(&row)
            && let Ok(workers) = store.list_workers(WORKERS_MAX).await
        {
            board.know_workers(workers.into_iter().map(|worker| (worker.id, worker.name.to_string())));
        }
        let unnamed = board.look().unnamed(&row);
        for job in unnamed {
            if let Ok(job) = store.show_job(&Sight::All, job).await {
                board.look().meet(&job.summary);
            }
        }
        let error = error(store, &row).await;
        board.look().row(&row, error.as_deref());
    }
    Ok(())
}

/// What went wrong, in a few words; the row only says that something did.
async fn error(store: &dyn Store, row: &JournalRow) -> Option<String> {
    let JournalEvent::Ended(how @ (How::Retry | How::Failed | How::Dead | How::Snoozed)) = row.event else {
        return None;
    };
    let job = store.show_job(&Sight::All, *row.jobs.first()?).await.ok()?;
    let attempt = job.attempts.iter().find(|attempt| Some(attempt.lease) == row.lease)?;
    let message = attempt.error.as_ref().map(|error| message(error.as_str())).unwrap_or_default();
    Some(match how {
        How::Retry => {
            let (number, most) = (attempt.attempt, job.rules.max_attempts);
            format!("{message}, attempt {number} of {most}{}", again(&job))
        }
        How::Snoozed => format!("not yet, no attempt charged{}", again(&job)),
        How::Dead if attempt.attempt >= job.rules.max_attempts => format!("{message}, no attempts left"),
        _ => message,
    })
}

fn again(job: &JobRecord) -> String {
    match job.summary.run_at.since(moment::now()) {
        wait if wait.is_zero() => String::new(),
        wait => format!(", again in {}", moment::span(wait)),
    }
}

/// The `message` of a stored error.
fn message(error: &str) -> String {
    let error: Option<Value> = serde_json::from_str(error).ok();
    error.and_then(|error| error["message"].as_str().map(str::to_owned)).unwrap_or_default()
}
