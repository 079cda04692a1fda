//! `task.fetch`: a document comes home.

use std::time::Instant;

use serde::Serialize;
use tenure::{Attempt, Completed, Ctx, Fail, State, row};

use crate::app::App;
use crate::finish::{Done, finish};
use crate::task::Fetch;
use crate::usage::Usage;

const KEEP: &str = "insert into task_document (url, body, fetched_at) values ($1, $2, $3)
    on conflict (url) do update set body = excluded.body, fetched_at = excluded.fetched_at";

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Fetched {
    url: String,
    bytes: u64,
}

/// Fetches, then keeps what came in the transaction that completes the task.
pub(crate) async fn fetch(task: Fetch, State(app): State<App>, ctx: Ctx, attempt: Attempt) -> Result<Completed, Fail> {
    let since = Instant::now();
    let body = app.http.get(&task.url).await?.ok(&ctx)?.body;
    let bytes = body.len() as u64;
    let output = Fetched { url: task.url.clone(), bytes };
    let done = Done { ctx, attempt, output, usage: Usage::of_fetch(since, bytes) };
    finish(&app.database, done, move |tx| tx.execute(KEEP, row![task.url, body, tx.now()?]).map(drop)).await
}
