//! Runs: created, added to, sealed, listed, canceled.
//!
//! Several statements in one transaction each: runs are few, and what they decide is `tenure_core::run`'s to say.

use async_trait::async_trait;
use deadpool_postgres::Transaction;
use tenure_core::journal::JournalEvent;
use tenure_core::new_job::Due;
use tenure_core::run::{Fan, Part, Run, Told};
use tenure_core::{JobId, NewJob, RunId, RunState};
use tenure_store::enqueue::Enqueued;
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::run::{
    AddToRun, Added, AdvancePage, CancelRun, FoldedRuns, Members, NewPartition, NewRun, OPEN_RUNS_MAX,
    OperatePartition, PageFound, PartitionFilter, PartitionRecord, RunCreated, RunFilter, RunRecord, SealRun,
    check_consolidate,
};
use tenure_store::{AdminStore, RunStore, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::call::{Failed, Param, transact};
use crate::enqueue::{Columns, answers};
use crate::jobs::tenant;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{Moment, get, named, time, time_maybe};
use crate::wall::Seen;

#[async_trait]
impl RunStore for PgStore {
    async fn create_run(&self, request: NewRun) -> Result<RunCreated, StoreError> {
        request.check(self.now().await?)?;
        transact!(self, |tx| self.create(&tx, &request).await)
    }

    async fn add_to_run(&self, request: AddToRun) -> Result<Added, StoreError> {
        let now = self.now().await?;
        transact!(self, |tx| {
            let found = self.one_run(&tx, statement::SHARE_RUN, &request.sight, request.run).await?;
            request.members.check(&found.tenant, now).map_err(StoreError::from)?;
            found.refuse_closed()?;
            let added = self.add_members(&tx, request.run, &request.members).await?;
            self.note(&tx, request.run, &Told::Added(added.members)).await?;
            Ok::<_, Failed>(added)
        })
    }

    async fn seal_run(&self, request: SealRun) -> Result<(), StoreError> {
        request.word.check()?;
        let now = self.now().await?;
        request.consolidate.iter().try_for_each(|job| job.check(now))?;
        transact!(self, |tx| self.seal_one(&tx, &request).await)
    }

    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        filter.check()?;
        let state = filter.state.map(RunState::code);
        self.runs(&filter.sight, state, filter.open, filter.before, filter.limit, None).await
    }

    async fn show_run(&self, sight: &Sight, run: RunId) -> Result<RunRecord, StoreError> {
        let found = self.runs(sight, None, false, None, 1, Some(run)).await?;
        found.into_iter().next().ok_or_else(|| StoreError::NotFound(format!("run {run}")))
    }

    async fn list_partitions(&self, filter: &PartitionFilter) -> Result<Vec<PartitionRecord>, StoreError> {
        self.partitions(filter).await
    }

    async fn cancel_run(&self, request: CancelRun) -> Result<bool, StoreError> {
        request.word.check()?;
        transact!(self, |tx| {
            let found = self.one_run(&tx, statement::HOLD_RUN, &request.sight, request.run).await?;
            match found.run.state {
                RunState::Canceled => Ok::<_, Failed>(false),
                RunState::Succeeded => {
                    Err(StoreError::Conflict(format!("run {} has succeeded already", request.run)).into())
                }
                RunState::Queued | RunState::Running | RunState::Failed => {
                    let mut run = found.run;
                    (run.state, run.finished_at) = (RunState::Canceled, Some(self.time(&tx).await?));
                    self.stop(&tx, request.run, &mut run).await?;
                    self.write(&tx, request.run, JournalEvent::RunCanceled, None, &request.word).await?;
                    Ok(true)
                }
            }
        })
    }

    async fn operate_partition(&self, request: OperatePartition) -> Result<(), StoreError> {
        request.word.check()?;
        transact!(self, |tx| self.operate_one(&tx, &request).await)
    }

    async fn begin_page(&self, job: JobId) -> Result<PageFound, StoreError> {
        self.begin(job).await
    }

    async fn advance_page(&self, request: AdvancePage) -> Result<(), StoreError> {
        self.advance(request).await
    }

    async fn fold_runs(&self) -> Result<FoldedRuns, StoreError> {
        if !self.has_something_to_fold().await? {
            return Ok(FoldedRuns::default());
        }
        transact!(self, |tx| self.fold_all(&tx).await)
    }
}

