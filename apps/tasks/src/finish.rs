//! How a task ends well: its rows, its result and what it used in the transaction that completes it.

use serde::Serialize;
use tenure::core::Json;
use tenure::{Attempt, Completed, Ctx, Database, Fail, StoreError, Tx, row};

use crate::usage::Usage;

const ADD_RESULT: &str = "insert into task_result (job, kind, attempt, fence, output, finished_at)
    values ($1, $2, $3, $4, $5, $6)";

/// A task that is done but for the word of it.
pub(crate) struct Done<T> {
    pub(crate) ctx: Ctx,
    pub(crate) attempt: Attempt,
    pub(crate) output: T,
    pub(crate) usage: Usage,
}

/// Completes the task: `also` writes what it brings home, and all of it is kept or none. Who lost the lease meanwhile
/// keeps nothing. A database that goes away is not the task's fault: the library puts it aside, uncharged.
pub(crate) async fn finish<T: Serialize + Send + 'static>(
    database: &Database,
    done: Done<T>,
    also: impl FnOnce(&Tx<'_>) -> Result<(), StoreError> + Send + 'static,
) -> Result<Completed, Fail> {
    let Done { ctx, attempt, output, usage } = done;
    ctx.set_usage(&usage)?;
    let kept = Json::parse("output", serde_json::to_string(&output)?)?;
    database
        .transaction(move |tx| {
            also(tx)?;
            let (kind, number, fence) = (ctx.kind().as_str(), i64::from(attempt.number()), attempt.fence().0);
            tx.execute(ADD_RESULT, row![attempt.job_id(), kind, number, fence, kept, tx.now()?])?;
            attempt.complete_with(tx, &output)
        })
        .await
}
