//! Queues and tenants: what jobs and leases refer to by number.

use std::time::Duration;

use rusqlite::named_params;
use tenure_core::How;
use tenure_core::journal::JournalEvent;
use tenure_core::json::quote;
use tenure_core::name::{QueueName, TenantName};
use tenure_store::StoreError;
use tenure_store::operate::{PauseQueue, SetQueue};
use tenure_store::record::{ENDING_COUNTS_MAX, EndingCount, QueueRecord};

use crate::fault::{Result, corrupt};
use crate::journal::{self, Entry};
use crate::row::{number, optional_time, word};
use crate::tx::{Params, Tx};

const ADD_TENANT: &str = include_str!("sql/add_tenant.sql");
const FIND_TENANT: &str = include_str!("sql/find_tenant.sql");
const ADD_QUEUE: &str = include_str!("sql/add_queue.sql");
const FIND_QUEUE: &str = include_str!("sql/find_queue.sql");
const OPEN_QUEUE: &str = include_str!("sql/open_queue.sql");
const TENANT_QUOTA: &str = include_str!("sql/tenant_quota.sql");
const LINING: &str = include_str!("sql/lining.sql");
const COUNT_PENDING: &str = include_str!("sql/count_pending.sql");
const SET_QUEUE: &str = include_str!("sql/set_queue.sql");
const PAUSE_QUEUE: &str = include_str!("sql/pause_queue.sql");
const COUNT_ENDINGS: &str = include_str!("sql/count_endings.sql");
const LIST_QUEUES: &str = include_str!("sql/list_queues.sql");

/// Queues with their counts.
pub(crate) fn list_queues(tx: &Tx<'_>) -> Result<Vec<QueueRecord>> {
    tx.all(LIST_QUEUES, named_params! { ":now": tx.now.as_micros() }, |row| {
        Ok(QueueRecord {
            name: word(row, 0)?,
            paused: row.get(1)?,
            fair: row.get(2)?,
            quota: row.get(3)?,
            lease_ttl: Duration::from_millis(number::<i64, u64>(row, 4, "queue.lease_ttl_ms")?),
            due: number::<i64, u64>(row, 5, "due")?,
            scheduled: number::<i64, u64>(row, 6, "scheduled")?,
            waiting: number::<i64, u64>(row, 7, "waiting")?,
            retryable: number::<i64, u64>(row, 8, "retryable")?,
            running: number::<i64, u64>(row, 9, "running")?,
            oldest_due: optional_time(row, 10)?,
        })
    })
}

/// How attempts ended in the last `within`.
pub(crate) fn count_endings(tx: &Tx<'_>, within: Duration) -> Result<Vec<EndingCount>> {
    let mut counts = Vec::new();
    for how in How::ALL {
        let params = named_params! {
            ":how": how.code(), ":ended_after": tx.now.minus(within).as_micros(), ":limit": ENDING_COUNTS_MAX,
        };
        counts.extend(tx.all(COUNT_ENDINGS, params, |row| {
            Ok(EndingCount {
                queue: word(row, 0)?,
                kind: word(row, 1)?,
                how,
                count: number::<i64, u64>(row, 2, "count")?,
            })
        })?);
    }
    counts.sort_unstable_by(|a, b| (&a.queue, &a.kind, a.how).cmp(&(&b.queue, &b.kind, b.how)));
    counts.truncate(ENDING_COUNTS_MAX as usize);
    Ok(counts)
}

/// Creates a queue or changes its settings.
pub(crate) fn set_queue(tx: &Tx<'_>, request: &SetQueue) -> Result<()> {
    ensure(tx, &request.queue)?;
    let lease_ttl_ms = i64::try_from(request.lease_ttl.as_millis()).unwrap_or(i64::MAX);
    let params = named_params! {
        ":name": request.queue.as_str(),
        ":lease_ttl_ms": lease_ttl_ms,
        ":fair": request.fair,
        ":quota": request.quota.map(|quota| quota.pending().unwrap_or(0)),
    };
    tx.execute(SET_QUEUE, params)?;
    Ok(())
}

/// Stops or resumes claims of a queue that exists. A change is journaled, a repetition is not.
pub(crate) fn pause_queue(tx: &Tx<'_>, request: &PauseQueue) -> Result<()> {
    if find(tx, &request.queue)?.is_none() {
        return Err(StoreError::NotFound(format!("queue {}", request.queue)).into());
    }
    let changed =
        tx.execute(PAUSE_QUEUE, named_params! { ":name": request.queue.as_str(), ":paused": request.paused })?;
    if changed == 0 {
        return Ok(());
    }
    let event = if request.paused { JournalEvent::QueuePaused } else { JournalEvent::QueueResumed };
    let details = format!("{{\"queue\":{}}}", quote(request.queue.as_str()));
    journal::add_json(tx, &Entry { details: Some(details), ..Entry::said(event, &request.word) }, "[]")?;
    tx.wake();
    Ok(())
}

