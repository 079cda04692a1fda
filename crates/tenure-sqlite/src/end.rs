//! A holder reports how its jobs ended.

use std::collections::BTreeMap;

use rusqlite::named_params;
use tenure_core::journal::JournalEvent;
use tenure_core::json::quote;
use tenure_core::{How, JobId, LeaseNo, WorkerId};
use tenure_store::lease::{EndJob, EndJobs, Ended};
use tenure_store::operate::Word;

use crate::ending::{Endings, Lease, Report};
use crate::fault::Result;
use crate::journal::{self, Entry};
use crate::renew;
use crate::row::{blob, how};
use crate::tx::Tx;

const HOLD_LEASE: &str = include_str!("sql/hold_lease.sql");
const FIND_ATTEMPT: &str = include_str!("sql/find_attempt.sql");
const HAS_JOB: &str = include_str!("sql/has_job.sql");
const IS_ENDED: &str = include_str!("sql/is_ended.sql");

/// Ends jobs of one lease and deletes the lease when it is empty.
pub(crate) fn end_jobs(tx: &Tx<'_>, request: &EndJobs) -> Result<Vec<Ended>> {
    let (ended, lease) = end(tx, request)?;
    if let Some(lease) = lease {
        drop_if_empty(tx, &lease, &request.jobs)?;
    }
    Ok(ended)
}

/// Ends jobs of one lease inside a user's transaction. The lease stays, so that the worker finds it again when the user
/// rolls back.
pub(crate) fn report(tx: &Tx<'_>, request: &EndJobs) -> Result<Vec<Ended>> {
    Ok(end(tx, request)?.0)
}

/// How grants of a lease ended, each by itself.
pub(crate) fn find_endings(tx: &Tx<'_>, worker: WorkerId, lease: LeaseNo, jobs: &[JobId]) -> Result<Vec<Option<How>>> {
    jobs.iter().map(|job| find_attempt(tx, worker, lease, *job)).collect()
}

fn end(tx: &Tx<'_>, request: &EndJobs) -> Result<(Vec<Ended>, Option<Lease>)> {
    let (ended, lease) = write(tx, request)?;
    let late = request.jobs.iter().zip(&ended).filter(|(_, answer)| matches!(answer, Ended::LeaseLost { .. }));
    let late: Vec<&EndJob> = late.map(|(end, _)| end).collect();
    if !late.is_empty() {
        refuse(tx, request, late)?;
    }
    Ok((ended, lease))
}

fn write(tx: &Tx<'_>, request: &EndJobs) -> Result<(Vec<Ended>, Option<Lease>)> {
    let params = named_params! { ":lease": request.lease.0, ":worker": request.worker.0 };
    let Some(lease) = tx.one(HOLD_LEASE, params, Lease::read)? else {
        // A report repeated after its emptied lease was deleted must still find its answer.
        let ended = request.jobs.iter().map(|end| look_up(tx, request.worker, request.lease, end));
        return Ok((ended.collect::<Result<_>>()?, None));
    };
    let mut endings = Endings::open(tx, &lease)?;
    let mut ended = Vec::with_capacity(request.jobs.len());
    for end in &request.jobs {
        let report = Report {
            how: end.ending.how(),
            delay: end.ending.delay(),
            details: end.ending.details(),
            health: end.health(),
            hold: end.hold().map(|hold| tx.now.plus(hold)),
        };
        // At most 256, and a report of one must not pay for an index of all.
        let now = match lease.grants.iter().find(|grant| grant.job == end.job) {
            Some(grant) => endings.end(*grant, &report)?,
            None => None,
        };
        ended.push(match now {
            Some(how) => Ended::Now(how),
            None => look_up(tx, request.worker, request.lease, end)?,
        });
    }
    endings.record(Some(request.worker), &Word::default())?;
    Ok((ended, Some(lease)))
}

/// How a grant ended that this report did not end.
fn look_up(tx: &Tx<'_>, worker: WorkerId, lease: LeaseNo, end: &EndJob) -> Result<Ended> {
    Ok(match find_attempt(tx, worker, lease, end.job)? {
        Some(how) if end.ending.is_answered_by(how) => Ended::Before(how),
        how => Ended::LeaseLost { how },
    })
}

fn find_attempt(tx: &Tx<'_>, worker: WorkerId, lease: LeaseNo, job: JobId) -> Result<Option<How>> {
    let params = named_params! { ":job": blob(&job), ":lease": lease.0, ":worker": worker.0 };
    tx.one(FIND_ATTEMPT, params, |row| how(row, 0))
}

/// Writes down what came too late, a row for each way of ending that was reported. Only for jobs that are there: whoever
/// invents ids could otherwise fill the record without end. In a user's transaction the rows go with it when it is
/// rolled back, as it must be.
fn refuse(tx: &Tx<'_>, request: &EndJobs, late: Vec<&EndJob>) -> Result<()> {
    let mut refused: BTreeMap<How, Vec<JobId>> = BTreeMap::new();
    for end in late {
        if tx.one(HAS_JOB, named_params! { ":job": blob(&end.job) }, |_| Ok(()))?.is_some() {
            refused.entry(end.ending.how()).or_default().push(end.job);
        }
    }
    for (how, jobs) in refused {
        let details = Some(format!("{{\"reported\":{}}}", quote(how.as_str())));
        let (worker, lease) = (Some(request.worker), Some(request.lease));
        journal::add(tx, &Entry { worker, lease, details, ..Entry::new(JournalEvent::Refused) }, &jobs)?;
    }
    Ok(())
}

/// Deletes an emptied lease. The last job it lists is usually the last to end: looking there first spares a walk over
/// all of them at every single ending.
fn drop_if_empty(tx: &Tx<'_>, lease: &Lease, reported: &[EndJob]) -> Result<()> {
    let last = lease.grants.last().map(|grant| grant.job);
    let last = last.filter(|last| !reported.iter().any(|end| end.job == *last));
    if let Some(last) = last
        && tx.one(IS_ENDED, named_params! { ":job": blob(&last), ":lease": lease.no.0 }, |_| Ok(()))?.is_none()
    {
        return Ok(());
    }
    renew::drop_lease(tx, lease.worker, lease.no)
}
