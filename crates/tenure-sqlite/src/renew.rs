//! Leases by their numbers: renew, and drop what is empty.

use std::time::Duration;

use rusqlite::named_params;
use tenure_core::{LeaseNo, WorkerId};
use tenure_store::lease::{RenewLeases, Renewed};

use crate::fault::Result;
use crate::row::{job_id, number, text};
use crate::tx::Tx;

const RENEW_LEASE: &str = include_str!("sql/renew_lease.sql");
const FIND_CANCEL_REQUESTS: &str = include_str!("sql/find_cancel_requests.sql");
const FIND_LEASE: &str = include_str!("sql/find_lease.sql");
const HAS_LEASE: &str = include_str!("sql/has_lease.sql");
const DROP_LEASE: &str = include_str!("sql/drop_lease.sql");

/// Pushes the deadlines of these leases out, and tells which of their jobs somebody wants canceled.
pub(crate) fn renew_leases(tx: &Tx<'_>, request: &RenewLeases) -> Result<Renewed> {
    let mut renewed = Renewed::default();
    for lease in &request.leases {
        let params = named_params! { ":lease": lease.0, ":worker": request.worker.0, ":now": tx.now.as_micros() };
        let jobs = tx.one(RENEW_LEASE, params, |row| Ok(text(row, 0)?.to_owned()))?;
        if let Some(jobs) = jobs {
            let params = named_params! { ":lease": lease.0, ":jobs": jobs };
            renewed.cancel_requested.extend(tx.all(FIND_CANCEL_REQUESTS, params, |row| job_id(row, 0))?);
            renewed.leases.push(*lease);
        }
    }
    Ok(renewed)
}

/// Those of these leases that are this worker's, and the time each was claimed with.
pub(crate) fn find_leases(tx: &Tx<'_>, worker: WorkerId, leases: &[LeaseNo]) -> Result<Vec<(LeaseNo, Duration)>> {
    let mut found = Vec::new();
    for lease in leases {
        let params = named_params! { ":lease": lease.0, ":worker": worker.0 };
        let ttl = tx.one(FIND_LEASE, params, |row| number::<i64, u64>(row, 0, "lease.expires_at"))?;
        found.extend(ttl.map(|micros| (*lease, Duration::from_micros(micros))));
    }
    Ok(found)
}

/// Deletes those of these leases whose jobs have all ended; answers which are gone, also those that were before: the
/// first reply may have been lost.
pub(crate) fn drop_leases(tx: &Tx<'_>, worker: WorkerId, leases: &[LeaseNo]) -> Result<Vec<LeaseNo>> {
    let mut gone = Vec::new();
    for lease in leases {
        drop_lease(tx, worker, *lease)?;
        if tx.one(HAS_LEASE, named_params! { ":lease": lease.0 }, |_| Ok(()))?.is_none() {
            gone.push(*lease);
        }
    }
    Ok(gone)
}

/// Deletes a lease if all its jobs have ended.
pub(crate) fn drop_lease(tx: &Tx<'_>, worker: WorkerId, lease: LeaseNo) -> Result<()> {
    tx.execute(DROP_LEASE, named_params! { ":lease": lease.0, ":worker": worker.0 })?;
    Ok(())
}
