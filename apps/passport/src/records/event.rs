//! Events: what happened, added in the transaction in which it happened, and never changed.
//!
//! Each event is told to every endpoint of its tenant: its deliveries and their jobs are made in the same transaction, so
//! there is a delivery exactly when there is its event.

use serde::Serialize;
use serde_json::Value;
use tenure::store::enqueue::Enqueued;
use tenure::{Client, Ctx, Record, StoreError, TenantName, Timestamp, Tx, row};
use uuid::Uuid;

use crate::canonical::Canonical;
use crate::halt::Halt;
use crate::id::derived;
use crate::records::delivery;

/// What can happen. Each happens to its aggregate once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// The facts of a document are stored.
    FactsParsed,
    /// A snapshot is sealed.
    SnapshotSealed,
    /// A rule package is published.
    RulesPublished,
    /// A passport version is there.
    PassportCompiled,
    /// It is signed.
    PassportSigned,
    /// It has its label.
    QrGenerated,
}

/// Something that happens now.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// What.
    pub kind: EventType,
    /// To what.
    pub aggregate: Uuid,
    /// What is told of it.
    pub payload: Value,
}

/// Of what an event came: an attempt of a job, or a person.
pub type By<'a> = Option<&'a Ctx>;

/// An event as receivers get it. The order of its members is that of the seed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Told {
    /// The same for every endpoint and in every attempt.
    pub event_id: String,
    /// Such as `PASSPORT_SIGNED`.
    pub event_type: String,
    /// Such as `PassportVersion`.
    pub aggregate_type: String,
    /// Its id.
    pub aggregate_id: String,
    /// RFC 3339.
    pub occurred_at: String,
    /// What is told of it.
    pub payload: Value,
}

impl EventType {
    /// As it is stored and told.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FactsParsed => "FACTS_PARSED",
            Self::SnapshotSealed => "SNAPSHOT_SEALED",
            Self::RulesPublished => "RULES_PUBLISHED",
            Self::PassportCompiled => "PASSPORT_COMPILED",
            Self::PassportSigned => "PASSPORT_SIGNED",
            Self::QrGenerated => "QR_GENERATED",
        }
    }

    /// What it happens to.
    pub const fn aggregate_type(self) -> &'static str {
        match self {
            Self::FactsParsed => "DocumentVersion",
            Self::SnapshotSealed => "Snapshot",
            Self::RulesPublished => "RulePackage",
            Self::PassportCompiled | Self::PassportSigned | Self::QrGenerated => "PassportVersion",
        }
    }
}

impl Event {
    /// Adds it, unless it happened before, and everything that tells it to others. Answers the jobs that do.
    pub fn append(&self, tx: &Tx<'_>, client: &Client, tenant: &TenantName, by: By<'_>) -> Result<Vec<Enqueued>, Halt> {
        let (kind, aggregate) = (self.kind.as_str(), self.aggregate.to_string());
        let id = derived("event", &[tenant.as_str(), kind, &aggregate])?;
        let there = "select 1 as one from passport_event where tenant_id = $1 and event_id = $2";
        if tx.query_first(there, row![tenant.as_str(), id.to_string()])?.is_some() {
            return Ok(Vec::new());
        }
        let payload = Canonical::of("event", &self.payload)?;
        let (job, fence) = (by.map(Ctx::job_id), by.map(|ctx| ctx.fence().0));
        let row = row![
            tenant.as_str(),
            id.to_string(),
            kind,
            self.kind.aggregate_type(),
            aggregate,
            tx.now()?,
            payload.as_str(),
            job,
            fence
        ];
        match tx.execute(include_str!("../sql/append_event.sql"), row)? {
            0 => Ok(Vec::new()),
            _ => delivery::add(tx, client, tenant, id),
        }
    }
}

impl Told {
    /// From its row.
    pub fn read(row: &Record) -> Result<Self, StoreError> {
        let payload: String = row.get("payload")?;
        Ok(Self {
            event_id: row.get("event_id")?,
            event_type: row.get("event_type")?,
            aggregate_type: row.get("aggregate_type")?,
            aggregate_id: row.get("aggregate_id")?,
            occurred_at: row.get::<Timestamp>("occurred_at")?.to_string(),
            payload: serde_json::from_str(&payload).map_err(|error| StoreError::Corrupt(error.to_string()))?,
        })
    }
}

/// What happened to a tenant's things, newest first; at most so many.
pub async fn list(database: &tenure::Database, tenant: &TenantName, limit: u32) -> Result<Vec<Told>, Halt> {
    let select = "select event_id, event_type, aggregate_type, aggregate_id, occurred_at, payload from passport_event \
                  where tenant_id = $1 order by occurred_at desc, event_id limit $2";
    let rows = database.query(select, row![tenant.as_str(), limit]).await?;
    Ok(rows.iter().map(Told::read).collect::<Result<_, _>>()?)
}
