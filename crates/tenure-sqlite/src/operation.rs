//! Operations: one act on many jobs.

use async_trait::async_trait;
use rusqlite::{Row, named_params};
use tenure_core::{JobId, State, Timestamp};
use tenure_store::operate::Word;
use tenure_store::operation::{Act, NewOperation, OperationFilter, OperationRecord, Progress, SaveOperation};
use tenure_store::record::Sight;
use tenure_store::{OperationStore, StoreError};
use uuid::Uuid;

use crate::enqueue;
use crate::fault::{Result, corrupt};
use crate::lane::Urgency;
use crate::queue;
use crate::row::{blob, job_id, optional_time, optional_word, text, time};
use crate::show::sight_param;
use crate::store::SqliteStore;
use crate::tx::Tx;

const LIST_OPERATIONS: &str = include_str!("sql/list_operations.sql");
const ADD_OPERATION: &str = include_str!("sql/add_operation.sql");
const SAVE_OPERATION: &str = include_str!("sql/save_operation.sql");

type Answer<T> = std::result::Result<T, StoreError>;

#[async_trait]
impl OperationStore for SqliteStore {
    async fn create_operation(&self, request: NewOperation) -> Answer<OperationRecord> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| create(tx, request)).await
    }

    async fn list_operations(&self, filter: &OperationFilter) -> Answer<Vec<OperationRecord>> {
        filter.check()?;
        let filter = filter.clone();
        self.read(move |tx| list(tx, &filter.sight, None, filter.before, filter.limit)).await
    }

    async fn show_operation(&self, sight: &Sight, operation: JobId) -> Answer<OperationRecord> {
        let sight = sight.clone();
        self.read(move |tx| find(tx, &sight, operation)).await
    }

    async fn save_operation(&self, request: SaveOperation) -> Answer<bool> {
        self.write(Urgency::Verb, move |tx| {
            let mut record = find(tx, &Sight::All, request.id)?;
            if !record.save(&request, tx.now) {
                return Ok(false);
            }
            let Progress { cursor, total, done, refused, last_refusal } = &record.progress;
            tx.execute(
                SAVE_OPERATION,
                named_params! {
                    ":id": blob(&record.id),
                    ":cursor": cursor.as_ref().map(blob),
                    ":total": total.map(u64::cast_signed),
                    ":done": done.cast_signed(),
                    ":refused": refused.cast_signed(),
                    ":last_refusal": last_refusal,
                    ":finished_at": record.finished_at.map(Timestamp::as_micros),
                },
            )?;
            Ok(true)
        })
        .await
    }
}

fn create(tx: &Tx<'_>, new: NewOperation) -> Result<OperationRecord> {
    if let Some(known) = list(tx, &Sight::All, Some(new.id), None, 1)?.pop() {
        return match known.is_made_of(&new) {
            true => Ok(known),
            false => Err(StoreError::Conflict(format!("operation {} is there already", new.id)).into()),
        };
    }
    let job = new.job()?;
    job.check(tx.now)?;
    enqueue::enqueue_jobs(tx, &[job])?;
    let tenant = new.tenant.as_ref().map(|tenant| queue::ensure_tenant(tx, tenant)).transpose()?;
    tx.execute(
        ADD_OPERATION,
        named_params! {
            ":id": blob(&new.id),
            ":tenant": tenant,
            ":name": new.name,
            ":act": new.act.as_str(),
            ":state": new.state.as_str(),
            ":queue": new.queue.as_ref().map(|queue| queue.as_str()),
            ":kind": new.kind.as_ref().map(|kind| kind.as_str()),
            ":cause": new.group,
            ":actor": new.word.actor,
            ":reason": new.word.reason,
            ":now": tx.now.as_micros(),
        },
    )?;
    Ok(OperationRecord::begun(new, tx.now))
}

fn list(
    tx: &Tx<'_>,
    sight: &Sight,
    one: Option<JobId>,
    before: Option<JobId>,
    limit: u32,
) -> Result<Vec<OperationRecord>> {
    let params = named_params! {
        ":sight": sight_param(sight),
        ":id": one.as_ref().map(blob),
        ":before": before.as_ref().map(blob),
        ":limit": limit,
    };
    tx.all(LIST_OPERATIONS, params, read)
}

fn find(tx: &Tx<'_>, sight: &Sight, operation: JobId) -> Result<OperationRecord> {
    let found = list(tx, sight, Some(operation), None, 1)?.pop();
    found.ok_or_else(|| StoreError::NotFound(format!("operation {operation}")).into())
}

fn read(row: &Row<'_>) -> Result<OperationRecord> {
    let (act, state) = (text(row, 3)?, text(row, 4)?);
    let cursor = row.get::<_, Option<[u8; 16]>>(11)?;
    Ok(OperationRecord {
        id: job_id(row, 0)?,
        tenant: optional_word(row, 1)?,
        name: row.get(2)?,
        act: Act::parse(act).ok_or_else(|| corrupt(format!("operation.act is {act}")))?,
        state: State::parse(state).ok_or_else(|| corrupt(format!("operation.state is {state}")))?,
        queue: optional_word(row, 5)?,
        kind: optional_word(row, 6)?,
        group: row.get(7)?,
        word: Word { actor: row.get(8)?, reason: row.get(9)? },
        created_at: time(row, 10)?,
        progress: Progress {
            cursor: cursor.map(|bytes| JobId::from_uuid(Uuid::from_bytes(bytes))),
            total: row.get::<_, Option<i64>>(12)?.map(i64::cast_unsigned),
            done: row.get::<_, i64>(13)?.cast_unsigned(),
            refused: row.get::<_, i64>(14)?.cast_unsigned(),
            last_refusal: row.get(15)?,
        },
        finished_at: optional_time(row, 16)?,
    })
}
