//! A holder reports how its jobs ended.

use rusqlite::named_params;
use tenure_core::{LeaseNo, WorkerId};
use tenure_store::lease::{EndJob, EndJobs, Ended};
use tenure_store::operate::Word;

use crate::ending::{Endings, Lease, Report};
use crate::fault::Result;
use crate::renew;
use crate::row::{blob, how};
use crate::tx::Tx;

const HOLD_LEASE: &str = include_str!("sql/hold_lease.sql");
const FIND_ATTEMPT: &str = include_str!("sql/find_attempt.sql");
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

fn end(tx: &Tx<'_>, request: &EndJobs) -> Result<(Vec<Ended>, Option<Lease>)> {
    let params = named_params! { ":lease": request.lease.0, ":worker": request.worker.0 };
    let Some(lease) = tx.one(HOLD_LEASE, params, Lease::read)? else {
        // A report repeated after its emptied lease was deleted must still find its answer.
        let ended = request.jobs.iter().map(|end| look_up(tx, request.worker, request.lease, end));
        return Ok((ended.collect::<Result<_>>()?, None));
    };
    let mut endings = Endings::open(tx, &lease)?;
    let mut ended = Vec::with_capacity(request.jobs.len());
    for end in &request.jobs {
        let report = Report { how: end.ending.how(), delay: end.ending.delay(), details: end.ending.details() };
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
    let params = named_params! { ":job": blob(&end.job), ":lease": lease.0, ":worker": worker.0 };
    let how = tx.one(FIND_ATTEMPT, params, |row| how(row, 0))?;
    Ok(match how {
        Some(how) if end.ending.is_answered_by(how) => Ended::Before(how),
        how => Ended::LeaseLost { how },
    })
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
