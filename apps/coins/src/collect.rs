//! [`collect`]: one attempt to learn from one source what one coin costs.
//!
//! The source is called while no transaction is open. Then one transaction stores the points, computes the coin's
//! valuation from all that is known of it, and ends the job: all three or none. A worker that lost its lease meanwhile is
//! refused there, and nothing it learned is stored twice.
//!
//! # What counts against a source
//! Every call that brought nothing: no answer, an error of any status, a page that is too long or makes no sense. One that
//! was answered counts for it, whatever becomes of the job; a kept answer says nothing, and neither does a coin or a source
//! that is not known here.

use serde::{Deserialize, Serialize};
use tenure::core::Invalid;
use tenure::sink::{Sink, Upserted};
use tenure::{Attempt, Cache, Completed, Ctx, Database, Fail, Job, State, StoreError, Tx, row};

use kit::Http;

use crate::adapter::{Batch, PAGES_MAX};
use crate::intake::Intake;
use crate::point::{Found, PriceKind, sink};
use crate::settings::Settings;
use crate::source::Source;
use crate::valuation::{Price, value};

/// What counts towards a valuation; other currencies are kept and not counted.
const CURRENCY: &str = "USD";
/// How long a job waits whose source was switched off after it was claimed.
const OFF_WAIT: std::time::Duration = std::time::Duration::from_secs(60);

/// Ask one source about one coin. A handler's errors are tried again after 1, 2, 4 … minutes, a day at most. Each call has
/// its own time; all of them together have none, since they wait for the source's rate between.
#[derive(Debug, Clone, Serialize, Deserialize, Job)]
#[job(kind = "coins.collect", queue = "coins", max_attempts = 5)]
#[job(backoff = "exponential 1m..24h by failures")]
pub struct Collect {
    /// Which coin.
    pub intake: String,
    /// Which source.
    pub source: String,
}

/// What handlers share.
#[derive(Clone)]
pub struct Coins {
    /// Jobs and tables.
    pub database: Database,
    http: Http,
    cache: Cache,
    settings: Settings,
    points: Sink,
}

/// All that a source told about a coin, as it is kept.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Told {
    found: Vec<Found>,
    skipped: u32,
    truncated: bool,
}

/// What an attempt did, kept as the job's result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collected {
    /// Listings that the source told of, now or when it was last asked.
    pub found: u64,
    /// Those besides that made no sense.
    pub skipped: u32,
    /// Whether the source has more pages than are asked for.
    pub truncated: bool,
    /// Points that were not known.
    pub new: u64,
    /// Points that were known by a weaker match.
    pub better: u64,
    /// What the coin is worth now, in cents.
    pub value: Option<i64>,
}

impl Coins {
    /// Puts together what handlers need. Answers are kept in `cache`.
    pub fn new(database: Database, http: Http, cache: Cache, settings: Settings) -> Result<Self, Invalid> {
        Ok(Self { database, http, cache, settings, points: sink()? })
    }

    /// How often the cache helped.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// All that the source lists about the coin, page by page.
    async fn ask(&self, intake: &Intake, source: &Source, ctx: &Ctx) -> Result<Told, Fail> {
        let (mut told, mut why, mut next) = (Told::default(), None, Some(1));
        for number in 1..=PAGES_MAX {
            let Some(page) = next else { break };
            if number > 1 {
                // The first call was counted when the job was claimed.
                ctx.gate().acquire(1).await?;
            }
            let batch = self.call(intake, source, page, ctx).await?;
            told.found.extend(batch.found);
            told.skipped += batch.skipped;
            why = why.or(batch.why);
            next = batch.next;
        }
        told.truncated = next.is_some();
        match why {
            Some(why) if told.found.is_empty() => {
                ctx.gate().unhealthy();
                return Err(source.shape.makes_no_sense(&why));
            }
            Some(why) => tracing::warn!(source = source.id, skipped = told.skipped, why, "listings make no sense"),
            None => {}
        }
        if told.truncated {
            tracing::warn!(
                source = source.id,
                intake = intake.id,
                "it has more than {PAGES_MAX} pages: the rest is left"
            );
        }
        Ok(told)
    }

