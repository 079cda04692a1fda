//! [`Report`]: which domains failed most lately, and which are candidates for blocking.

use std::time::Duration;

use tenure::{Client, Database, Record, StoreError, Timestamp, row};

/// Lines of each list.
const LINES_MAX: u32 = 100;

/// What operators read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Domains with the most attempts that failed in this time, the worst first.
    pub failing: Vec<Failing>,
    /// Domains that refused us, the most frequent first.
    pub block_candidates: Vec<Candidate>,
}

/// A domain that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failing {
    /// Which.
    pub domain: String,
    /// Attempts that failed there.
    pub failures: u64,
    /// When one did last.
    pub last_at: String,
}

/// A domain that should perhaps not be called any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Which.
    pub domain: String,
    /// `robots`, `captcha` or `forbidden`.
    pub reason: String,
    /// How often.
    pub count: u64,
    /// When first.
    pub first_seen: String,
    /// When last.
    pub last_seen: String,
    /// Which job met it last.
    pub last_job: String,
}

impl Report {
    /// Reads what failed in so long a time until now, and all candidates.
    pub async fn read(client: &Client, database: &Database, within: Duration) -> Result<Self, StoreError> {
        let since = client.store().now().await?.minus(within);
        let failing = "select domain, count(*) as failures, max(at) as last_at from link_failure where at >= $2 \
                       group by domain order by failures desc, domain limit $1";
        let candidates = "select domain, reason, count, first_seen, last_seen, last_job from link_block_candidate \
                          order by count desc, domain, reason limit $1";
        let failing = database.query(failing, row![LINES_MAX, since]).await?;
        let candidates = database.query(candidates, row![LINES_MAX]).await?;
        Ok(Self {
            failing: failing.iter().map(Failing::read).collect::<Result<_, _>>()?,
            block_candidates: candidates.iter().map(Candidate::read).collect::<Result<_, _>>()?,
        })
    }
}

impl Failing {
    fn read(row: &Record) -> Result<Self, StoreError> {
        Ok(Self { domain: row.get("domain")?, failures: row.get("failures")?, last_at: time(row, "last_at")? })
    }
}

impl Candidate {
    fn read(row: &Record) -> Result<Self, StoreError> {
        Ok(Self {
            domain: row.get("domain")?,
            reason: row.get("reason")?,
            count: row.get("count")?,
            first_seen: time(row, "first_seen")?,
            last_seen: time(row, "last_seen")?,
            last_job: row.get("last_job")?,
        })
    }
}

fn time(row: &Record, column: &str) -> Result<String, StoreError> {
    Ok(row.get::<Timestamp>(column)?.to_string())
}
