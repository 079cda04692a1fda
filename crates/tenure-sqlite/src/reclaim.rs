//! Leases that end without a report: expired, or unknown to their own worker.

use rusqlite::named_params;
use tenure_core::failure::lease_lost;
use tenure_core::name::WorkerName;
use tenure_core::{How, JobId, LeaseNo, WorkerId};
use tenure_store::lease::Reclaimed;
use tenure_store::operate::Word;

use crate::ending::{Endings, Lease, Report};
use crate::fault::Result;
use crate::row::{numbers_to_json, word};
use crate::tx::Tx;

const EXPIRED_LEASES: &str = include_str!("sql/expired_leases.sql");
const UNKNOWN_LEASES: &str = include_str!("sql/unknown_leases.sql");
const TAKE_LEASE: &str = include_str!("sql/take_lease.sql");
const FIND_WORKER: &str = include_str!("sql/find_worker.sql");

/// Takes back what expired leases held. A job that was lost too often is dead: it probably kills its workers.
pub(crate) fn reclaim_jobs(tx: &Tx<'_>, by: Option<WorkerId>, leases_max: u32) -> Result<Vec<Reclaimed>> {
    let params = named_params! { ":now": tx.now.as_micros(), ":limit": leases_max };
    let mut reclaimed = Vec::new();
    for lease in tx.all(EXPIRED_LEASES, params, Lease::read)? {
        let worker = find_worker(tx, lease.worker)?;
        let name = worker.as_ref().map_or_else(|| lease.worker.to_string(), WorkerName::to_string);
        let error = lease_lost(lease.no, &name);
        let report = Report { details: (Some(&error), None, None), ..Report::unsaid(How::Lost) };
        let ended = end_lease(tx, by, &lease, &report)?;
        let (lease, worker) = (lease.no, &worker);
        reclaimed.extend(ended.into_iter().map(|(job, how)| Reclaimed { job, lease, worker: worker.clone(), how }));
    }
    Ok(reclaimed)
}

/// Gives back, uncharged, what a worker holds under leases it does not know.
pub(crate) fn release_unknown(tx: &Tx<'_>, worker: WorkerId, known: &[LeaseNo], newest: LeaseNo) -> Result<Vec<JobId>> {
    let params = named_params! { ":worker": worker.0, ":known": numbers_to_json(known), ":newest": newest.0 };
    let report = Report::unsaid(How::Released);
    let mut released = Vec::new();
    for lease in tx.all(UNKNOWN_LEASES, params, Lease::read)? {
        let ended = end_lease(tx, Some(worker), &lease, &report)?;
        released.extend(ended.into_iter().map(|(job, _)| job));
    }
    Ok(released)
}

/// Ends whatever has not ended under a lease, and deletes it.
fn end_lease(tx: &Tx<'_>, by: Option<WorkerId>, lease: &Lease, report: &Report<'_>) -> Result<Vec<(JobId, How)>> {
    let mut endings = Endings::open(tx, lease)?;
    let mut ended = Vec::new();
    for grant in &lease.grants {
        if let Some(how) = endings.end(*grant, report)? {
            ended.push((grant.job, how));
        }
    }
    endings.record(by, &Word::default())?;
    tx.execute(TAKE_LEASE, named_params! { ":lease": lease.no.0 })?;
    Ok(ended)
}

fn find_worker(tx: &Tx<'_>, worker: WorkerId) -> Result<Option<WorkerName>> {
    tx.one(FIND_WORKER, named_params! { ":worker": worker.0 }, |row| word(row, 0))
}
