//! The record of every transition, and its seals.
//!
//! Seal k holds the rows visible in its snapshot and not in the one before, in id order. Sealing by the oldest running
//! transaction would stop while any is open in any database of the cluster; ordering by transaction id would put a late
//! requeue before the claim it followed. The transaction that seals writes no journal rows itself.

mod list;

use async_trait::async_trait;
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::seal::{GENESIS, Hash, Seal, Sealer};
use tenure_core::{JobId, Json, LeaseNo, WorkerId};
use tenure_store::journal::{JOB_ROWS_MAX, JournalFilter, JournalFound, JournalPage, row_of_job};
use tenure_store::record::Sight;
use tenure_store::{JournalStore, StoreError};
use tokio_postgres::types::Type;
use tokio_postgres::{IsolationLevel, Row, Transaction};

use crate::call::{Param, late};
use crate::error::translate;
use crate::jobs::tenant;
use crate::pool::Desk;
use crate::statement;
use crate::store::PgStore;
use crate::value::{get, job_ids, time};
use crate::wall::Seen;

/// The snapshot before everything.
const NOTHING: &str = "1:1:";
/// Rows hashed at once.
const PAGE_ROWS: i64 = 5_000;
/// One sealer at a time: the key of its advisory lock.
const SEALER_LOCK: i64 = 0x7e97_5ea1;

/// The rows of a seal.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Window {
    era: i16,
    after: String,
    /// `None`: the rest of an era that ended.
    upto: Option<String>,
}

impl Window {
    fn boundary(&self) -> String {
        format!("{}/{}", self.era, self.upto.as_deref().unwrap_or("rest"))
    }
}

#[async_trait]
impl JournalStore for PgStore {
    async fn seal_journal(&self) -> Result<Option<Seal>, StoreError> {
        let mut connection = self.pools().get(Desk::Long).await?;
        let deadline = Desk::Long.deadline(self.options());
        let sealing = async {
            let tx = connection
                .build_transaction()
                .isolation_level(IsolationLevel::ReadCommitted)
                .start()
                .await
                .map_err(translate)?;
            let sealed = self.seal(&tx).await?;
            tx.commit().await.map_err(translate)?;
            Ok(sealed)
        };
        match tokio::time::timeout(deadline, sealing).await {
            Ok(sealed) => sealed,
            Err(_) => {
                drop(deadpool_postgres::Object::take(connection));
                Err(late(deadline))
            }
        }
    }

    async fn list_seals(&self, after: i64, limit: u32) -> Result<Vec<Seal>, StoreError> {
        let limit = i64::from(limit);
        let rows = self.call(Desk::Long, statement::LIST_SEALS, &[(&after, Type::INT8), (&limit, Type::INT8)]).await?;
        rows.iter()
            .map(|row| {
                let window = Window { era: get(row, "era")?, after: String::new(), upto: get(row, "snapshot")? };
                Ok(Seal {
                    no: get(row, "no")?,
                    boundary: window.boundary(),
                    rows: get(row, "rows")?,
                    prev: hash(row, "prev")?,
                    hash: hash(row, "hash")?,
                })
            })
            .collect()
    }

    async fn read_journal(&self, page: JournalPage) -> Result<Vec<JournalRow>, StoreError> {
        let Some(window) = self.window(page.seal).await? else { return Ok(Vec::new()) };
        let limit = i64::from(page.limit);
        let (name, params) = read(&window, &page.after, &limit);
        self.call(Desk::Long, name, &params).await?.iter().map(journal_row).collect()
    }

    async fn list_job_rows(&self, sight: &Sight, job: JobId) -> Result<Vec<JournalRow>, StoreError> {
        let (tenant, limit) = (tenant(sight), i64::from(JOB_ROWS_MAX));
        let params: [Param<'_>; 3] = [(job.as_uuid(), Type::UUID), (&tenant, Type::TEXT), (&limit, Type::INT8)];
        // No tenant has a right to the journal: it is let pass by a look at the job.
        let seen = Seen::Job(job.as_uuid());
        let rows = self.call_past(tenant.as_deref(), seen, statement::LIST_JOB_ROWS, &params).await?;
        rows.iter().rev().map(|row| Ok(row_of_job(journal_row(row)?, job, sight))).collect()
    }

    async fn list_journal(&self, filter: &JournalFilter) -> Result<JournalFound, StoreError> {
        filter.check()?;
        self.list_rows(filter).await
    }
}

impl PgStore {
    /// The rows of a seal, or of the tail after the last one.
    async fn window(&self, seal: Option<i64>) -> Result<Option<Window>, StoreError> {
        let Some(no) = seal else {
            let rows = self.call(Desk::Long, statement::OPEN_SEAL, &[]).await?;
            return rows.first().map(|row| Last::read(row).map(|last| last.tail())).transpose();
        };
        let (after, limit) = (no - 2, 2_i64);
        let rows = self.call(Desk::Long, statement::LIST_SEALS, &[(&after, Type::INT8), (&limit, Type::INT8)]).await?;
        let mut before = (1_i16, Some(NOTHING.to_owned()));
        for row in rows {
            let (era, snapshot) = (get::<i16>(&row, "era")?, get::<Option<String>>(&row, "snapshot")?);
            if get::<i64>(&row, "no")? == no {
                let after = before.1.filter(|_| before.0 == era).unwrap_or_else(|| NOTHING.to_owned());
                return Ok(Some(Window { era, after, upto: snapshot }));
            }
            before = (era, snapshot);
        }
        Ok(None)
    }
}

/// Where the chain stands.
struct Last {
    no: i64,
    hash: Hash,
    era: i16,
    snapshot: Option<String>,
    era_now: i16,
    snapshot_now: String,
}

impl Last {
    fn read(row: &Row) -> Result<Self, StoreError> {
        let no: Option<i64> = get(row, "no")?;
        Ok(Self {
            no: no.unwrap_or(0),
            hash: if no.is_some() { hash(row, "hash")? } else { GENESIS },
            era: get::<Option<i16>>(row, "last_era")?.unwrap_or(1),
            snapshot: if no.is_some() { get(row, "last_snapshot")? } else { Some(NOTHING.to_owned()) },
            era_now: get(row, "era")?,
            snapshot_now: get(row, "snapshot")?,
        })
    }

