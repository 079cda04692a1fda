//! Pages and partitions: begun, advanced, listed, resumed, reset.

use std::collections::{HashMap, HashSet};

use deadpool_postgres::Transaction;
use tenure_core::journal::JournalEvent;
use tenure_core::run::{Moved, Part, Partition, Run};
use tenure_core::{How, Invalid, JobId, Json, RunId, RunState};
use tenure_store::run::{
    AdvancePage, NewPartition, OPEN_DEADLINE, OperatePartition, PageFound, PartitionAct, PartitionFilter,
    PartitionRecord, check_offset,
};
use tenure_store::user_tx::CompleteJob;
use tenure_store::{LeaseStore, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::call::{Failed, Param};
use crate::complete::{self, Advance};
use crate::error::translate;
use crate::jobs::tenant;
use crate::pool::Desk;
use crate::run::{state, tally};
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{get, job_id, millis, named, time, time_maybe};

const BEGIN: Statement =
    Statement { name: "begin_page", sql: "select page_limit, expected from tenure.begin_page($1, $2)" };
const ADVANCE: Statement = Statement { name: "advance_page", sql: complete::ADVANCE };

impl PgStore {
    pub(crate) async fn begin(&self, job: JobId) -> Result<PageFound, StoreError> {
        let now = self.moment();
        let params: [Param<'_>; 2] = [(job.as_uuid(), Type::UUID), (&now, Type::TIMESTAMPTZ)];
        let rows = self.call(Desk::Short, BEGIN, &params).await?;
        let Some(row) = rows.first() else { return Ok(PageFound::Ended) };
        match get::<Option<i32>>(row, "page_limit")? {
            Some(limit) => Ok(PageFound::Next { limit: u32::try_from(limit).unwrap_or(0) }),
            None => Ok(PageFound::Elsewhere { expected: tally(row, "expected")? }),
        }
    }

    pub(crate) async fn advance(&self, request: AdvancePage) -> Result<(), StoreError> {
        let CompleteJob { worker, lease, job, .. } = request.page;
        let columns = Advance::new(&request, self.moment());
        let refused = match self.try_call(Desk::Short, ADVANCE, &columns.params()).await {
            Ok(_) => {
                // Inside a user's transaction the lease stays for the keeper to drop; this one is ours.
                self.drop_leases(worker, vec![lease]).await?;
                return Ok(());
            }
            Err(Failed::Said(error)) if error.code().is_some_and(|code| code.code() == "TN001") => {
                StoreError::LeaseLost(job)
            }
            Err(Failed::Said(error)) => translate(error),
            Err(Failed::Other(error)) => return Err(error),
        };
        // Sent again after a lost reply, it is answered as before.
        let ended = self.find_endings(worker, lease, vec![job]).await?;
        if ended == [Some(How::Succeeded)] { Ok(()) } else { Err(refused) }
    }

    pub(crate) async fn partitions(&self, filter: &PartitionFilter) -> Result<Vec<PartitionRecord>, StoreError> {
        filter.check()?;
        let (tenant, run) = (tenant(&filter.sight), filter.run.map(|run| *run.as_uuid()));
        let (stuck, state) = (filter.stuck_for.map(millis), filter.state.map(RunState::code));
        let after_run = filter.after.as_ref().map(|(run, _)| *run.as_uuid());
        let after_name = filter.after.as_ref().map(|(_, name)| name.to_string());
        let (limit, now) = (i64::from(filter.limit), self.moment());
        let params: [Param<'_>; 9] = [
            (&tenant, Type::TEXT),
            (&run, Type::UUID),
            (&filter.active, Type::BOOL),
            (&stuck, Type::INT8),
            (&state, Type::INT2),
            (&after_run, Type::UUID),
            (&after_name, Type::TEXT),
            (&limit, Type::INT8),
            (&now, Type::TIMESTAMPTZ),
        ];
        let rows = self.call_within(tenant.as_deref(), Desk::Long, statement::LIST_PARTITIONS, &params).await?;
        rows.iter().map(|row| Ok(read(row)?.0)).collect()
    }

    /// Which of these a run has already.
    pub(crate) async fn known_partitions(
        &self,
        tx: &Transaction<'_>,
        run: RunId,
        new: &[NewPartition],
    ) -> Result<HashSet<String>, Failed> {
        let names: Vec<String> = new.iter().map(|partition| partition.name.to_string()).collect();
        let params: [Param<'_>; 2] = [(run.as_uuid(), Type::UUID), (&names, Type::TEXT_ARRAY)];
        let sql = "select name from tenure.partition where run = $1 and name = any ($2)";
        let rows = tx.query_typed(sql, &params).await?;
        Ok(rows.iter().map(|row| get(row, "name")).collect::<Result<_, _>>()?)
    }

    pub(crate) async fn add_partitions(
        &self,
        tx: &Transaction<'_>,
        run: RunId,
        new: &[&NewPartition],
    ) -> Result<(), Failed> {
        if new.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = new.iter().map(|partition| partition.name.as_str()).collect();
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let offsets: Vec<i64> = new.iter().map(|partition| number(partition.offset)).collect();
        let limits: Vec<i32> = new.iter().map(|partition| i32::try_from(partition.limit).unwrap_or(0)).collect();
        let expected: Vec<Option<i64>> = new.iter().map(|partition| partition.expected.map(number)).collect();
        let jobs: Vec<uuid::Uuid> = new.iter().map(|partition| *partition.job.id.as_uuid()).collect();
        let now = self.moment();
        let params: [Param<'_>; 7] = [
            (run.as_uuid(), Type::UUID),
            (&names, Type::TEXT_ARRAY),
            (&offsets, Type::INT8_ARRAY),
            (&limits, Type::INT4_ARRAY),
            (&expected, Type::INT8_ARRAY),
            (&jobs, Type::UUID_ARRAY),
            (&now, Type::TIMESTAMPTZ),
        ];
        tx.execute_typed(&self.text(statement::ADD_PARTITIONS), &params).await?;
        Ok(())
    }

    /// Lets a partition go on that has stopped.
    pub(crate) async fn operate_one(&self, tx: &Transaction<'_>, request: &OperatePartition) -> Result<(), Failed> {
        let found = self.one_run(tx, statement::HOLD_RUN, &request.sight, request.run).await?;
        found.refuse_settled()?;
        let unknown = || StoreError::NotFound(format!("partition {} of run {}", request.partition, request.run));
        let names = [(request.run, request.partition.to_string())];
        let locked = self.lock_partitions(tx, &names).await?;
        // One that is not there, or one whose page is just being committed.
        let Some((partition, heart)) = locked.into_iter().next() else {
            let sql = "select from tenure.partition where run = $1 and name = $2";
            let params: [Param<'_>; 2] = [(request.run.as_uuid(), Type::UUID), (&names[0].1, Type::TEXT)];
            return match tx.query_typed_opt(sql, &params).await? {
                None => Err(unknown().into()),
                Some(_) => {
                    let text = format!("partition {} is just committing a page: try again", request.partition);
                    Err(StoreError::Conflict(text).into())
                }
            };
        };
        let event = match request.act {
            PartitionAct::Resume => {
                self.resume(tx, request, heart, found.run).await?;
                JournalEvent::PartitionResumed
            }
            PartitionAct::Reset { offset, job } => {
                check_offset(offset).map_err(StoreError::from)?;
                self.reset(tx, request, &partition, (offset, job), found.run).await?;
                JournalEvent::PartitionReset
            }
        };
        self.free(tx, request.run).await?;
        let details = format!("{{\"run\":\"{}\",\"partition\":\"{}\"}}", request.run, request.partition);
        self.write_details(tx, event, &details, &request.word).await
    }

    /// Something of a run goes on: nothing of it is canceled any more, and a deadline that is over is gone.
    pub(crate) async fn free(&self, tx: &Transaction<'_>, run: RunId) -> Result<(), Failed> {
        let now = self.time(tx).await?;
        let (at, deadline) = (crate::value::Moment(now), crate::value::Moment(now.plus(OPEN_DEADLINE)));
        let sql = "update tenure.run r set sweeping = false, expired = false,
              deadline = case when not r.sealed then greatest(r.deadline, $2) when r.deadline > $3 then r.deadline end
            where r.id = $1";
        let params: [Param<'_>; 3] =
            [(run.as_uuid(), Type::UUID), (&deadline, Type::TIMESTAMPTZ), (&at, Type::TIMESTAMPTZ)];
        tx.execute_typed(sql, &params).await?;
        Ok(())
    }

    async fn resume(
        &self,
        tx: &Transaction<'_>,
        request: &OperatePartition,
        mut heart: Partition,
        mut run: Run,
    ) -> Result<(), Failed> {
        let state = self.state_of(tx, heart.job).await?;
        if !matches!(state.as_deref(), Some("failed" | "dead" | "canceled")) {
            let (name, job, state) = (&request.partition, heart.job, state.unwrap_or_default());
            let text = format!("partition {name} needs no help: job {job} of its page is {state}");
            return Err(StoreError::Conflict(text).into());
        }
        self.requeue_in(tx, heart.job, &request.word).await?;
        // At once, not when its requeue is heard: a worker may be faster.
        if !heart.state.is_open() {
            run.resume(heart.turn(RunState::Running));
            let saved = HashMap::from([(request.partition.to_string(), heart)]);
            self.save_partitions(tx, request.run, &saved).await?;
            self.save_run(tx, request.run, &run, None).await?;
        }
        Ok(())
    }

    async fn reset(
        &self,
        tx: &Transaction<'_>,
        request: &OperatePartition,
        found: &PartitionRecord,
        (offset, job): (u64, JobId),
        mut run: Run,
    ) -> Result<(), Failed> {
        let now = self.time(tx).await?;
        let part = Part::Page { run: request.run, partition: request.partition.clone(), offset }.to_string();
        let (offset, at) = (i64::try_from(offset).unwrap_or(i64::MAX), crate::value::Moment(now));
        let add: [Param<'_>; 4] = [
            (found.job.as_uuid(), Type::UUID),
            (job.as_uuid(), Type::UUID),
            (&part, Type::TEXT),
            (&at, Type::TIMESTAMPTZ),
        ];
        tx.query_typed("select tenure.add_page($1, $2, $3, $4)", &add).await?;
        let sql = "update tenure.partition p set next_offset = $3, rows = 0, job = $4, finished = false, state = 0, last_error = null, moved_at = $5
            where p.run = $1 and p.name = $2";
        let name = request.partition.as_str();
        let params: [Param<'_>; 5] = [
            (request.run.as_uuid(), Type::UUID),
            (&name, Type::TEXT),
            (&offset, Type::INT8),
            (job.as_uuid(), Type::UUID),
            (&at, Type::TIMESTAMPTZ),
        ];
        tx.execute_typed(sql, &params).await?;
        // The page before is not its partition's any more: whatever it still does is not heard.
        let before = self.state_of(tx, found.job).await?;
        if matches!(before.as_deref(), Some("waiting" | "queued" | "retryable" | "running")) {
            self.cancel_in(tx, found.job, &request.word).await?;
        }
        run.resume(Moved { from: found.state, to: RunState::Queued });
        self.save_run(tx, request.run, &run, None).await
    }

    /// Partitions that nobody else holds, locked.
    pub(crate) async fn lock_partitions(
        &self,
        tx: &Transaction<'_>,
        names: &[(RunId, String)],
    ) -> Result<Vec<(PartitionRecord, Partition)>, Failed> {
        let runs: Vec<uuid::Uuid> = names.iter().map(|(run, _)| *run.as_uuid()).collect();
        let names: Vec<&str> = names.iter().map(|(_, name)| name.as_str()).collect();
        let params: [Param<'_>; 2] = [(&runs, Type::UUID_ARRAY), (&names, Type::TEXT_ARRAY)];
        let rows = tx.query_typed(&self.text(statement::LOCK_PARTITIONS), &params).await?;
        Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
    }

    pub(crate) async fn state_of(&self, tx: &Transaction<'_>, job: JobId) -> Result<Option<String>, Failed> {
        let row = tx.query_typed_one("select tenure.state_of($1) as state", &[(job.as_uuid(), Type::UUID)]).await?;
        Ok(get(&row, "state")?)
    }
}

fn read(row: &Row) -> Result<(PartitionRecord, Partition), StoreError> {
    let (state, job) = (state(row)?, job_id(row, "job")?);
    let last_error: Option<String> = get(row, "last_error")?;
    let heart = Partition { state, job, finished: get(row, "finished")?, last_error: last_error.clone() };
    let corrupt = |e: Invalid| StoreError::Corrupt(e.to_string());
    let record = PartitionRecord {
        run: RunId::from_uuid(get(row, "run")?),
        name: named(row, "name")?,
        state,
        next_offset: tally(row, "next_offset")?,
        limit: u32::try_from(get::<i32>(row, "page_limit")?).unwrap_or(0),
        rows: tally(row, "rows")?,
        expected: get::<Option<i64>>(row, "expected")?.and_then(|expected| u64::try_from(expected).ok()),
        job,
        last_error: last_error.map(|text| Json::parse("error", text)).transpose().map_err(corrupt)?,
        created_at: time(row, "created_at")?,
        started_at: time_maybe(row, "started_at")?,
        moved_at: time(row, "moved_at")?,
    };
    Ok((record, heart))
}
