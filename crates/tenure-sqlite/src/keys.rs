//! Unique and idempotency keys. Endings touch no key: the next enqueue that meets one looks whether its holder still
//! has it, and takes it over if not. There is one writer at a time, so looking and taking cannot be torn apart.

use std::time::Duration;

use rusqlite::named_params;
use sha2::{Digest, Sha256};
use tenure_core::unique::Policy;
use tenure_core::{JobId, NewJob, Timestamp};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;

use crate::fault::{Result, corrupt};
use crate::row::{blob, job_id, optional_time};
use crate::show;
use crate::tx::Tx;

const FIND_KEY: &str = include_str!("sql/find_key.sql");
const TAKE_KEY: &str = include_str!("sql/take_key.sql");

/// The scope of idempotency keys. No producer can ask for it: a scope is never empty.
const IDEMPOTENCY_SCOPE: &str = "";
/// How long an idempotency key is remembered.
const IDEMPOTENCY_WINDOW: Duration = Duration::from_secs(7 * 86_400);

/// The code of [`Policy::Window`].
const WINDOW: i16 = Policy::Window(Duration::ZERO).code();

/// What the keys of a new job say.
pub(crate) enum Verdict {
    /// An earlier job is meant, or in the way.
    Found(Enqueued),
    /// Nobody is.
    Free,
}

/// Looks at both keys of a job without taking them.
pub(crate) fn look(tx: &Tx<'_>, tenant: i64, job: &NewJob) -> Result<Verdict> {
    if let Some(key) = &job.idempotency_key
        && let Some(holder) = find(tx, tenant, IDEMPOTENCY_SCOPE, key)?
        && holder.holds(tx)?
    {
        if holder.body != Some(digest(job)) {
            let first = holder.job;
            let text = format!("idempotency key `{key}` was used by job {first} with another body than job {}", job.id);
            return Err(StoreError::Conflict(text).into());
        }
        return Ok(Verdict::Found(Enqueued::Found { job: holder.job, state: show::state_of(tx, holder.job)? }));
    }
    if let Some(unique) = &job.unique
        && let Some(holder) = find(tx, tenant, scope(job).unwrap_or_default(), &unique.key)?
        && holder.holds(tx)?
    {
        return Ok(Verdict::Found(Enqueued::Found { job: holder.job, state: show::state_of(tx, holder.job)? }));
    }
    Ok(Verdict::Free)
}

/// Takes both keys for a job, after a [`look`] that found them free.
pub(crate) fn take(tx: &Tx<'_>, tenant: i64, job: &NewJob) -> Result<()> {
    if let Some(key) = &job.idempotency_key {
        let policy = Policy::Window(IDEMPOTENCY_WINDOW);
        write(tx, tenant, IDEMPOTENCY_SCOPE, key, &Holder::new(tx.now, job.id, policy, Some(digest(job))))?;
    }
    if let Some(unique) = &job.unique {
        let holder = Holder::new(tx.now, job.id, unique.policy, None);
        write(tx, tenant, scope(job).unwrap_or_default(), &unique.key, &holder)?;
    }
    Ok(())
}

/// A key as its job asked for it.
pub(crate) struct OwnKey {
    pub(crate) scope: String,
    pub(crate) key: String,
    pub(crate) policy: i16,
}

/// A revived job needs its key: refused when another job has taken it, even one that has ended since.
pub(crate) fn take_back(tx: &Tx<'_>, tenant: i64, own: &OwnKey, job: JobId) -> Result<()> {
    let OwnKey { scope, key, policy } = own;
    match find(tx, tenant, scope, key)? {
        Some(holder) if holder.job == job => Ok(()),
        Some(holder) => {
            let text = format!("job {job} cannot be requeued: job {} has taken its unique key `{key}`", holder.job);
            Err(StoreError::Conflict(text).into())
        }
        // Its window is over; it ran under no key before its end either.
        None if *policy == WINDOW => Ok(()),
        // Another job had taken it and was pruned.
        None => write(tx, tenant, scope, key, &Holder { job, policy: *policy, expires_at: None, body: None }),
    }
}

/// The scope of a job's unique key: its kind, unless it says otherwise.
pub(crate) fn scope(job: &NewJob) -> Option<&str> {
    job.unique.as_ref().map(|unique| unique.scope.as_deref().unwrap_or(job.kind.as_str()))
}

struct Holder {
    job: JobId,
    policy: i16,
    expires_at: Option<Timestamp>,
    body: Option<[u8; 32]>,
}

impl Holder {
    fn new(now: Timestamp, job: JobId, policy: Policy, body: Option<[u8; 32]>) -> Self {
        let expires_at = policy.window().map(|window| now.plus(window));
        Self { job, policy: policy.code(), expires_at, body }
    }

    /// Whether the holder still has the key. Pruning frees what a job had let go, so a holder that is gone and whose
    /// key is there has it for ever, or until the window is over.
    fn holds(&self, tx: &Tx<'_>) -> Result<bool> {
        let expired = self.expires_at.is_some_and(|at| at <= tx.now);
        let policy = match self.policy {
            1 => Policy::WhileActive,
            2 => Policy::UnlessFailed,
            3 => Policy::Forever,
            WINDOW => Policy::Window(Duration::ZERO),
            code => return Err(corrupt(format!("unique_key.policy is {code}"))),
        };
        Ok(match show::state_of(tx, self.job)? {
            Some(state) => policy.holds(state, expired),
            None => !expired,
        })
    }
}

fn find(tx: &Tx<'_>, tenant: i64, scope: &str, key: &str) -> Result<Option<Holder>> {
    tx.one(FIND_KEY, named_params! { ":tenant": tenant, ":scope": scope, ":key": key }, |row| {
        Ok(Holder { job: job_id(row, 0)?, policy: row.get(1)?, expires_at: optional_time(row, 2)?, body: row.get(3)? })
    })
}

fn write(tx: &Tx<'_>, tenant: i64, scope: &str, key: &str, holder: &Holder) -> Result<()> {
    tx.execute(
        TAKE_KEY,
        named_params! {
            ":tenant": tenant,
            ":scope": scope,
            ":key": key,
            ":job": blob(&holder.job),
            ":policy": holder.policy,
            ":expires_at": holder.expires_at.map(Timestamp::as_micros),
            ":body": holder.body,
        },
    )?;
    Ok(())
}

/// What makes two requests the same: tenant, queue, kind and payload, each prefixed by its length.
fn digest(job: &NewJob) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for field in [job.tenant.as_str(), job.queue.as_str(), job.kind.as_str(), job.payload.as_str()] {
        hasher.update((field.len() as u64).to_be_bytes());
        hasher.update(field);
    }
    hasher.finalize().into()
}
