//! [`Supplier`]: the supplier's API, as we call it. Every question but the first is about one revision.
//!
//! | call | answer |
//! |---|---|
//! | `GET /latest` | `{"revision": 3, "taken_at": "…"}` |
//! | `GET /count?as_of=3&min=0&max=100000` | `{"count": 4711}` |
//! | `GET /stones?as_of=3&min=0&max=100000&offset=60&limit=30` | `{"stones": […]}`, by stone id |
//!
//! Prices are in cents, `max` is not included. A revision that is no longer kept is `410`.

use std::time::Duration;

use kit::http::HttpOptions;
use kit::{BoxError, Http};
use serde_json::Value;
use tenure::{Ctx, Fail};

use crate::price_range::PriceRange;
use crate::settings::Settings;
use crate::stone::Stone;
use crate::work_item::WorkItem;

/// How the supplier is called. Clones share connections.
#[derive(Debug, Clone)]
pub struct Supplier {
    http: Http,
    url: String,
    /// How long it is left alone when it cannot be reached.
    pause: Duration,
}

/// A stone that came: as it was read, and all that was said of it.
#[derive(Debug, Clone)]
pub struct Told {
    /// What we know of it.
    pub stone: Stone,
    /// What the supplier said, fields that we do not know included.
    pub json: Value,
}

impl Supplier {
    /// The supplier of these settings.
    pub fn new(settings: &Settings) -> Result<Self, BoxError> {
        // An answer has as long as a page, and a tenth more: a page's own limit comes first.
        let timeout = settings.page_timeout * 11 / 10;
        let options = HttpOptions { timeout, user_agent: "tenure-diamonds", ..HttpOptions::default() };
        Ok(Self { http: Http::new(&options)?, url: settings.supplier_url.clone(), pause: settings.pause })
    }

    /// Its latest revision.
    pub async fn latest(&self, ctx: &Ctx) -> Result<u32, Fail> {
        let answer = self.ask(ctx, "/latest").await?;
        let revision = number(&answer, "revision")?;
        u32::try_from(revision).map_err(|_| Fail::permanent(format!("revision {revision} is larger than any can be")))
    }

    /// How many stones have their price in this range.
    pub async fn count(&self, ctx: &Ctx, as_of: u32, range: PriceRange) -> Result<u64, Fail> {
        let (min, max) = (range.min_cents(), range.max_cents());
        number(&self.ask(ctx, &format!("/count?as_of={as_of}&min={min}&max={max}")).await?, "count")
    }

    /// One page, and the revision it is of. What is not what was asked for will not be the next time either: refused for
    /// good. So is a stone that we cannot read, a word of its shape that nobody knows included: a catalogue is published
    /// whole or not at all.
    pub async fn page(&self, ctx: &Ctx, item: &WorkItem) -> Result<(u32, Vec<Told>), Fail> {
        let as_of = item.as_of.ok_or_else(|| Fail::permanent("asOf is missing: a page is read as of a revision"))?;
        let (min, max) = (item.prices.min_cents(), item.prices.max_cents());
        let (offset, limit) = (item.offset, item.limit);
        let path = format!("/stones?as_of={as_of}&min={min}&max={max}&offset={offset}&limit={limit}");
        let mut answer = self.ask(ctx, &path).await?;
        let Some(Value::Array(told)) = answer.get_mut("stones").map(Value::take) else {
            return Err(Fail::permanent("the answer has no list of stones"));
        };
        if told.len() as u64 > u64::from(limit) {
            return Err(Fail::permanent(format!("{} stones came, and {limit} were asked for", told.len())));
        }
        let read = |json: Value| Ok(Told { stone: Stone::from_json(&json).map_err(Fail::permanent)?, json });
        let told: Vec<Told> = told.into_iter().map(read).collect::<Result<_, Fail>>()?;
        if let Some(Told { stone, .. }) = told.iter().find(|told| !item.prices.contains(told.stone.price_cents)) {
            let (id, cents) = (&stone.supplier_stone_id, stone.price_cents);
            return Err(Fail::permanent(format!("stone {id} costs {cents} cents, and {} was asked for", item.prices)));
        }
        Ok((as_of, told))
    }

    async fn ask(&self, ctx: &Ctx, path: &str) -> Result<Value, Fail> {
        let url = format!("{}{path}", self.url);
        let answer = tokio::select! {
            biased;
            answer = self.http.get(&url) => answer,
            // Its time is over, or the process goes down and will not wait any longer.
            _ = ctx.stopped() => return ctx.check().map(|()| Value::Null),
        };
        match answer {
            Ok(answer) => answer.ok(ctx)?.json(),
            Err(unanswered) => {
                // Everybody else would find it so as well, and use up their tries.
                if !self.pause.is_zero() {
                    ctx.gate().hold(self.pause);
                }
                Err(unanswered)
            }
        }
    }
}

fn number(answer: &Value, field: &str) -> Result<u64, Fail> {
    answer.get(field).and_then(Value::as_u64).ok_or_else(|| Fail::permanent(format!("the answer has no {field}")))
}
