//! The store itself, its queues and its workers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::name::{QueueName, WorkerName};
use tenure_core::{JobId, Timestamp, WorkerId};
use tenure_store::operate::{PauseQueue, PruneJobs, SetQueue};
use tenure_store::record::{ENDING_COUNTS_MAX, EndingCount, Migration, QueueRecord, SecondWall, Violation};
use tenure_store::usage::{UsageFilter, UsageTotal};
use tenure_store::worker::{Beat, Order, OrderWorker, WorkerRecord};
use tenure_store::{AdminStore, Store, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call::{Failed, Param};
use crate::error::is_taken;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{get, how, millis, named, time, time_maybe};

const REGISTER_WORKER: Statement = Statement {
    name: "register_worker",
    sql: "insert into tenure.worker (name, registered_at) values ($1, coalesce($2, clock_timestamp())) returning id",
};
const NOW: Statement = Statement { name: "now", sql: "select clock_timestamp() as now" };
const HAS_QUEUE: Statement = Statement { name: "has_queue", sql: "select from tenure.queue where name = $1" };
const SET_QUEUE: Statement = Statement {
    name: "set_queue",
    sql: "insert into tenure.queue as q (name, lease_ttl_ms, fair, lined, quota) \
          values ($1, $2, coalesce($3, false), coalesce($3, false), nullif($4, 0)) \
          on conflict (name) do update set lease_ttl_ms = excluded.lease_ttl_ms, fair = coalesce($3, q.fair), lined = q.lined or excluded.lined, \
          quota = case when $4 is null then q.quota else excluded.quota end",
};
const PAUSE_QUEUE: Statement = Statement { name: "pause_queue", sql: "select tenure.pause_queue($1, $2, $3, $4, $5)" };
/// Windows of attempts that one call looks at, as long as too few of them can be pruned: dead letters stay, and retries
/// have many attempts.
const PRUNE_WINDOWS_MAX: u32 = 100;
/// One row while the walk of `tenure.prune` has not come to its end.
const PRUNE_GOES_ON: Statement =
    Statement { name: "prune_goes_on", sql: "select from tenure.prune_mark where lease <> 0" };
const PRUNE_JOBS: Statement = Statement {
    name: "prune_jobs",
    sql: "select tenure.prune(coalesce($4, clock_timestamp()) - $1 * interval '1 ms', $2, $3, $4) as gone",
};
const FIND_VIOLATIONS: Statement = Statement {
    name: "find_violations",
    sql: "select invariant, job, detail from tenure.violations order by job, invariant limit $1",
};

#[async_trait]
impl AdminStore for PgStore {
    async fn migrate(&self) -> Result<Vec<Migration>, StoreError> {
        crate::migrate::up(self).await
    }

    async fn list_migrations(&self) -> Result<Vec<Migration>, StoreError> {
        crate::migrate::list(self).await
    }

    async fn register_worker(&self, name: &WorkerName) -> Result<WorkerId, StoreError> {
        let rows = self
            .call(Desk::Short, REGISTER_WORKER, &[(&name.as_str(), Type::TEXT), (&self.moment(), Type::TIMESTAMPTZ)])
            .await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("the registry gave no number".to_owned()))?;
        get(row, "id").map(WorkerId)
    }

    fn second_wall(&self) -> SecondWall {
        self.wall()
    }

    async fn beat_worker(&self, beat: Beat) -> Result<Order, StoreError> {
        self.beat(&beat).await
    }

    async fn order_worker(&self, request: OrderWorker) -> Result<(), StoreError> {
        self.order(&request).await
    }

    async fn show_worker(&self, worker: WorkerId) -> Result<WorkerRecord, StoreError> {
        let found = self.workers(Some(worker), 1).await?.pop();
        found.ok_or_else(|| StoreError::NotFound(format!("worker {worker}")))
    }

    async fn list_workers(&self, limit: u32) -> Result<Vec<WorkerRecord>, StoreError> {
        self.workers(None, limit).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        if let Some(moment) = self.moment() {
            return Ok(moment.0);
        }
        let rows = self.call(Desk::Short, NOW, &[]).await?;
        let row = rows.first().ok_or_else(|| StoreError::Corrupt("the clock gave no time".to_owned()))?;
        time(row, "now")
    }

    async fn separate(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(self.keeper()?))
    }

    async fn sum_usage(&self, filter: &UsageFilter) -> Result<Vec<UsageTotal>, StoreError> {
        self.sum(filter).await
    }

    async fn fold_usage(&self) -> Result<u64, StoreError> {
        self.fold_usages().await
    }

    async fn count_endings(&self, within: Duration) -> Result<Vec<EndingCount>, StoreError> {
        EndingCount::check_within(within)?;
        let (within_ms, limit, now) = (millis(within), i64::from(ENDING_COUNTS_MAX), self.moment());
        let params: [Param<'_>; 3] = [(&within_ms, Type::INT8), (&limit, Type::INT8), (&now, Type::TIMESTAMPTZ)];
        let rows = self.call(Desk::Long, statement::COUNT_ENDINGS, &params).await?;
        rows.iter()
            .map(|row| {
                Ok(EndingCount {
                    queue: named(row, "queue")?,
                    kind: named(row, "kind")?,
                    how: how(row)?,
                    count: tally(row, "count")?,
                })
            })
            .collect()
    }

    async fn has_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let rows = self.call(Desk::Short, HAS_QUEUE, &[(&queue.as_str(), Type::TEXT)]).await?;
        Ok(!rows.is_empty())
    }

    async fn list_queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        let now = self.moment();
        let rows = self.call(Desk::Long, statement::LIST_QUEUES, &[(&now, Type::TIMESTAMPTZ)]).await?;
        rows.iter().map(queue).collect()
    }

    async fn set_queue(&self, request: SetQueue) -> Result<(), StoreError> {
        request.check()?;
        let ttl = i32::try_from(millis(request.lease_ttl)).unwrap_or(i32::MAX);
        // Zero takes it away, null leaves it.
        let quota = request.quota.map(|quota| quota.pending().map_or(0, u32::cast_signed));
        let params: [Param<'_>; 4] = [
            (&request.queue.as_str(), Type::TEXT),
            (&ttl, Type::INT4),
            (&request.fair, Type::BOOL),
            (&quota, Type::INT4),
        ];
        match self.try_call(Desk::Short, SET_QUEUE, &params).await {
            // An enqueue has entered the queue at the same moment: its row is there now.
            Err(Failed::Said(error)) if is_taken(&error) => self.call(Desk::Short, SET_QUEUE, &params).await?,
            answer => answer?,
        };
        Ok(())
    }

    async fn pause_queue(&self, request: PauseQueue) -> Result<(), StoreError> {
        request.word.check()?;
        let now = self.moment();
        let params: [Param<'_>; 5] = [
            (&request.queue.as_str(), Type::TEXT),
            (&request.paused, Type::BOOL),
            (&request.word.actor, Type::TEXT),
            (&request.word.reason, Type::TEXT),
            (&now, Type::TIMESTAMPTZ),
        ];
        self.call(Desk::Short, PAUSE_QUEUE, &params).await?;
        Ok(())
    }

    async fn prune_jobs(&self, request: PruneJobs) -> Result<u64, StoreError> {
        request.check()?;
        let older_ms = millis(request.older_than.min(tenure_core::duration::DURATION_MAX));
        let (limit, now) = (i32::try_from(request.limit).unwrap_or(i32::MAX), self.moment());
        let params: [Param<'_>; 4] =
            [(&older_ms, Type::INT8), (&request.dead_too, Type::BOOL), (&limit, Type::INT4), (&now, Type::TIMESTAMPTZ)];
        let mut pruned = 0;
        for _ in 0..PRUNE_WINDOWS_MAX {
            let rows = self.call(Desk::Long, PRUNE_JOBS, &params).await?;
            let gone: i32 = rows.first().map_or(Ok(0), |row| get(row, "gone"))?;
            pruned += u64::try_from(gone).unwrap_or(0);
            if pruned >= u64::from(request.limit) || self.call(Desk::Long, PRUNE_GOES_ON, &[]).await?.is_empty() {
                break;
            }
        }
        Ok(pruned)
    }

    async fn find_violations(&self, limit: u32) -> Result<Vec<Violation>, StoreError> {
        let rows = self.call(Desk::Long, FIND_VIOLATIONS, &[(&i64::from(limit), Type::INT8)]).await?;
        rows.iter()
            .map(|row| {
                Ok(Violation {
                    invariant: get(row, "invariant")?,
                    job: get::<Option<Uuid>>(row, "job")?.map(JobId::from_uuid),
                    detail: get(row, "detail")?,
                })
            })
            .collect()
    }
}

fn queue(row: &Row) -> Result<QueueRecord, StoreError> {
    Ok(QueueRecord {
        name: named(row, "name")?,
        paused: get(row, "paused")?,
        fair: get(row, "fair")?,
        quota: get::<Option<i32>>(row, "quota")?.map(i32::cast_unsigned),
        lease_ttl: Duration::from_millis(u64::try_from(get::<i32>(row, "lease_ttl_ms")?).unwrap_or(0)),
        due: tally(row, "due")?,
        scheduled: tally(row, "scheduled")?,
        waiting: tally(row, "waiting")?,
        retryable: tally(row, "retryable")?,
        running: tally(row, "running")?,
        oldest_due: time_maybe(row, "oldest_due")?,
    })
}

fn tally(row: &Row, column: &str) -> Result<u64, StoreError> {
    get::<i64>(row, column).map(|n| u64::try_from(n).unwrap_or(0))
}
