//! [`Source`]: who is asked about coins, how often, and whether at all.
//!
//! The table says what somebody decided; the gate `source:<id>` says how the source does. Both are looked at before each
//! attempt: a job is not claimed while its gate is closed.

use std::str::FromStr;
use std::time::Duration;

use tenure::core::{Invalid, name::GateName};
use tenure::store::gate::{GateAct, OperateGate};
use tenure::store::operate::Word;
use tenure::{Breaker, Client, Database, GateRule, Rate, Record, StoreError, row};
use url::Url;

/// So many failures in a row pause a source.
pub const FAILURE_STREAK_MAX: u32 = 5;
/// Before a source's name this is its gate's.
const GATE: &str = "source:";
/// Longest name: its gate's is a name as well.
pub const ID_BYTES_MAX: usize = tenure::core::name::NAME_BYTES_MAX - GATE.len();

/// Somebody who knows prices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub id: String,
    /// How it answers.
    pub shape: Shape,
    /// Where it is.
    pub base_url: String,
    /// Whether it is asked.
    pub enabled: bool,
    /// Calls a minute, of all workers together.
    pub rate_limit_per_minute: u32,
}

/// How a source answers; one adapter each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// What was sold, page by page, as JSON.
    Auction,
    /// What is asked, by a cursor, as nested JSON.
    Market,
    /// What a dealer bids, as CSV.
    Pricelist,
}

impl Source {
    /// Stores it, or changes what is stored, and sets its gate: rate, breaker (how long it is left alone after five failures
    /// in a row), and whether anything passes. Somebody's pause, and the silence that the source asked for, stay.
    pub async fn set(&self, client: &Client, database: &Database, pause: Duration) -> Result<(), StoreError> {
        if self.id.is_empty() || self.id.len() > ID_BYTES_MAX {
            return Err(Invalid::new("source", &self.id, format!("its name has 1 to {ID_BYTES_MAX} bytes")).into());
        }
        let base_url = self.checked_url()?;
        let rule = GateRule {
            rate: Some(Rate::new(self.rate_limit_per_minute, Duration::from_secs(60))),
            breaker: Some(Breaker { failures: FAILURE_STREAK_MAX, cooldown: pause }),
            ..GateRule::default()
        };
        let upsert = "insert into coin_source (id, shape, base_url, enabled, rate_limit_per_minute) \
                      values ($1, $2, $3, true, $4) on conflict (id) do update set shape = excluded.shape, \
                      base_url = excluded.base_url, rate_limit_per_minute = excluded.rate_limit_per_minute";
        let Self { id, shape, enabled, rate_limit_per_minute, .. } = self.clone();
        client.set_gate(&self.gate(), rule).await?;
        database.execute(upsert, row![id, shape.as_str(), base_url, rate_limit_per_minute]).await?;
        self.set_enabled(client, database, enabled).await
    }

    /// Switches it off or on, for every worker. Where nothing changes, nothing is done.
    pub async fn set_enabled(&self, client: &Client, database: &Database, enabled: bool) -> Result<(), StoreError> {
        if Self::find(database, &self.id).await?.is_some_and(|known| known.enabled == enabled) {
            return Ok(());
        }
        let (act, reason) = match enabled {
            true => (GateAct::Resume, "the source is enabled"),
            false => (GateAct::Pause(None), "the source is disabled"),
        };
        let word = Word { actor: None, reason: Some(reason.to_owned()) };
        client.store().operate_gate(OperateGate { gate: GateName::new(self.gate())?, act, word }).await?;
        // Last: whoever tries again after a failure finds that it is still to be done.
        let update = "update coin_source set enabled = $2 where id = $1";
        database.execute(update, row![self.id.as_str(), enabled]).await.map(drop)
    }

    /// The gate that its jobs pass.
    pub fn gate(&self) -> String {
        format!("{GATE}{}", self.id)
    }

    /// The source of this name, if there is one.
    pub async fn find(database: &Database, id: &str) -> Result<Option<Self>, StoreError> {
        let found = database.query("select * from coin_source where id = $1", row![id]).await?;
        found.first().map(Self::read).transpose()
    }

    /// All of them, by name.
    pub async fn list(database: &Database) -> Result<Vec<Self>, StoreError> {
        database.query("select * from coin_source order by id", row![]).await?.iter().map(Self::read).collect()
    }

    /// Where it is, as paths are put behind it.
    fn checked_url(&self) -> Result<&str, Invalid> {
        let known = Url::parse(&self.base_url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        match known.filter(|url| url.has_host() && url.query().is_none() && url.fragment().is_none()) {
            Some(_) => Ok(self.base_url.trim_end_matches('/')),
            None => Err(Invalid::new("base url", &self.base_url, "it is http(s)://host, with a path if it has one")),
        }
    }

    fn read(row: &Record) -> Result<Self, StoreError> {
        let shape: String = row.get("shape")?;
        Ok(Self {
            id: row.get("id")?,
            shape: shape.parse()?,
            base_url: row.get("base_url")?,
            enabled: row.get("enabled")?,
            rate_limit_per_minute: row.get("rate_limit_per_minute")?,
        })
    }
}

impl Shape {
    /// Every shape.
    pub const ALL: [Self; 3] = [Self::Auction, Self::Market, Self::Pricelist];

    /// The word in tables and commands.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auction => "auction",
            Self::Market => "market",
            Self::Pricelist => "pricelist",
        }
    }
}

impl FromStr for Shape {
    type Err = Invalid;

    fn from_str(word: &str) -> Result<Self, Invalid> {
        let known = Self::ALL.into_iter().find(|shape| shape.as_str() == word);
        known.ok_or_else(|| Invalid::new("shape", word, "it is auction, market or pricelist"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(base_url: &str) -> Source {
        let (id, base_url) = ("hammer".to_owned(), base_url.to_owned());
        Source { id, shape: Shape::Auction, base_url, enabled: true, rate_limit_per_minute: 30 }
    }

    #[test]
    fn an_address_is_one_that_paths_go_behind() {
        for (given, kept) in [
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("https://hammer.example/", "https://hammer.example"),
            ("https://hammer.example/feed/v2/", "https://hammer.example/feed/v2"),
        ] {
            assert_eq!(at(given).checked_url(), Ok(kept));
        }
        for bad in
            ["", "hammer.example", "ftp://hammer.example", "https://", "https://h.example/?a=1", "http://h.example/#x"]
        {
            assert_eq!(at(bad).checked_url().unwrap_err().field, "base url", "{bad}");
        }
    }
}
