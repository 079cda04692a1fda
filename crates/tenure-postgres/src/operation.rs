//! Operations: one act on many jobs.

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use tenure_core::name::TenantName;
use tenure_core::{JobId, KindName, QueueName};
use tenure_store::operate::Word;
use tenure_store::operation::{Act, NewOperation, OperationFilter, OperationRecord, Progress, SaveOperation};
use tenure_store::record::Sight;
use tenure_store::{OperationStore, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call::{Failed, Param, transact};
use crate::enqueue::Columns;
use crate::pool::Desk;
use crate::statement;
use crate::store::PgStore;
use crate::value::{Moment, get, job_id, state, time, time_maybe};

#[async_trait]
impl OperationStore for PgStore {
    async fn create_operation(&self, request: NewOperation) -> Result<OperationRecord, StoreError> {
        request.check()?;
        transact!(self, |tx| self.begin_operation(&tx, &request).await)?;
        let record = self.show_operation(&Sight::All, request.id).await?;
        match record.is_made_of(&request) {
            true => Ok(record),
            false => Err(StoreError::Conflict(format!("operation {} is there already", request.id))),
        }
    }

    async fn list_operations(&self, filter: &OperationFilter) -> Result<Vec<OperationRecord>, StoreError> {
        filter.check()?;
        self.operations(&filter.sight, None, filter.before, filter.limit).await
    }

    async fn show_operation(&self, sight: &Sight, operation: JobId) -> Result<OperationRecord, StoreError> {
        let found = self.operations(sight, Some(operation), None, 1).await?;
        found.into_iter().next().ok_or_else(|| StoreError::NotFound(format!("operation {operation}")))
    }

    async fn save_operation(&self, request: SaveOperation) -> Result<bool, StoreError> {
        let Progress { cursor, total, done, refused, last_refusal } = &request.progress;
        let (cursor, total) = (cursor.map(|job| *job.as_uuid()), total.map(u64::cast_signed));
        let (done, refused, now) = (done.cast_signed(), refused.cast_signed(), self.moment());
        let params: [Param<'_>; 8] = [
            (request.id.as_uuid(), Type::UUID),
            (&cursor, Type::UUID),
            (&total, Type::INT8),
            (&done, Type::INT8),
            (&refused, Type::INT8),
            (last_refusal, Type::TEXT),
            (&request.finished, Type::BOOL),
            (&now, Type::TIMESTAMPTZ),
        ];
        if !self.call(Desk::Short, statement::SAVE_OPERATION, &params).await?.is_empty() {
            return Ok(true);
        }
        self.show_operation(&Sight::All, request.id).await.map(|_| false)
    }
}

impl PgStore {
    async fn begin_operation(&self, tx: &Transaction<'_>, new: &NewOperation) -> Result<(), Failed> {
        let job = new.job().map_err(StoreError::from)?;
        let columns = Columns::new(std::slice::from_ref(&job), self.moment())?;
        let sql = "insert into tenure.operation (id, tenant, name, act, state, queue, kind, cause, actor, reason, created_at)
            values ($1, case when $2::text is not null then (tenure.tenant_ids(array[$2]))[1] end, $3, $4, $5, $6, $7, $8, $9, $10, $11) on conflict do nothing";
        let (tenant, at) = (new.tenant.as_ref().map(TenantName::as_str), Moment(self.time(tx).await?));
        let (act, state) = (new.act.as_str(), new.state.as_str());
        let (queue, kind) = (new.queue.as_ref().map(QueueName::as_str), new.kind.as_ref().map(KindName::as_str));
        let params: [Param<'_>; 11] = [
            (new.id.as_uuid(), Type::UUID),
            (&tenant, Type::TEXT),
            (&new.name, Type::TEXT),
            (&act, Type::TEXT),
            (&state, Type::TEXT),
            (&queue, Type::TEXT),
            (&kind, Type::TEXT),
            (&new.group, Type::TEXT),
            (&new.word.actor, Type::TEXT),
            (&new.word.reason, Type::TEXT),
            (&at, Type::TIMESTAMPTZ),
        ];
        if tx.execute_typed(sql, &params).await? == 0 {
            // It is there already: the answer waits for the standbys.
            tx.query_typed("select tenure.await_standbys()", &[]).await?;
            return Ok(());
        }
        tx.query_typed(&self.text(statement::ENQUEUE_JOBS), &columns.params()).await?;
        tx.query_typed(statement::WAKE_IDLE.sql, &[(&columns.queue_names(), Type::TEXT_ARRAY)]).await?;
        Ok(())
    }

    async fn operations(
        &self,
        sight: &Sight,
        one: Option<JobId>,
        before: Option<JobId>,
        limit: u32,
    ) -> Result<Vec<OperationRecord>, StoreError> {
        let (tenant, limit) = (sight.tenant().map(TenantName::as_str), i64::from(limit));
        let (one, before) = (one.map(|id| *id.as_uuid()), before.map(|id| *id.as_uuid()));
        let params: [Param<'_>; 4] =
            [(&tenant, Type::TEXT), (&one, Type::UUID), (&before, Type::UUID), (&limit, Type::INT8)];
        let rows = self.call_within(tenant, Desk::Short, statement::LIST_OPERATIONS, &params).await?;
        rows.iter().map(record).collect()
    }
}

fn record(row: &Row) -> Result<OperationRecord, StoreError> {
    let word = |column| -> Result<Option<&str>, StoreError> { get(row, column) };
    let corrupt = |invalid: tenure_core::Invalid| StoreError::Corrupt(invalid.to_string());
    let act: &str = get(row, "act")?;
    let count = |column| -> Result<u64, StoreError> { Ok(get::<i64>(row, column)?.cast_unsigned()) };
    Ok(OperationRecord {
        id: job_id(row, "id")?,
        tenant: word("tenant")?.map(str::parse).transpose().map_err(corrupt)?,
        name: get(row, "name")?,
        act: Act::parse(act).ok_or_else(|| StoreError::Corrupt(format!("operation.act is {act}")))?,
        state: state(get(row, "state")?)?,
        queue: word("queue")?.map(str::parse).transpose().map_err(corrupt)?,
        kind: word("kind")?.map(str::parse).transpose().map_err(corrupt)?,
        group: get(row, "cause")?,
        word: Word { actor: get(row, "actor")?, reason: get(row, "reason")? },
        created_at: time(row, "created_at")?,
        progress: Progress {
            cursor: get::<Option<Uuid>>(row, "cursor")?.map(JobId::from_uuid),
            total: get::<Option<i64>>(row, "total")?.map(i64::cast_unsigned),
            done: count("done")?,
            refused: count("refused")?,
            last_refusal: get(row, "last_refusal")?,
        },
        finished_at: time_maybe(row, "finished_at")?,
    })
}