    /// One page. A call that brings nothing counts against the source, whether it is worth trying again or not.
    async fn call(&self, intake: &Intake, source: &Source, page: u32, ctx: &Ctx) -> Result<Batch, Fail> {
        let url = format!("{}{}", source.base_url, source.shape.path(intake, page));
        let read = async { source.shape.read(&self.http.get(&url).await?.ok(ctx)?.body) };
        read.await.inspect_err(|_| ctx.gate().unhealthy())
    }
}

/// Asks the source, unless it was asked lately, and stores what it said.
pub async fn collect(job: Collect, State(coins): State<Coins>, ctx: Ctx, attempt: Attempt) -> Result<Completed, Fail> {
    let gone = |what: &str, id: &str| Fail::permanent(format!("{what} `{id}` is not known here"));
    let source = Source::find(&coins.database, &job.source).await?.ok_or_else(|| gone("source", &job.source))?;
    let intake = Intake::find(&coins.database, &job.intake).await?.ok_or_else(|| gone("intake", &job.intake))?;
    if !source.enabled {
        return Err(Fail::snooze(OFF_WAIT));
    }
    let key = intake.cache_key(&source.id);
    let mut asked = false;
    let ask = || {
        asked = true;
        coins.ask(&intake, &source, &ctx)
    };
    let told = coins.cache.get_or_fetch(&key, coins.settings.cache_ttl, ask).await?;
    match asked {
        true => ctx.gate().healthy(),
        false => ctx.gate().silent(),
    }
    let points = coins.points.clone();
    coins
        .database
        .transaction(move |tx| {
            let collected = store(tx, &points, &intake, &source, &told)?;
            attempt.complete_with(tx, &collected)
        })
        .await
}

/// Points and valuation.
fn store(tx: &Tx<'_>, points: &Sink, intake: &Intake, source: &Source, told: &Told) -> Result<Collected, Fail> {
    let now = tx.now()?;
    // First of all: whoever learns something else about this coin just now waits here, and then sees our points.
    tx.execute("update coin_intake set valued_at = $2 where id = $1", row![intake.id.as_str(), now])?;
    let rows = told.found.iter().map(|listing| listing.row(intake, &source.id, now));
    let rows = rows.collect::<Result<_, Invalid>>().map_err(Fail::permanent)?;
    let Upserted { inserted, updated, .. } = points.upsert(tx, rows).map_err(refused)?;
    let valuation = value(&prices(tx, intake)?);
    if let Some(worth) = valuation {
        let row = row![intake.id.as_str(), worth.cents, worth.low, worth.high, worth.points, worth.outliers, now];
        tx.execute(include_str!("sql/value_intake.sql"), row)?;
    }
    let Told { found, skipped, truncated } = told;
    Ok(Collected {
        found: found.len() as u64,
        skipped: *skipped,
        truncated: *truncated,
        new: inserted,
        better: updated,
        value: valuation.map(|worth| worth.cents),
    })
}

/// What a table does not take now it will not take later.
fn refused(error: StoreError) -> Fail {
    match error {
        StoreError::Invalid(invalid) => Fail::permanent(invalid),
        error => error.into(),
    }
}

/// All that is known of a coin's price.
fn prices(tx: &Tx<'_>, intake: &Intake) -> Result<Vec<Price>, StoreError> {
    let select = "select kind, cents, match_strength from coin_price_point where intake_id = $1 and currency = $2";
    let rows = tx.query(select, row![intake.id.as_str(), CURRENCY])?;
    let price = |row: &tenure::Record| {
        let kind: PriceKind = row.get::<String>("kind")?.parse()?;
        Ok(Price { kind, cents: row.get("cents")?, strength: row.get("match_strength")? })
    };
    rows.iter().map(price).collect()
}
