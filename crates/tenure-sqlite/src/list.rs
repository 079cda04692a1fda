//! Lists of jobs, newest first.
//!
//! Ids first, then a look at each: whatever is asked for, one index leads to the ids in their order, and a page never
//! walks over more than what the other conditions refuse.

use rusqlite::named_params;
use tenure_core::{How, JobId, State, Timestamp};
use tenure_store::record::{JobFilter, JobSummary, JobsFound, SEARCHED_BYTES_MAX, SEARCHED_MAX, SEARCHED_PAGE, Sight};

use crate::fault::Result;
use crate::queue;
use crate::row::{blob, job_id, ready_code, text};
use crate::show;
use crate::tx::{Params, Tx};

const LIST_ALL: &str = include_str!("sql/list_all.sql");
const LIST_OF_TENANT: &str = include_str!("sql/list_of_tenant.sql");
const LIST_OF_QUEUE: &str = include_str!("sql/list_of_queue.sql");
const LIST_OF_KIND: &str = include_str!("sql/list_of_kind.sql");
const LIST_QUEUED: &str = include_str!("sql/list_queued.sql");
const LIST_UNUSUAL: &str = include_str!("sql/list_unusual.sql");
const LIST_RUNNING: &str = include_str!("sql/list_running.sql");
const LIST_SUCCEEDED: &str = include_str!("sql/list_succeeded.sql");
const LIST_UNSUCCESSFUL: &str = include_str!("sql/list_unsuccessful.sql");
const FIND_PAYLOAD: &str = include_str!("sql/find_payload.sql");

/// Before every id.
const FIRST_ID: [u8; 16] = [0; 16];
/// Behind every id.
const LAST_ID: [u8; 16] = [0xff; 16];

/// Jobs that match.
pub(crate) fn list_jobs(tx: &Tx<'_>, filter: &JobFilter) -> Result<Vec<JobSummary>> {
    let Some(scope) = Scope::of(tx, filter)? else { return Ok(Vec::new()) };
    find_ids(tx, filter, &scope)?.into_iter().map(|job| show::summarize(tx, job)).collect()
}

/// Jobs that match and contain a text, which is in lower case.
pub(crate) fn search_jobs(tx: &Tx<'_>, filter: &JobFilter, wanted: &str) -> Result<JobsFound> {
    let mut found = JobsFound::default();
    let Some(scope) = Scope::of(tx, filter)? else { return Ok(found) };
    let (mut page, mut bytes) = (JobFilter { limit: SEARCHED_PAGE, ..filter.clone() }, 0);
    loop {
        let ids = find_ids(tx, &page, &scope)?;
        for job in &ids {
            let is_full = found.jobs.len() == filter.limit as usize;
            if is_full || found.looked_at == SEARCHED_MAX || bytes > SEARCHED_BYTES_MAX {
                return Ok(found);
            }
            found.looked_at += 1;
            found.next = Some(*job);
            let payload = tx.one(FIND_PAYLOAD, named_params! { ":job": blob(job) }, |row| {
                let payload = text(row, 0)?;
                Ok((payload.len() as u64, payload.to_ascii_lowercase().contains(wanted)))
            })?;
            let (length, is_found) = payload.unwrap_or_default();
            bytes += length;
            if is_found {
                found.jobs.push(show::summarize(tx, *job)?);
            }
        }
        if ids.len() < SEARCHED_PAGE as usize {
            return Ok(JobsFound { next: None, ..found });
        }
        page.before = ids.last().copied();
    }
}

/// Names as the numbers that the tables know.
struct Scope {
    tenant: Option<i64>,
    queue: Option<i64>,
}

impl Scope {
    /// `None` when a name is unknown: nothing can match.
    fn of(tx: &Tx<'_>, filter: &JobFilter) -> Result<Option<Self>> {
        let tenant = match &filter.sight {
            Sight::All => None,
            Sight::Tenant(tenant) => Some(queue::find_tenant(tx, tenant)?),
        };
        let queue = match &filter.queue {
            None => None,
            Some(name) => Some(queue::find(tx, name)?),
        };
        Ok(match (tenant, queue) {
            (Some(None), _) | (_, Some(None)) => None,
            (tenant, queue) => Some(Self { tenant: tenant.flatten(), queue: queue.flatten() }),
        })
    }
}

/// One statement per way in; the most selective condition leads.
fn find_ids(tx: &Tx<'_>, filter: &JobFilter, scope: &Scope) -> Result<Vec<JobId>> {
    let (from, before) = filter.ids();
    let from = from.map_or(FIRST_ID, |job| job.as_uuid().into_bytes());
    let before = before.map_or(LAST_ID, |job| job.as_uuid().into_bytes());
    let since = filter.since.map_or(i64::MIN, Timestamp::as_micros);
    let until = filter.until.map_or(i64::MAX, Timestamp::as_micros);
    let kind = filter.kind.as_ref().map(|kind| kind.as_str());
    let limit = filter.limit;
    let (tenant, queue) = (scope.tenant, scope.queue);
    let ids = |sql: &'static str, extra: Params<'_>| {
        let all = named_params! {
            ":before": before, ":tenant": tenant, ":queue": queue, ":kind": kind, ":limit": limit,
            ":from": from, ":since": since, ":until": until,
        };
        let params: Vec<_> = all.iter().chain(extra).copied().collect();
        tx.all(sql, &params, |row| job_id(row, 0))
    };
    if let Some(stuck_for) = filter.stuck_for {
        if filter.state.is_some_and(|state| state != State::Running) {
            return Ok(Vec::new());
        }
        return ids(LIST_RUNNING, named_params! { ":renewed_before": tx.now.minus(stuck_for).as_micros() });
    }
    match filter.state {
        None if scope.queue.is_some() => ids(LIST_OF_QUEUE, &[]),
        None if kind.is_some() => ids(LIST_OF_KIND, &[]),
        None if scope.tenant.is_some() => ids(LIST_OF_TENANT, &[]),
        None => ids(LIST_ALL, &[]),
        Some(State::Queued) => ids(LIST_QUEUED, named_params! { ":code": ready_code(State::Queued) }),
        Some(state @ (State::Waiting | State::Retryable)) => {
            ids(LIST_UNUSUAL, named_params! { ":code": ready_code(state) })
        }
        Some(State::Running) => ids(LIST_RUNNING, named_params! { ":renewed_before": Timestamp::MAX.as_micros() }),
        Some(State::Succeeded) => ids(LIST_SUCCEEDED, named_params! { ":code": How::Succeeded.code() }),
        Some(State::Failed) => ids(LIST_UNSUCCESSFUL, named_params! { ":code": How::Failed.code() }),
        Some(State::Dead) => ids(LIST_UNSUCCESSFUL, named_params! { ":code": How::Dead.code() }),
        Some(State::Canceled) => ids(LIST_UNSUCCESSFUL, named_params! { ":code": How::Canceled.code() }),
    }
}
