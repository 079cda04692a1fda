//! One job: where it stands, who holds it, and everything about it.

use rusqlite::{Row, named_params};
use tenure_core::apply::Rules;
use tenure_core::{JobId, Json, LeaseNo, Priority, State, Timestamp};
use tenure_store::StoreError;
use tenure_store::record::{AttemptRecord, JobRecord, JobSummary, Sight};

use crate::ending::{Grant, Lease};
use crate::fault::{Result, corrupt};
use crate::keys::OwnKey;
use crate::row::{
    self, RulesReader, blob, job_id, number, optional_json, optional_time, optional_word, text, time, word,
};
use crate::tx::Tx;

const FIND_JOB: &str = include_str!("sql/find_job.sql");
const FIND_HOLDER: &str = include_str!("sql/find_holder.sql");
const SHOW_JOB: &str = include_str!("sql/show_job.sql");
const LIST_ATTEMPTS: &str = include_str!("sql/list_attempts.sql");

/// One job with its attempts.
pub(crate) fn show_job(tx: &Tx<'_>, sight: &Sight, job: JobId) -> Result<JobRecord> {
    let mut record = read_job(tx, sight, job)?.ok_or_else(|| unknown(job))?;
    record.attempts = tx.all(LIST_ATTEMPTS, named_params! { ":job": blob(&job) }, read_attempt)?;
    Ok(record)
}

/// The attempt that ended under a lease, if one did.
pub(crate) fn attempt_under(tx: &Tx<'_>, job: JobId, lease: LeaseNo) -> Result<Option<AttemptRecord>> {
    let attempts = tx.all(LIST_ATTEMPTS, named_params! { ":job": blob(&job) }, read_attempt)?;
    Ok(attempts.into_iter().find(|attempt| attempt.lease == lease))
}

/// What a list shows of a job.
pub(crate) fn summarize(tx: &Tx<'_>, job: JobId) -> Result<JobSummary> {
    let record = read_job(tx, &Sight::All, job)?;
    record.map(|record| record.summary).ok_or_else(|| corrupt(format!("a listed job {job} is not there")))
}

/// Where a job stands; `None` when it is not there.
pub(crate) fn state_of(tx: &Tx<'_>, job: JobId) -> Result<Option<State>> {
    Ok(find(tx, &Sight::All, job)?.map(|found| found.state))
}

/// A job by id, for a verb that will change it. `NotFound` also when it is out of sight.
pub(crate) fn find_job(tx: &Tx<'_>, sight: &Sight, job: JobId) -> Result<Found> {
    find(tx, sight, job)?.ok_or_else(|| unknown(job).into())
}

/// What a verb needs to know about a job.
pub(crate) struct Found {
    pub(crate) queue: i64,
    pub(crate) line: String,
    pub(crate) priority: Priority,
    pub(crate) tenant: i64,
    /// The key it asked for; another job may have it now.
    pub(crate) unique: Option<OwnKey>,
    pub(crate) state: State,
    /// Attempts charged, by the ready row; 0 where there is none.
    pub(crate) attempt: u16,
    /// Leases lost, by the ready row; 0 where there is none.
    pub(crate) losses: u16,
}

/// Who runs a job.
pub(crate) struct Holder {
    pub(crate) lease: Lease,
    pub(crate) grant: Grant,
    renewed_at: Option<Timestamp>,
    expires_at: Timestamp,
    worker: Option<String>,
}

/// The live lease of a running job.
pub(crate) fn find_holder(tx: &Tx<'_>, job: JobId) -> Result<Option<Holder>> {
    let params = named_params! { ":job": blob(&job), ":text": job.to_string() };
    tx.one(FIND_HOLDER, params, |row| {
        let lease = Lease::read(row)?;
        let grant = lease.grants.iter().find(|grant| grant.job == job).copied();
        let grant = grant.ok_or_else(|| corrupt(format!("lease {} lists no job {job}", lease.no)))?;
        let (renewed_at, expires_at) = (optional_time(row, 9)?, time(row, 10)?);
        Ok(Holder { lease, grant, renewed_at, expires_at, worker: row.get(11)? })
    })
}

