//! Producers and operators: jobs by their id.

use async_trait::async_trait;
use tenure_core::apply::Rules;
use tenure_core::{Backoff, JobId, Json, LeaseNo, NewJob, State};
use tenure_store::enqueue::Enqueued;
use tenure_store::operate::{CancelJob, Canceled, HastenJob, OpenJob, RequeueJob, Word};
use tenure_store::record::{AttemptRecord, JobFilter, JobRecord, JobSummary, JobsFound, Sight, check_search};
use tenure_store::{JobStore, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::call::{Failed, Param};
use crate::enqueue::{Columns, answers, is_plain};
use crate::error::is_taken;
use crate::gather;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{count, get, how, job_id, named, named_maybe, priority, state, time, time_maybe};
use crate::wall::Seen;

/// From so many jobs on an enqueue is bulk work.
const BULK: usize = 500;

const CANCEL: Statement = Statement { name: "cancel", sql: "select tenure.cancel($1, $2, $3, $4, $5, $6) as answer" };
const REQUEUE: Statement = Statement { name: "requeue", sql: "select tenure.requeue($1, $2, $3, $4, $5)" };
const HASTEN: Statement = Statement { name: "hasten", sql: "select tenure.hasten($1, $2, $3, $4, $5) as is_new" };
const OPEN: Statement = Statement { name: "open", sql: "select tenure.open($1, $2, $3, $4, $5)" };

impl PgStore {
    /// Stores jobs in one call of their own, all or none.
    pub(crate) async fn enqueue_now(&self, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        self.enqueue_on(if jobs.len() < BULK { Desk::Short } else { Desk::Long }, jobs).await
    }

    /// The same on a connection of this kind.
    pub(crate) async fn enqueue_on(&self, desk: Desk, jobs: &[NewJob]) -> Result<Vec<Enqueued>, StoreError> {
        let columns = Columns::new(jobs, self.moment())?;
        if is_plain(jobs) && self.enqueue_plain(desk, &columns).await? {
            return Ok(jobs.iter().map(|job| Enqueued::Created(job.id)).collect());
        }
        let wakes = columns.queue_names();
        let rows = self.call_waking(desk, statement::ENQUEUE_JOBS, &columns.params(), &wakes).await?;
        answers(&rows)
    }

    /// Stores jobs in the usual way; `false`: nothing is stored, and the unusual way tells why.
    async fn enqueue_plain(&self, desk: Desk, columns: &Columns<'_>) -> Result<bool, StoreError> {
        let wakes = columns.queue_names();
        match self.call_waking(desk, statement::ENQUEUE_PLAIN, &columns.plain_params(), &wakes).await {
            Ok(rows) => Ok(!rows.is_empty()),
            Err(Failed::Said(error)) if is_taken(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

#[async_trait]
impl JobStore for PgStore {
    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError> {
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        match self.options().share_enqueues && gather::fits(&jobs) {
            true => self.enqueue_gathered(jobs).await,
            false => self.enqueue_by_key(&jobs).await,
        }
    }

    async fn show_job(&self, sight: &Sight, job: JobId) -> Result<JobRecord, StoreError> {
        let tenant = tenant(sight);
        let ids = vec![*job.as_uuid()];
        let params: [Param<'_>; 2] = [(&ids, Type::UUID_ARRAY), (&tenant, Type::TEXT)];
        let rows = self.call_within(tenant.as_deref(), Desk::Long, statement::SHOW_JOBS, &params).await?;
        let row = rows.first().ok_or_else(|| StoreError::NotFound(format!("job {job}")))?;
        let params = [(job.as_uuid() as _, Type::UUID)];
        let attempts = self.call_within(tenant.as_deref(), Desk::Long, statement::SHOW_ATTEMPTS, &params).await?;
        record(row, attempts.iter().map(attempt).collect::<Result<_, _>>()?)
    }

    async fn list_jobs(&self, filter: &JobFilter) -> Result<Vec<JobSummary>, StoreError> {
        filter.check()?;
        self.list(filter).await
    }

    async fn search_jobs(&self, filter: &JobFilter, text: &str) -> Result<JobsFound, StoreError> {
        filter.check()?;
        check_search(text)?;
        self.search(filter, &text.to_ascii_lowercase()).await
    }

    async fn cancel_job(&self, request: CancelJob) -> Result<Canceled, StoreError> {
        let CancelJob { sight, job, force, word } = request;
        word.check()?;
        let (tenant, now) = (tenant(&sight), self.moment());
        let params: [Param<'_>; 6] = [
            (job.as_uuid(), Type::UUID),
            (&force, Type::BOOL),
            (&tenant, Type::TEXT),
            (&word.actor, Type::TEXT),
            (&word.reason, Type::TEXT),
            (&now, Type::TIMESTAMPTZ),
        ];
        let rows = self.call_past(tenant.as_deref(), Seen::Job(job.as_uuid()), CANCEL, &params).await?;
        match rows.first().map(|row| get::<&str>(row, "answer")).transpose()? {
            Some("canceled") => Ok(Canceled::Now),
            Some("requested") => Ok(Canceled::Requested),
            Some("before") => Ok(Canceled::Before),
            other => Err(StoreError::Corrupt(format!("cancel answered {other:?}"))),
        }
    }

    async fn requeue_job(&self, request: RequeueJob) -> Result<(), StoreError> {
        self.operate(REQUEUE, &request.sight, request.job, &request.word).await.map(drop)
    }

    async fn open_job(&self, request: OpenJob) -> Result<(), StoreError> {
        self.operate(OPEN, &request.sight, request.job, &request.word).await.map(drop)
    }

    async fn hasten_job(&self, request: HastenJob) -> Result<bool, StoreError> {
        let rows = self.operate(HASTEN, &request.sight, request.job, &request.word).await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("hasten answered nothing".to_owned()))?;
        get(row, "is_new")
    }
}

impl PgStore {
    async fn operate(
        &self,
        statement: Statement,
        sight: &Sight,
        job: JobId,
        word: &Word,
    ) -> Result<Vec<Row>, StoreError> {
        word.check()?;
        let (tenant, now) = (tenant(sight), self.moment());
        let params: [Param<'_>; 5] = [
            (job.as_uuid(), Type::UUID),
            (&tenant, Type::TEXT),
            (&word.actor, Type::TEXT),
            (&word.reason, Type::TEXT),
            (&now, Type::TIMESTAMPTZ),
        ];
        self.call_past(tenant.as_deref(), Seen::Job(job.as_uuid()), statement, &params).await
    }
}

pub(crate) fn tenant(sight: &Sight) -> Option<String> {
    sight.tenant().map(ToString::to_string)
}

pub(crate) fn summary(row: &Row) -> Result<JobSummary, StoreError> {
    Ok(JobSummary {
        id: job_id(row, "id")?,
        tenant: named(row, "tenant")?,
        queue: named(row, "queue")?,
        kind: named(row, "kind")?,
        priority: priority(row, "priority")?,
        gate: named_maybe(row, "gate")?,
        state: state(get(row, "state")?)?,
        attempt: count(row, "attempts")?,
        max_attempts: count(row, "max_attempts")?,
        run_at: time(row, "run_at")?,
        created_at: time(row, "created_at")?,
        finished_at: time_maybe(row, "completed_at")?,
        locked_by: get(row, "locked_by")?,
        error: json(row, "error")?,
    })
}

fn record(row: &Row, attempts: Vec<AttemptRecord>) -> Result<JobRecord, StoreError> {
    let summary = summary(row)?;
    Ok(JobRecord {
        payload: Json::from_store(get::<String>(row, "payload")?),
        rules: rules(row)?,
        losses: count(row, "losses")?,
        trace: get(row, "trace")?,
        callback_url: get(row, "callback_url")?,
        part: named_maybe(row, "part")?,
        lease: if summary.state == State::Running { get::<Option<i64>>(row, "lease")?.map(LeaseNo) } else { None },
        lease_expires_at: time_maybe(row, "lease_expires_at")?,
        heartbeat_at: time_maybe(row, "heartbeat_at")?,
        cancel_requested: get(row, "cancel_requested")?,
        attempts,
        summary,
    })
}

pub(crate) fn attempt(row: &Row) -> Result<AttemptRecord, StoreError> {
    Ok(AttemptRecord {
        lease: LeaseNo(get(row, "lease")?),
        attempt: count(row, "attempt")?,
        how: how(row)?,
        worker: get(row, "worker")?,
        started_at: time_maybe(row, "started_at")?,
        ended_at: time(row, "ended_at")?,
        error: json(row, "error")?,
        result: json(row, "result")?,
        usage: json(row, "usage")?,
    })
}

/// The limits and the policy a job carries.
fn rules(row: &Row) -> Result<Rules, StoreError> {
    let backoff = match get::<Option<&str>>(row, "backoff")? {
        Some(text) => text.parse().map_err(|e: tenure_core::Invalid| StoreError::Corrupt(e.to_string()))?,
        None => Backoff::default(),
    };
    Ok(Rules { max_attempts: count(row, "max_attempts")?, max_losses: count(row, "max_losses")?, backoff })
}

fn json(row: &Row, column: &str) -> Result<Option<Json>, StoreError> {
    Ok(get::<Option<String>>(row, column)?.map(Json::from_store))
}
