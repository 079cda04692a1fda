//! [`nightly`]: the schedule's job, which only asks: what is asked for already is not asked for twice.

use serde::{Deserialize, Serialize};
use tenure::{Attempt, Client, Completed, Ctx, Fail, Job, Schedule as Every, State, StoreError};

use crate::schedule;
use crate::worker::Diamonds;

/// It is night.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, Job)]
#[job(kind = "diamonds.nightly", queue = "diamonds", max_attempts = 5, timeout = "1m")]
pub struct Nightly {}

/// Has the catalogue read at these times, in UTC.
pub async fn set(client: &Client, cron: &str) -> Result<(), StoreError> {
    client.set_schedule(Every::new("diamonds.nightly", cron), Nightly {}).await.map(drop)
}

/// Asks for the catalogue to be read.
pub async fn nightly(
    _: Nightly,
    State(diamonds): State<Diamonds>,
    ctx: Ctx,
    attempt: Attempt,
) -> Result<Completed, Fail> {
    let client = ctx.client().clone();
    diamonds
        .database
        .transaction(move |tx| {
            let asked = schedule::asking(&client, None)?.within(tx)?;
            attempt.complete_with(tx, &asked.job().to_string())
        })
        .await
}
