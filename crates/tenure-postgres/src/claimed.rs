//! What a claim answered, from rows to jobs.
//!
//! A worker reads a row for every job it ever runs, so columns are found once for all rows, and a kind or tenant that is
//! the same as in the row before shares its text.

use std::str::FromStr;
use std::time::Duration;

use tenure_core::json::PAYLOAD_BYTES_MAX;
use tenure_core::{Backoff, Invalid, JobId, Json, KindName, LeaseNo, Line, Rules, TenantName, Timestamp};
use tenure_store::StoreError;
use tenure_store::lease::{Claimed, ClaimedJob};
use tokio_postgres::Row;

use crate::value::{count, get, job_id, priority, time, time_maybe};

/// The rows of one claim.
pub(crate) struct Answer {
    /// `None` when no row names a job.
    pub(crate) claimed: Option<Claimed>,
    /// The line of each job, where the queue has lines.
    pub(crate) lines: Vec<Line>,
    /// Lines whose gate let no more through: why, and until when.
    pub(crate) closed: Vec<(Line, String, Option<Timestamp>)>,
    /// Rows that somebody wrote past the verbs and that cannot be read.
    pub(crate) unreadable: Vec<(JobId, StoreError)>,
    /// The store's clock at the claim.
    pub(crate) due: Timestamp,
}

/// Reads them; `None` when there are none.
pub(crate) fn read(rows: &[Row]) -> Result<Option<Answer>, StoreError> {
    let Some(first) = rows.first() else { return Ok(None) };
    let at = Places::of(first)?;
    let ttl: i32 = get(first, at.lease_ttl_ms)?;
    let (mut lines, mut closed) = (Vec::new(), Vec::new());
    let (mut any, mut granted) = (false, false);
    let of_lines = first.columns().iter().any(|column| column.name() == "line");
    let mut claimed = Claimed {
        lease: LeaseNo(0),
        ttl: Duration::from_millis(u64::try_from(ttl).unwrap_or(0)),
        jobs: Vec::with_capacity(rows.len()),
        canceled: Vec::new(),
    };
    let (mut unreadable, mut names) = (Vec::new(), Names::default());
    for row in rows {
        let line = if of_lines { Some(Line::from_store(get(row, "line")?)) } else { None };
        if get::<Option<uuid::Uuid>>(row, at.job)?.is_none() {
            if let Some(line) = line {
                closed.push((line, get(row, "why")?, time_maybe(row, "until")?));
            }
            continue;
        }
        any = true;
        lines.extend(line.clone());
        if get(row, at.canceled)? {
            claimed.canceled.push(job_id(row, at.job)?);
            // The number of an ending is nobody's lease: it is told where there is no other.
            if !granted {
                claimed.lease = LeaseNo(get(row, at.no)?);
            }
            continue;
        }
        (claimed.lease, granted) = (LeaseNo(get(row, at.no)?), true);
        match claimed_job(row, &at, line.as_ref(), &mut names) {
            Ok(job) => claimed.jobs.push(job),
            Err(error) => unreadable.push((job_id(row, at.job)?, error)),
        }
    }
    claimed.jobs.sort_unstable_by_key(|job| (job.priority, job.run_at, job.id));
    Ok(Some(Answer { claimed: any.then_some(claimed), lines, closed, unreadable, due: time(first, at.due)? }))
}

fn claimed_job(row: &Row, at: &Places, line: Option<&Line>, names: &mut Names) -> Result<ClaimedJob, StoreError> {
    let corrupt = |e: Invalid| StoreError::Corrupt(e.to_string());
    let backoff = match get::<Option<&str>>(row, at.backoff)? {
        Some(text) => text.parse().map_err(corrupt)?,
        None => Backoff::default(),
    };
    Ok(ClaimedJob {
        id: job_id(row, at.job)?,
        tenant: shared(&mut names.tenant, get(row, at.tenant)?, TenantName::as_str)?,
        kind: shared(&mut names.kind, get(row, at.kind)?, KindName::as_str)?,
        payload: Json::from_store(get::<Option<String>>(row, at.payload)?.ok_or_else(payload_too_long)?),
        priority: priority(row, at.priority)?,
        attempt: count(row, at.attempt)?,
        losses: count(row, at.losses)?,
        rules: Rules { max_attempts: count(row, at.max_attempts)?, max_losses: count(row, at.max_losses)?, backoff },
        trace: get(row, at.trace)?,
        gate: line.and_then(Line::gate).map(str::parse).transpose().map_err(corrupt)?,
        part: get::<Option<&str>>(row, at.part)?.map(str::parse).transpose().map_err(corrupt)?,
        run_at: time(row, at.run_at)?,
        created_at: time(row, at.created_at)?,
    })
}

fn payload_too_long() -> StoreError {
    StoreError::Corrupt(format!("the payload is longer than {PAYLOAD_BYTES_MAX} bytes when it is written out"))
}

/// The names of the row before.
#[derive(Default)]
struct Names {
    tenant: Option<TenantName>,
    kind: Option<KindName>,
}

fn shared<N: Clone + FromStr<Err = Invalid>>(
    last: &mut Option<N>,
    text: &str,
    as_str: fn(&N) -> &str,
) -> Result<N, StoreError> {
    match last {
        Some(name) if as_str(name) == text => Ok(name.clone()),
        _ => {
            let name: N = text.parse().map_err(|e: Invalid| StoreError::Corrupt(e.to_string()))?;
            Ok(last.insert(name).clone())
        }
    }
}

macro_rules! places {
    ($($column:ident)*) => {
        /// Where each column is.
        struct Places { $($column: usize,)* }

        impl Places {
            fn of(row: &Row) -> Result<Self, StoreError> {
                let find = |name: &str| {
                    let place = row.columns().iter().position(|column| column.name() == name);
                    place.ok_or_else(|| StoreError::Corrupt(format!("column {name} is missing")))
                };
                Ok(Self { $($column: find(stringify!($column))?,)* })
            }
        }
    };
}

places! {
    canceled no lease_ttl_ms due job attempt losses run_at created_at kind payload priority max_attempts max_losses
    backoff trace tenant part
}
