//! [`schedule`]: splits the supplier's latest revision into partitions and creates the run.
//!
//! It is a job like the others: tried again, seen in the dashboard, asked for by hand or every night. A run has the id of
//! the job that created it, so that a job that is tried again creates one run all the same: it finds what it has made and
//! says so. There is one run at a time: see [`claim`].

use serde::{Deserialize, Serialize};
use tenure::{Client, Ctx, Database, Enqueue, Fail, Job, Returned, RunId, State, StoreError, row};

use crate::consolidate::{self, Consolidate};
use crate::price_range::PriceRange;
use crate::split::{Plan, SplitError, split};
use crate::work_item::{LIMIT_DEFAULT, WorkItem, check_trace};
use crate::worker::Diamonds;
use crate::{GATE, SOURCE, claim};

/// Read the whole catalogue.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[job(kind = "diamonds.schedule", queue = "diamonds", max_attempts = 5, timeout = "10m")]
#[job(backoff = "exponential 10s..5m by failures")]
pub struct Schedule {
    /// What ties the logs of the run together; the run's own id unless set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
}

/// What came of it, kept as the job's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scheduled {
    /// The run: the one that was created, or the one that goes on.
    pub run: String,
    /// Whether this job created it.
    pub created: bool,
    /// The supplier's revision.
    pub as_of: u32,
    /// Its partitions.
    pub partitions: u64,
    /// Its stones, as counted.
    pub stones: u64,
    /// How often this attempt counted.
    pub queries: u64,
}

/// Asks for the catalogue to be read, unless that is asked for already.
pub async fn ask(client: &Client, trace_id: Option<String>) -> Result<tenure::JobId, StoreError> {
    Ok(asking(client, trace_id)?.await?.job())
}

/// The same, on its way.
pub(crate) fn asking(client: &Client, trace_id: Option<String>) -> Result<Enqueue<'_>, StoreError> {
    if let Some(trace_id) = &trace_id {
        check_trace(trace_id)?;
    }
    Ok(client.enqueue(Schedule { trace_id }).gate(GATE).unique(SOURCE))
}

/// Splits and creates.
pub async fn schedule(job: Schedule, State(diamonds): State<Diamonds>, ctx: Ctx) -> Result<Returned<Scheduled>, Fail> {
    let run = RunId::from_uuid(*ctx.job_id().as_uuid());
    let trace_id = job.trace_id.unwrap_or_else(|| run.to_string());
    check_trace(&trace_id).map_err(Fail::permanent)?;
    if let Some(made) = find_made(&diamonds.database, ctx.client(), run).await? {
        return Ok(Returned(made));
    }
    if let Some(open) = claim::open_run(&diamonds.database, ctx.client()).await? {
        return Ok(Returned(going_on(&diamonds.database, open).await?));
    }
    let as_of = diamonds.supplier.latest(&ctx).await?;
    refuse_older(&diamonds, as_of).await?;
    let count = |range| diamonds.supplier.count(&ctx, as_of, range);
    let plan = split(PriceRange::ALL, diamonds.settings.limits, count).await.map_err(split_failed)?;
    if let Some(open) = create(&diamonds, ctx.client(), run, &trace_id, as_of, &plan).await? {
        return Ok(Returned(going_on(&diamonds.database, open).await?));
    }
    let (run, partitions) = (run.to_string(), plan.partitions.len() as u64);
    tracing::info!(run, as_of, partitions, stones = plan.stones, queries = plan.queries, "a run was created");
    Ok(Returned(Scheduled { run, created: true, as_of, partitions, stones: plan.stones, queries: plan.queries }))
}

/// Takes the catalogue with a note of what only we know of the run, then creates the run; or answers which one goes on.
pub async fn create(
    diamonds: &Diamonds,
    client: &Client,
    run: RunId,
    trace_id: &str,
    as_of: u32,
    plan: &Plan,
) -> Result<Option<RunId>, StoreError> {
    let params = row![run, trace_id, as_of, plan.partitions.len() as i64, plan.stones as i64];
    let taken = claim::take(&diamonds.database, client, run, move |tx, now| {
        let mut params = params;
        params.push(now.into());
        tx.execute(include_str!("sql/note_run.sql"), params).map(drop)
    });
    if let Some(open) = taken.await? {
        return Ok(Some(open));
    }
    let mut new = client.new_run().id(run).source(SOURCE).owner("scheduler");
    for partition in &plan.partitions {
        let name = partition.range.to_string();
        let item = WorkItem {
            run_id: run,
            trace_id: trace_id.to_owned(),
            partition_id: name.parse()?,
            prices: partition.range,
            offset: 0,
            limit: LIMIT_DEFAULT,
            total_records: Some(partition.stones),
            as_of: Some(as_of),
        };
        let first = client.enqueue(item).gate(GATE).max_attempts(diamonds.settings.deliveries);
        new = new.partition(&name, first, LIMIT_DEFAULT).expected(partition.stones);
    }
    new.consolidate(client.enqueue(Consolidate::of(run, trace_id, as_of))).await?;
    claim::settle(&diamonds.database, run).await?;
    Ok(None)
}

/// The run that an earlier attempt of this job has made, whatever became of it.
async fn find_made(database: &Database, client: &Client, run: RunId) -> Result<Option<Scheduled>, StoreError> {
    match client.show_run(run).await {
        Ok(_) => Ok(Some(Scheduled { created: true, ..noted(database, run).await? })),
        Err(StoreError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

async fn going_on(database: &Database, run: RunId) -> Result<Scheduled, StoreError> {
    tracing::info!(%run, "the catalogue is being read already");
    noted(database, run).await
}

/// What was noted of a run.
async fn noted(database: &Database, run: RunId) -> Result<Scheduled, StoreError> {
    let select = "select as_of, partitions, stones from diamonds_run where run_id = $1";
    let rows = database.query(select, row![run]).await?;
    let note = rows.first().ok_or_else(|| StoreError::NotFound(format!("a note of run {run}")))?;
    let (as_of, partitions, stones) = (note.get("as_of")?, note.get("partitions")?, note.get("stones")?);
    Ok(Scheduled { run: run.to_string(), created: false, as_of, partitions, stones, queries: 0 })
}

/// A supplier whose revisions went back is another one: what it says would never replace what we have.
async fn refuse_older(diamonds: &Diamonds, as_of: u32) -> Result<(), Fail> {
    match consolidate::published(&diamonds.database).await? {
        Some(published) if published > as_of => Err(Fail::permanent(format!(
            "the supplier is at revision {as_of}, and {published} is published: empty the tables, or ask another supplier"
        ))),
        _ => Ok(()),
    }
}

/// What a split that failed means to its job.
fn split_failed(error: SplitError<Fail>) -> Fail {
    match error {
        SplitError::Count { source, .. } => source,
        // The next revision may be counted rightly.
        contradiction @ SplitError::Contradiction { .. } => Fail::transient(contradiction),
        too_many @ SplitError::TooMany { .. } => Fail::permanent(too_many),
    }
}