impl PgStore {
    async fn create(&self, tx: &Transaction<'_>, request: &NewRun) -> Result<RunCreated, Failed> {
        let now = self.time(tx).await?;
        let sql = "insert into tenure.run (id, tenant, owner, source, sealed, fail_fast, tolerated, consolidate, fan, created_at, deadline, deadline_asked)
            values ($1, (tenure.resolve_tenants(array[$2]))[1], $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) on conflict (id) do nothing";
        let (at, deadline) = (Moment(now), request.deadline_at(now).map(Moment));
        let (tolerated, fan) = (i64::from(request.tolerated), request.start().fan.code());
        let consolidate = request.consolidate.as_ref().map(|job| *job.id.as_uuid());
        let asked = request.deadline.is_some();
        let params: [Param<'_>; 12] = [
            (request.id.as_uuid(), Type::UUID),
            (&request.tenant.as_str(), Type::TEXT),
            (&request.owner, Type::TEXT),
            (&request.source, Type::TEXT),
            (&request.sealed, Type::BOOL),
            (&request.fail_fast, Type::BOOL),
            (&tolerated, Type::INT8),
            (&consolidate, Type::UUID),
            (&fan, Type::INT2),
            (&at, Type::TIMESTAMPTZ),
            (&deadline, Type::TIMESTAMPTZ),
            (&asked, Type::BOOL),
        ];
        if tx.execute_typed(sql, &params).await? == 0 {
            // Another tenant's is not told apart from one that is not there.
            self.one_run(tx, statement::SHARE_RUN, &Sight::Tenant(request.tenant.clone()), request.id).await?;
            return Ok(RunCreated::Before);
        }
        let added = self.add_members(tx, request.id, &request.members).await?;
        let run = Run { total: added.members, ..request.start() };
        self.save_run(tx, request.id, &run, None).await?;
        // Somebody has to look whether that was all.
        self.note(tx, request.id, &Told::Added(0)).await?;
        if let Some(job) = &request.consolidate {
            self.add_consolidate(tx, request.id, job).await?;
        }
        self.write(tx, request.id, JournalEvent::RunCreated, None, &Word::default()).await?;
        self.check_open_runs(tx, request).await?;
        Ok(RunCreated::Now)
    }

