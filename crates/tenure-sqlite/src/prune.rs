//! Retention: jobs that ended long ago go, a bounded batch at a time.

use rusqlite::named_params;
use tenure_core::journal::JournalEvent;
use tenure_core::{How, JobId};
use tenure_store::operate::PruneJobs;

use crate::fault::Result;
use crate::journal::{self, Entry};
use crate::row::{blob, job_id};
use crate::tx::Tx;

const PRUNABLE_JOBS: &str = include_str!("sql/prunable_jobs.sql");
const PRUNE_ATTEMPTS: &str = include_str!("sql/prune_attempts.sql");
const PRUNE_JOB: &str = include_str!("sql/prune_job.sql");
const PRUNE_CALLBACK: &str = include_str!("sql/prune_callback.sql");
const PRUNE_DELIVERY: &str = include_str!("sql/prune_delivery.sql");
const PRUNE_OPERATION: &str = include_str!("sql/prune_operation.sql");
const FREE_KEY: &str = include_str!("sql/free_key.sql");
const FREE_EXPIRED_KEYS: &str = include_str!("sql/free_expired_keys.sql");
const FORGET_CANCEL_REQUEST: &str = include_str!("sql/forget_cancel_request.sql");

/// Deletes jobs that ended long ago; answers how many. Dead letters are kept unless asked for.
pub(crate) fn prune_jobs(tx: &Tx<'_>, request: &PruneJobs) -> Result<u64> {
    let mut pruned = Vec::new();
    for how in [How::Succeeded, How::Failed, How::Canceled, How::Dead] {
        let left = request.limit as usize - pruned.len();
        if left > 0 && (how != How::Dead || request.dead_too) {
            pruned.extend(find(tx, request, how, left)?);
        }
    }
    for job in &pruned {
        delete(tx, job)?;
    }
    tx.execute(FREE_EXPIRED_KEYS, named_params! { ":now": tx.now.as_micros(), ":limit": request.limit })?;
    let jobs: Vec<JobId> = pruned.iter().map(|prunable| prunable.job).collect();
    journal::add(tx, &Entry::new(JournalEvent::Pruned), &jobs)?;
    Ok(jobs.len() as u64)
}

/// Nobody is asked to stop this job any more.
pub(crate) fn forget_cancel_request(tx: &Tx<'_>, job: JobId) -> Result<()> {
    tx.execute(FORGET_CANCEL_REQUEST, named_params! { ":job": blob(&job) })?;
    Ok(())
}

struct Prunable {
    job: JobId,
    how: How,
    tenant: i64,
    /// Scope and key.
    unique: Option<(String, String)>,
}

fn find(tx: &Tx<'_>, request: &PruneJobs, how: How, limit: usize) -> Result<Vec<Prunable>> {
    let params = named_params! {
        ":how": how.code(),
        ":ended_before": tx.now.minus(request.older_than).as_micros(),
        ":limit": limit as i64,
    };
    tx.all(PRUNABLE_JOBS, params, |row| {
        let unique = row.get::<_, Option<String>>(2)?.zip(row.get(3)?);
        Ok(Prunable { job: job_id(row, 0)?, how, tenant: row.get(1)?, unique })
    })
}

fn delete(tx: &Tx<'_>, prunable: &Prunable) -> Result<()> {
    let job = blob(&prunable.job);
    if let Some((scope, key)) = &prunable.unique {
        let params = named_params! {
            ":tenant": prunable.tenant, ":scope": scope, ":key": key, ":job": job, ":how": prunable.how.code(),
            ":now": tx.now.as_micros(),
        };
        tx.execute(FREE_KEY, params)?;
    }
    tx.execute(PRUNE_CALLBACK, named_params! { ":job": job })?;
    tx.execute(PRUNE_DELIVERY, named_params! { ":job": job })?;
    tx.execute(PRUNE_OPERATION, named_params! { ":job": job })?;
    tx.execute(PRUNE_ATTEMPTS, named_params! { ":job": job })?;
    tx.execute(PRUNE_JOB, named_params! { ":job": job })?;
    forget_cancel_request(tx, prunable.job)
}
