//! An ingest on Postgres: pages whose rows commit with their partition's progress, and a job that counts them at the end.
//!
//! The tables have no key: a row that came twice is there twice, and so is a consolidate.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_worker::{Completed, Ctx, Defaults, Fail, Job, Page, State};

use crate::act::Stagehand;

/// Makes the tables.
pub const TABLES: &str = "create table if not exists e2e_row (part text not null, n bigint not null);
    create table if not exists e2e_consolidated (run uuid not null, rows bigint not null)";

/// A page of `rows` rows in all.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ingest {
    /// The partition has so many.
    pub rows: u64,
    /// A page takes so long.
    pub ms: u64,
    /// What is wrong with it.
    pub ill: Ill,
}

/// What is wrong with a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ill {
    /// Nothing.
    Nothing,
    /// Its source is broken until the gate `mended` is open.
    Broken,
    /// The reply to each of its commits is lost: the handler hears an error.
    Deaf,
}

impl Job for Ingest {
    const KIND: &'static str = "ingest";
    const DEFAULTS: Defaults = Defaults::new().max_attempts(5).backoff("fixed 50ms");
}

/// Runs when all pages are there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Consolidate;

impl Job for Consolidate {
    const KIND: &'static str = "consolidate";
    const DEFAULTS: Defaults = Defaults::new().max_attempts(100).backoff("fixed 100ms");
}

/// The handler of [`Ingest`].
pub async fn ingest(job: Ingest, State(hand): State<Stagehand>, ctx: Ctx, page: Page) -> Result<Completed, Fail> {
    hand.ledger.write(ctx.job_id(), ctx.fence(), "start").await;
    tokio::time::sleep(Duration::from_millis(job.ms)).await;
    if job.ill == Ill::Broken && page.offset() > 0 && !hand.gates.is_open("mended", &hand.worker) {
        return Err(Fail::permanent("the source is broken"));
    }
    let rows: Vec<i64> = (page.offset()..job.rows).take(page.limit() as usize).map(|n| n as i64).collect();
    let part = format!("{}:{}", page.run(), page.partition());
    let mut client = hand.sink.client().await?;
    let tx = client.transaction().await?;
    tx.execute("insert into e2e_row select $1, unnest($2::bigint[])", &[&part, &rows]).await?;
    let done = page.advance(&tx, rows.len() as u64).await?;
    tx.commit().await?;
    hand.sink.give_back(client);
    match job.ill {
        Ill::Deaf => Err(Fail::transient("the reply to the commit was lost")),
        Ill::Nothing | Ill::Broken => Ok(done),
    }
}

/// The handler of [`Consolidate`]: writes down how many rows there were.
pub async fn consolidate(
    _: Consolidate,
    State(hand): State<Stagehand>,
    ctx: Ctx,
    attempt: tenure_worker::Attempt,
) -> Result<Completed, Fail> {
    let run = ctx.part().map(tenure_core::Part::run).ok_or_else(|| Fail::permanent("it is part of no run"))?;
    let mut client = hand.sink.client().await?;
    let tx = client.transaction().await?;
    let count =
        "insert into e2e_consolidated select $1::uuid, count(*) from e2e_row where part like ($1::uuid)::text || ':%'";
    tx.execute(count, &[run.as_uuid()]).await?;
    let done = attempt.complete_in(&tx).await?;
    tx.commit().await?;
    hand.sink.give_back(client);
    Ok(done)
}
