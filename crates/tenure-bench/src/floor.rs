//! The raw floor: what the same tables cost as plain SQL, with no checks, no history kept for people, no handlers.
//!
//! Nothing that keeps these rows can be faster on this machine in this minute, so a ratio to it is what Tenure's own work
//! costs: decoding, running and fencing jobs, renewing leases, sealing the journal.

mod postgres;
mod sqlite;

use std::time::Duration;

use anyhow::Result;

pub use postgres::PgFloor;
pub use sqlite::SqliteFloor;

/// The floor of one field.
pub enum Floor {
    /// On Postgres.
    Postgres(PgFloor),
    /// On SQLite.
    Sqlite(SqliteFloor),
}

impl Floor {
    /// Gives it as many jobs as Tenure has.
    pub async fn fill(&self, jobs: u32) -> Result<()> {
        match self {
            Self::Postgres(floor) => floor.fill().await,
            Self::Sqlite(floor) => floor.fill(jobs),
        }
    }

    /// Ends and claims `batch` jobs a turn until none is left.
    pub async fn drain(&self, jobs: u32, batch: u32, clients: u32) -> Result<Duration> {
        match self {
            Self::Postgres(floor) => floor.drain(jobs, batch, clients).await,
            // One file has one writer.
            Self::Sqlite(floor) => floor.drain(jobs, batch),
        }
    }

    /// One job a transaction.
    pub async fn enqueue_single(&self, jobs: u32, producers: u32) -> Result<Duration> {
        match self {
            Self::Postgres(floor) => floor.enqueue(jobs, 1, producers).await,
            Self::Sqlite(floor) => floor.enqueue(jobs, 1),
        }
    }

    /// `bulk` jobs a transaction.
    pub async fn enqueue_bulk(&self, jobs: u32, bulk: u32, producers: u32) -> Result<Duration> {
        match self {
            Self::Postgres(floor) => floor.enqueue(jobs, bulk, producers).await,
            Self::Sqlite(floor) => floor.enqueue(jobs, bulk),
        }
    }

    /// From the insert of a job to the reply of the claim that follows at once, `times` times, in order, with `gap` between.
    pub async fn latency(&self, times: u32, gap: Duration) -> Result<Vec<Duration>> {
        match self {
            Self::Postgres(floor) => floor.latency(times, gap).await,
            Self::Sqlite(floor) => floor.latency(times, gap).await,
        }
    }
}