    /// What no seal covers yet.
    fn tail(&self) -> Window {
        match &self.snapshot {
            Some(snapshot) => Window { era: self.era, after: snapshot.clone(), upto: None },
            None => Window { era: self.era_now, after: NOTHING.to_owned(), upto: None },
        }
    }

    /// What the next seals cover: first the rest of an era that ended, then everything visible now.
    fn next(&self) -> Vec<Window> {
        let mut windows = Vec::new();
        let ended = self.era < self.era_now;
        if let Some(snapshot) = self.snapshot.as_ref().filter(|_| ended) {
            windows.push(Window { era: self.era, after: snapshot.clone(), upto: None });
        }
        let after = self.snapshot.clone().filter(|_| !ended).unwrap_or_else(|| NOTHING.to_owned());
        windows.push(Window { era: self.era_now, after, upto: Some(self.snapshot_now.clone()) });
        windows
    }
}

impl PgStore {
    /// Closes the chain over what became visible since the last seal.
    async fn seal(&self, tx: &Transaction<'_>) -> Result<Option<Seal>, StoreError> {
        tx.query_typed("select pg_advisory_xact_lock($1)", &[(&SEALER_LOCK, Type::INT8)]).await.map_err(translate)?;
        // A statement of its own: its snapshot is taken after the lock was had.
        let row = tx.query_typed(&self.text(statement::OPEN_SEAL), &[]).await.map_err(translate)?;
        let Some(row) = row.first() else { return Ok(None) };
        let last = Last::read(row)?;
        for window in last.next() {
            let mut sealer = Sealer::new(last.no + 1, window.boundary(), last.hash);
            let mut after = 0;
            loop {
                let (name, params) = read(&window, &after, &PAGE_ROWS);
                let rows = tx.query_typed(&self.text(name), &params).await.map_err(translate)?;
                for row in rows.iter().map(journal_row) {
                    let row = row?;
                    after = row.id;
                    sealer.row(&row);
                }
                if (rows.len() as i64) < PAGE_ROWS {
                    break;
                }
            }
            let seal = sealer.close();
            if seal.rows == 0 {
                continue;
            }
            let (prev, hash) = (seal.prev.as_slice(), seal.hash.as_slice());
            let params: [Param<'_>; 6] = [
                (&seal.no, Type::INT8),
                (&window.era, Type::INT2),
                (&window.upto, Type::TEXT),
                (&seal.rows, Type::INT8),
                (&prev, Type::BYTEA),
                (&hash, Type::BYTEA),
            ];
            tx.query_typed(&self.text(statement::WRITE_SEAL), &params).await.map_err(translate)?;
            return Ok(Some(seal));
        }
        Ok(None)
    }
}

fn read<'a>(window: &'a Window, after: &'a i64, limit: &'a i64) -> (statement::Statement, Vec<Param<'a>>) {
    let mut params: Vec<Param<'a>> = vec![(&window.era, Type::INT2), (&window.after, Type::TEXT)];
    let statement = match &window.upto {
        Some(upto) => {
            params.push((upto, Type::TEXT));
            statement::READ_SEALED
        }
        None => statement::READ_TAIL,
    };
    params.extend([(after as &(dyn tokio_postgres::types::ToSql + Sync), Type::INT8), (limit, Type::INT8)]);
    (statement, params)
}

fn journal_row(row: &Row) -> Result<JournalRow, StoreError> {
    let code: i16 = get(row, "event")?;
    Ok(JournalRow {
        id: get(row, "id")?,
        at: time(row, "at")?,
        worker: get::<Option<i32>>(row, "worker")?.map(WorkerId),
        actor: get(row, "actor")?,
        event: JournalEvent::from_code(code).ok_or_else(|| StoreError::Corrupt(format!("journal event {code}")))?,
        lease: get::<Option<i64>>(row, "lease")?.map(LeaseNo),
        jobs: job_ids(row, "jobs")?,
        reason: get(row, "reason")?,
        details: get::<Option<String>>(row, "details")?.map(Json::from_store),
    })
}

fn hash(row: &Row, column: &str) -> Result<Hash, StoreError> {
    let bytes: &[u8] = get(row, column)?;
    bytes.try_into().map_err(|_| StoreError::Corrupt(format!("seal {column} has {} bytes", bytes.len())))
}