    /// Refuses a run beyond its tenant's limit. Asked last, so that creations of one tenant wait for each other only shortly.
    async fn check_open_runs(&self, tx: &Transaction<'_>, request: &NewRun) -> Result<(), Failed> {
        let (tenant, max) = (request.tenant.as_str(), i64::from(OPEN_RUNS_MAX));
        let sql = "select tenure.count_alone(2, t.id) from tenure.tenant t where t.name = $1";
        tx.query_typed(sql, &[(&tenant, Type::TEXT)]).await?;
        let sql = "select count(*) as count from (
            select from tenure.run r where r.tenant = (select t.id from tenure.tenant t where t.name = $1) and r.state in (0, 1) limit $2 + 1) open";
        let row = tx.query_typed_one(sql, &[(&tenant, Type::TEXT), (&max, Type::INT8)]).await?;
        match get::<i64>(&row, "count")? > max {
            true => Err(request.beyond_limit().into()),
            false => Ok(()),
        }
    }

    async fn seal_one(&self, tx: &Transaction<'_>, request: &SealRun) -> Result<(), Failed> {
        let found = self.one_run(tx, statement::HOLD_RUN, &request.sight, request.run).await?;
        if found.was_sealed_by(request)? {
            return Ok(());
        }
        let mut run = found.run;
        run.sealed = true;
        if let Some(job) = &request.consolidate {
            check_consolidate(job, &found.tenant, job.id.made_at()).map_err(StoreError::from)?;
            run.fan = Fan::Waiting;
            self.add_consolidate(tx, request.run, job).await?;
        }
        // What was added before is counted with it: a batch of sentences may end between the two.
        run.total += self.take_added(tx, request.run).await?;
        self.save_run(tx, request.run, &run, request.consolidate.as_ref().map(|job| job.id)).await?;
        // The time it had to be sealed is no deadline of the run itself.
        let sql = "update tenure.run set deadline = null where id = $1 and not deadline_asked";
        tx.execute_typed(sql, &[(request.run.as_uuid(), Type::UUID)]).await?;
        self.note(tx, request.run, &Told::Added(0)).await?;
        self.write(tx, request.run, JournalEvent::RunSealed, None, &request.word).await
    }

    async fn take_added(&self, tx: &Transaction<'_>, run: RunId) -> Result<u64, Failed> {
        let sql = "with gone as (delete from tenure.run_event where part = $1 and told = 0 returning members)
            select coalesce(sum(members), 0)::bigint as members from gone";
        let row = tx.query_typed_one(sql, &[(&run.to_string(), Type::TEXT)]).await?;
        Ok(u64::try_from(get::<i64>(&row, "members")?).unwrap_or(0))
    }

    /// Stores members. What is there already is left out and told.
    async fn add_members(&self, tx: &Transaction<'_>, run: RunId, members: &Members) -> Result<Added, Failed> {
        let mut added = Added::default();
        let known = self.known_partitions(tx, run, &members.partitions).await?;
        let fresh: Vec<&NewPartition> =
            members.partitions.iter().filter(|partition| !known.contains(&partition.name.to_string())).collect();
        let of =
            |partition: &NewPartition| Part::Page { run, partition: partition.name.clone(), offset: partition.offset };
        let jobs: Vec<NewJob> =
            fresh.iter().map(|partition| partition.job.clone()).chain(members.items.iter().cloned()).collect();
        let parts: Vec<Part> =
            fresh.iter().map(|partition| of(partition)).chain(members.items.iter().map(|_| Part::Item(run))).collect();
        let stored = self.add_jobs(tx, &jobs, &parts).await?;
        let is_new = |at: usize| matches!(stored.get(at), Some(Enqueued::Created(_)));
        let new: Vec<&NewPartition> =
            fresh.iter().enumerate().filter(|(at, _)| is_new(*at)).map(|(_, partition)| *partition).collect();
        self.add_partitions(tx, run, &new).await?;
        added.members = (0..stored.len()).filter(|at| is_new(*at)).count() as u64;
        added.found = (members.partitions.len() + members.items.len()) as u64 - added.members;
        Ok(added)
    }

    async fn add_consolidate(&self, tx: &Transaction<'_>, run: RunId, job: &NewJob) -> Result<(), Failed> {
        let waiting = NewJob { due: Due::WhenOpened, ..job.clone() };
        match self.add_jobs(tx, &[waiting], &[Part::Consolidate(run)]).await?.first() {
            Some(Enqueued::Created(_)) => Ok(()),
            _ => Err(StoreError::Conflict(format!("job {} is there already: a consolidate is new", job.id)).into()),
        }
    }

    async fn add_jobs(&self, tx: &Transaction<'_>, jobs: &[NewJob], parts: &[Part]) -> Result<Vec<Enqueued>, Failed> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let columns = Columns::of_run(jobs, parts, self.moment())?;
        let rows = tx.query_typed(&self.text(statement::ENQUEUE_JOBS), &columns.params()).await?;
        let queues = columns.queue_names();
        tx.query_typed(&self.text(statement::WAKE_IDLE), &[(&queues, Type::TEXT_ARRAY)]).await?;
        Ok(answers(&rows)?)
    }

    async fn runs(
        &self,
        sight: &Sight,
        state: Option<i16>,
        open: bool,
        before: Option<RunId>,
        limit: u32,
        only: Option<RunId>,
    ) -> Result<Vec<RunRecord>, StoreError> {
        let (tenant, limit) = (tenant(sight), i64::from(limit));
        let (before, only) = (before.map(|run| *run.as_uuid()), only.map(|run| *run.as_uuid()));
        let params: [Param<'_>; 6] = [
            (&tenant, Type::TEXT),
            (&state, Type::INT2),
            (&open, Type::BOOL),
            (&before, Type::UUID),
            (&limit, Type::INT8),
            (&only, Type::UUID),
        ];
        let rows = self.call_within(tenant.as_deref(), Desk::Long, statement::LIST_RUNS, &params).await?;
        rows.iter().map(record).collect()
    }

    /// One run, held by this transaction in the way that the statement says.
    pub(crate) async fn one_run(
        &self,
        tx: &Transaction<'_>,
        statement: Statement,
        sight: &Sight,
        run: RunId,
    ) -> Result<RunRecord, Failed> {
        let tenant = tenant(sight);
        self.see(tx.client(), tenant.as_deref(), Seen::Run(run.as_uuid())).await?;
        let params: [Param<'_>; 2] = [(run.as_uuid(), Type::UUID), (&tenant, Type::TEXT)];
        let row = tx.query_typed_opt(&self.text(statement), &params).await?;
        let row = row.ok_or_else(|| StoreError::NotFound(format!("run {run}")))?;
        Ok(record(&row)?)
    }

    /// Writes where a run stands. The caller holds it.
    pub(crate) async fn save_run(
        &self,
        tx: &Transaction<'_>,
        id: RunId,
        run: &Run,
        consolidate: Option<JobId>,
    ) -> Result<(), Failed> {
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let (total, done, failed, canceled) =
            (count(run.total), count(run.done), count(run.failed), count(run.canceled));
        let (started, finished) = (run.started_at.map(Moment), run.finished_at.map(Moment));
        let (state, fan, consolidate) = (run.state.code(), run.fan.code(), consolidate.map(|job| *job.as_uuid()));
        let params: [Param<'_>; 13] = [
            (id.as_uuid(), Type::UUID),
            (&state, Type::INT2),
            (&run.sealed, Type::BOOL),
            (&total, Type::INT8),
            (&done, Type::INT8),
            (&failed, Type::INT8),
            (&canceled, Type::INT8),
            (&fan, Type::INT2),
            (&consolidate, Type::UUID),
            (&started, Type::TIMESTAMPTZ),
            (&finished, Type::TIMESTAMPTZ),
            (&run.last_error, Type::TEXT),
            (&run.expired, Type::BOOL),
        ];
        tx.execute_typed(&self.text(statement::SAVE_RUN), &params).await?;
        Ok(())
    }

    /// Something is said about a run that no job says.
    pub(crate) async fn note(&self, tx: &Transaction<'_>, run: RunId, told: &Told) -> Result<(), Failed> {
        let members = if let Told::Added(members) = told { i64::try_from(*members).unwrap_or(i64::MAX) } else { 1 };
        let (part, code, now) = (Part::Item(run).to_string(), told.code(), self.moment());
        let sql = "insert into tenure.run_event (part, told, members, at) values ($1, $2, $3, coalesce($4, clock_timestamp()))";
        let params: [Param<'_>; 4] =
            [(&part, Type::TEXT), (&code, Type::INT2), (&members, Type::INT8), (&now, Type::TIMESTAMPTZ)];
        tx.execute_typed(sql, &params).await?;
        Ok(())
    }

    /// Writes down what happened to a run.
    pub(crate) async fn write(
        &self,
        tx: &Transaction<'_>,
        run: RunId,
        event: JournalEvent,
        state: Option<RunState>,
        word: &Word,
    ) -> Result<(), Failed> {
        let mut details = format!("{{\"run\":\"{run}\"}}");
        if let Some(state) = state {
            details = format!("{{\"run\":\"{run}\",\"state\":\"{}\"}}", state.as_str());
        }
        self.write_details(tx, event, &details, word).await
    }

    pub(crate) async fn write_details(
        &self,
        tx: &Transaction<'_>,
        event: JournalEvent,
        details: &str,
        word: &Word,
    ) -> Result<(), Failed> {
        let (code, now) = (event.code(), self.moment());
        let sql = "insert into tenure.journal (at, event, jobs, actor, reason, details)
            values (coalesce($1, clock_timestamp()), $2, '{}', coalesce($3, session_user), $4, $5::text::jsonb)";
        let params: [Param<'_>; 5] = [
            (&now, Type::TIMESTAMPTZ),
            (&code, Type::INT2),
            (&word.actor, Type::TEXT),
            (&word.reason, Type::TEXT),
            (&details, Type::TEXT),
        ];
        tx.execute_typed(sql, &params).await?;
        Ok(())
    }
}

pub(crate) fn state(row: &Row) -> Result<RunState, StoreError> {
    let code: i16 = get(row, "state")?;
    RunState::from_code(code).ok_or_else(|| StoreError::Corrupt(format!("the state of a run is {code}")))
}

pub(crate) fn tally(row: &Row, column: &str) -> Result<u64, StoreError> {
    let value: i64 = get(row, column)?;
    u64::try_from(value).map_err(|_| StoreError::Corrupt(format!("column {column} is {value}")))
}

pub(crate) fn record(row: &Row) -> Result<RunRecord, StoreError> {
    let fan: i16 = get(row, "fan")?;
    let run = Run {
        state: state(row)?,
        sealed: get(row, "sealed")?,
        fail_fast: get(row, "fail_fast")?,
        tolerated: u32::try_from(get::<i64>(row, "tolerated")?).unwrap_or(u32::MAX),
        expired: get(row, "expired")?,
        total: tally(row, "total")?,
        done: tally(row, "done")?,
        failed: tally(row, "failed")?,
        canceled: tally(row, "canceled")?,
        fan: Fan::from_code(fan).ok_or_else(|| StoreError::Corrupt(format!("run.fan is {fan}")))?,
        started_at: time_maybe(row, "started_at")?,
        finished_at: time_maybe(row, "finished_at")?,
        last_error: get(row, "last_error")?,
    };
    Ok(RunRecord {
        id: RunId::from_uuid(get(row, "id")?),
        tenant: named(row, "tenant")?,
        owner: get(row, "owner")?,
        source: get(row, "source")?,
        run,
        consolidate: get::<Option<uuid::Uuid>>(row, "consolidate")?.map(JobId::from_uuid),
        rows: tally(row, "rows")?,
        created_at: time(row, "created_at")?,
        deadline: time_maybe(row, "deadline")?,
    })
}