fn unknown(job: JobId) -> StoreError {
    StoreError::NotFound(format!("job {job}"))
}

pub(crate) fn sight_param(sight: &Sight) -> Option<&str> {
    sight.tenant().map(|tenant| tenant.as_str())
}

fn find(tx: &Tx<'_>, sight: &Sight, job: JobId) -> Result<Option<Found>> {
    tx.one(FIND_JOB, named_params! { ":job": blob(&job), ":sight": sight_param(sight) }, |row| {
        let unique = match row.get::<_, Option<String>>(3)? {
            Some(scope) => Some(OwnKey { scope, key: row.get(4)?, policy: row.get(9)? }),
            None => None,
        };
        Ok(Found {
            queue: row.get(0)?,
            line: row.get(10)?,
            priority: row::priority(row, 1)?,
            tenant: row.get(2)?,
            unique,
            state: row::state(row, 5, 8)?,
            attempt: row.get::<_, Option<u16>>(6)?.unwrap_or(0),
            losses: row.get::<_, Option<u16>>(7)?.unwrap_or(0),
        })
    })
}

fn read_job(tx: &Tx<'_>, sight: &Sight, job: JobId) -> Result<Option<JobRecord>> {
    let params = named_params! { ":job": blob(&job), ":sight": sight_param(sight) };
    let Some(mut record) = tx.one(SHOW_JOB, params, read_record)? else { return Ok(None) };
    if record.summary.state == State::Running {
        let holder = find_holder(tx, job)?.ok_or_else(|| corrupt(format!("job {job} runs and nobody holds it")))?;
        record.summary.attempt = holder.grant.attempt;
        record.summary.locked_by = Some(holder.worker.unwrap_or_else(|| holder.lease.worker.to_string()));
        record.losses = holder.grant.losses;
        record.lease = Some(holder.lease.no);
        record.lease_expires_at = Some(holder.expires_at);
        record.heartbeat_at = Some(holder.renewed_at.unwrap_or(holder.lease.claimed_at));
    }
    Ok(Some(record))
}

fn read_record(row: &Row<'_>) -> Result<JobRecord> {
    let state = row::state(row, 8, 12)?;
    let rules: Rules = RulesReader::default().read(row, 5, 17, 18)?;
    let attempt = row.get::<_, Option<u16>>(9)?.or(row.get(13)?).unwrap_or(0);
    let losses = row.get::<_, Option<u16>>(10)?.or(row.get(14)?).unwrap_or(0);
    let due = optional_time(row, 11)?.filter(|_| state != State::Waiting);
    let summary = JobSummary {
        id: job_id(row, 0)?,
        tenant: word(row, 1)?,
        queue: word(row, 2)?,
        kind: word(row, 3)?,
        priority: row::priority(row, 4)?,
        gate: optional_word(row, 22)?,
        state,
        attempt,
        max_attempts: rules.max_attempts,
        run_at: due.unwrap_or(time(row, 6)?),
        created_at: time(row, 7)?,
        finished_at: optional_time(row, 15)?,
        locked_by: None,
        error: optional_json(row, 16)?,
    };
    Ok(JobRecord {
        summary,
        payload: Json::from_store(text(row, 19)?),
        rules,
        losses,
        trace: row.get(20)?,
        callback_url: row.get(23)?,
        part: optional_word(row, 24)?,
        lease: None,
        lease_expires_at: None,
        heartbeat_at: None,
        cancel_requested: row.get(21)?,
        attempts: Vec::new(),
    })
}

fn read_attempt(row: &Row<'_>) -> Result<AttemptRecord> {
    Ok(AttemptRecord {
        lease: LeaseNo(row.get(0)?),
        attempt: number::<i64, u16>(row, 1, "attempt.attempt")?,
        how: row::how(row, 2)?,
        worker: row.get(3)?,
        started_at: optional_time(row, 4)?,
        ended_at: time(row, 5)?,
        error: optional_json(row, 6)?,
        result: optional_json(row, 7)?,
        usage: optional_json(row, 8)?,
    })
}
