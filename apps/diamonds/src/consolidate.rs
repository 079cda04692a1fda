//! [`consolidate`]: the raw stones of a run become the stones we sell, once, when all its partitions are done.
//!
//! Raw rows of the run's revision are read in the order of their keys, a batch at a time, and written with our price. Each
//! stone's row is right by itself, so batches are transactions of their own, and a job that is tried again writes the same
//! again. The last transaction removes what the supplier no longer lists, notes the publication and ends the job.
//!
//! What is newer wins: a run that was resumed after a later one had been published publishes nothing. What a later run has
//! read and not published does not matter: it is of another revision.

use serde::{Deserialize, Serialize};
use tenure::core::Invalid;
use tenure::sink::{Row, Sink, Type};
use tenure::{Attempt, Completed, Ctx, Database, Fail, Job, Record, RunId, State, StoreError, Tx, row};

use crate::stone::Stone;
use crate::worker::Diamonds;

/// Stones of one batch.
const BATCH: u32 = 1_000;
/// The latest revision that was published; null when none was.
const NEWEST: &str = "select max(as_of) as as_of from diamonds_run where published_at is not null";

/// All partitions are done: publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Job)]
#[job(kind = "diamonds.consolidate", queue = "diamonds", max_attempts = 5, timeout = "30m")]
#[job(backoff = "exponential 10s..5m by failures")]
#[serde(rename_all = "camelCase")]
pub struct Consolidate {
    /// `CONSOLIDATE`.
    #[serde(rename = "type")]
    pub says: String,
    /// Which run.
    pub run_id: String,
    /// What ties its logs together.
    pub trace_id: String,
    /// The supplier's revision that it has read.
    pub as_of: u32,
}

/// What came of it, kept as the job's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consolidated {
    /// Stones that were written.
    pub stones: u64,
    /// Stones that the supplier no longer lists.
    pub withdrawn: u64,
    /// The later revision that was published before, if there was one: nothing was written then.
    pub published_before: Option<u32>,
}

impl Consolidate {
    pub(crate) fn of(run: RunId, trace_id: &str, as_of: u32) -> Self {
        Self { says: "CONSOLIDATE".to_owned(), run_id: run.to_string(), trace_id: trace_id.to_owned(), as_of }
    }
}

/// Publishes a run.
pub async fn consolidate(
    job: Consolidate,
    State(diamonds): State<Diamonds>,
    ctx: Ctx,
    attempt: Attempt,
) -> Result<Completed, Fail> {
    let published_before = published(&diamonds.database).await?.filter(|published| *published > job.as_of);
    let stones = match published_before {
        None => diamonds.write(&job, &ctx).await?,
        Some(_) => 0,
    };
    diamonds
        .database
        .transaction(move |tx| {
            if published_before.is_none() {
                let params = row![job.run_id.as_str(), job.as_of, tx.now()?, stones as i64];
                tx.execute(include_str!("sql/publish_run.sql"), params)?;
            }
            let withdrawn = remove_older(tx)?;
            tracing::info!(
                run = job.run_id,
                trace = job.trace_id,
                stones,
                withdrawn,
                ?published_before,
                "consolidated"
            );
            attempt.complete_with(tx, &Consolidated { stones, withdrawn, published_before })
        })
        .await
}

/// The latest revision that was published.
pub async fn published(database: &Database) -> Result<Option<u32>, StoreError> {
    newest(&database.query(NEWEST, row![]).await?)
}

fn newest(found: &[Record]) -> Result<Option<u32>, StoreError> {
    found.first().map_or(Ok(None), |row| row.get("as_of"))
}

/// Removes what the newest published revision does not have; answers how many of our stones that were. Who was too late to
/// publish does so as well: its last batch may have been stored beside that publication.
fn remove_older(tx: &Tx<'_>) -> Result<u64, StoreError> {
    let Some(newest) = newest(&tx.query(NEWEST, row![])?)? else { return Ok(0) };
    tx.execute("delete from diamonds_raw where as_of < $1", row![newest])?;
    tx.execute("delete from diamonds_stone where as_of < $1", row![newest])
}

/// The table of the stones we sell.
pub(crate) fn clean_sink() -> Result<Sink, Invalid> {
    let texts = ["offer_id", "origin", "shape", "colour", "clarity", "cut", "run_id"];
    let sink = Sink::table("diamonds_stone").key("supplier_stone_id", Type::Text);
    let sink = texts.into_iter().fold(sink, |sink, name| sink.value(name, Type::Text));
    let numbers = ["carat_points", "price_cents", "retail_cents"];
    let sink = numbers.into_iter().fold(sink, |sink, name| sink.value(name, Type::Int));
    sink.value("available", Type::Bool).value("changed_at", Type::Time).keep_stronger("as_of")
}

impl Diamonds {
    /// Writes every raw stone of the run with our price, batch by batch; answers how many there are.
    async fn write(&self, job: &Consolidate, ctx: &Ctx) -> Result<u64, Fail> {
        let (as_of, mut after, mut stones) = (job.as_of, String::new(), 0);
        loop {
            ctx.check()?;
            let params = row![as_of, after.as_str(), BATCH];
            let batch = self.database.query(include_str!("sql/read_raw.sql"), params).await?;
            let Some(last) = batch.last() else { return Ok(stones) };
            after = last.get("supplier_stone_id")?;
            stones += batch.len() as u64;
            let rows: Vec<Row> = batch.iter().map(|raw| self.clean_row(raw, as_of)).collect::<Result<_, _>>()?;
            let clean = self.clean.clone();
            let write = move |tx: &Tx<'_>| match newest(&tx.query(NEWEST, row![])?)? {
                // We were slow, and somebody else was not: what was withdrawn since must not come back.
                Some(later) if later > as_of => {
                    Err(Fail::transient(format!("revision {later} was published meanwhile")))
                }
                _ => Ok(clean.upsert(tx, rows)?),
            };
            self.database.transaction(write).await?;
        }
    }

    /// A raw row with our price.
    fn clean_row(&self, raw: &Record, as_of: u32) -> Result<Row, Fail> {
        let payload: String = raw.get("payload")?;
        let stone: Stone = serde_json::from_str(&payload).map_err(Fail::permanent)?;
        // Prices are far below what 63 bits hold: see `markup`.
        let (price, retail) = (stone.price_cents as i64, self.markup.retail_cents(&stone) as i64);
        Ok(row![
            stone.supplier_stone_id,
            stone.offer_id,
            stone.origin.as_str(),
            stone.shape.as_str(),
            stone.colour.as_str(),
            stone.clarity.as_str(),
            stone.cut.as_str(),
            raw.get::<String>("run_id")?,
            stone.carat_points,
            price,
            retail,
            stone.available,
            stone.changed_at,
            as_of,
        ])
    }
}