/// The number of a queue, if it is known.
pub(crate) fn find(tx: &Tx<'_>, queue: &QueueName) -> Result<Option<i64>> {
    tx.one(FIND_QUEUE, named_params! { ":name": queue.as_str() }, |row| Ok(row.get(0)?))
}

/// The number of a queue that may be claimed from, its lease time, and whether it has lines; `None` when it is paused or
/// unknown.
pub(crate) fn find_open(tx: &Tx<'_>, queue: &QueueName) -> Result<Option<(i64, Duration, bool)>> {
    tx.one(OPEN_QUEUE, named_params! { ":name": queue.as_str() }, |row| {
        let ttl = Duration::from_millis(number::<i64, u64>(row, 1, "queue.lease_ttl_ms")?);
        Ok((row.get(0)?, ttl, row.get(2)?))
    })
}

/// How the jobs of a queue wait.
#[derive(Clone, Copy)]
pub(crate) struct Lining {
    /// Each tenant has a line of its own.
    pub(crate) fair: bool,
    /// It is known to have more lines than one.
    pub(crate) lined: bool,
    /// How many may be pending.
    pub(crate) quota: Option<u32>,
}

/// How the jobs of a queue wait.
pub(crate) fn lining(tx: &Tx<'_>, queue: i64) -> Result<Lining> {
    let lining = tx.one(LINING, named_params! { ":queue": queue }, |row| {
        Ok(Lining { fair: row.get(0)?, lined: row.get(1)?, quota: row.get(2)? })
    })?;
    lining.ok_or_else(|| corrupt(format!("queue {queue} is not there")))
}

/// How many more jobs fit under a quota: of one tenant, or of all. A tenant's lines begin with its number, a gate's name
/// follows after `/`, and `0` comes after `/`; `~` comes after every line.
pub(crate) fn room(tx: &Tx<'_>, queue: i64, tenant: Option<i64>, quota: u32) -> Result<u32> {
    let line = tenure_core::Line::new(tenant, None);
    let end = if tenant.is_some() { format!("{line}0") } else { "~".to_owned() };
    let params = named_params! { ":queue": queue, ":line": line.as_str(), ":end": end, ":limit": quota };
    let pending = tx.one(COUNT_PENDING, params, |row| Ok(row.get::<_, u32>(0)?))?.unwrap_or(0);
    Ok(quota.saturating_sub(pending))
}

/// The number of a queue, which is made known.
pub(crate) fn ensure(tx: &Tx<'_>, queue: &QueueName) -> Result<i64> {
    if let Some(known) = find(tx, queue)? {
        return Ok(known);
    }
    tx.execute(ADD_QUEUE, named_params! { ":name": queue.as_str() })?;
    find(tx, queue)?.ok_or_else(|| corrupt(format!("queue {queue} was added and is not there")))
}

/// The number of a tenant, if it is known.
pub(crate) fn find_tenant(tx: &Tx<'_>, tenant: &TenantName) -> Result<Option<i64>> {
    tx.one(FIND_TENANT, named_params! { ":name": tenant.as_str() }, |row| Ok(row.get(0)?))
}

/// How many jobs a tenant may have pending in each fair queue, where that is not the queue's own quota.
pub(crate) fn tenant_quota(tx: &Tx<'_>, tenant: i64) -> Result<Option<u32>> {
    Ok(tx.one(TENANT_QUOTA, named_params! { ":tenant": tenant }, |row| Ok(row.get(0)?))?.flatten())
}

/// How many things of one kind a tenant has; `sql` counts them.
pub(crate) fn count_of_tenant(tx: &Tx<'_>, sql: &'static str, params: Params<'_>) -> Result<u32> {
    Ok(tx.one(sql, params, |row| number::<i64, u32>(row, 0, "count"))?.unwrap_or(0))
}

/// The number of a tenant, which is made known.
pub(crate) fn ensure_tenant(tx: &Tx<'_>, tenant: &TenantName) -> Result<i64> {
    if let Some(known) = find_tenant(tx, tenant)? {
        return Ok(known);
    }
    tx.execute(ADD_TENANT, named_params! { ":name": tenant.as_str() })?;
    find_tenant(tx, tenant)?.ok_or_else(|| corrupt(format!("tenant {tenant} was added and is not there")))
}
