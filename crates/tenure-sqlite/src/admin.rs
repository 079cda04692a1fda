//! The store itself, its queues and its workers: every verb handed to its file.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::name::{QueueName, WorkerName};
use tenure_core::{Timestamp, WorkerId};
use tenure_store::operate::{PauseQueue, PruneJobs, SetQueue};
use tenure_store::record::{EndingCount, Migration, QueueRecord, Violation};
use tenure_store::usage::{UsageFilter, UsageTotal};
use tenure_store::worker::{Beat, Order, OrderWorker, WorkerRecord};
use tenure_store::{AdminStore, Store, StoreError};

use crate::lane::Urgency;
use crate::store::SqliteStore;
use crate::{home, migrate, prune, queue, usage, violations, worker};

impl SqliteStore {
    /// Makes a copied or restored file safe to work with: the numbers of leases, journal rows and workers leap over all that
    /// its original could have drawn since, so that a report of before is refused. Writes `rehomed` to the journal.
    pub async fn rehome(&self) -> Result<(), StoreError> {
        self.write(Urgency::Verb, home::leap_numbers).await
    }
}

#[async_trait]
impl AdminStore for SqliteStore {
    async fn migrate(&self) -> Result<Vec<Migration>, StoreError> {
        let applied =
            self.engine.write(Urgency::Verb, true, |tx| migrate::migrate(tx).map_err(StoreError::from)).await?;
        self.engine.shared.set_migrated();
        Ok(applied)
    }

    async fn list_migrations(&self) -> Result<Vec<Migration>, StoreError> {
        self.engine.read(migrate::list_migrations).await
    }

    async fn register_worker(&self, name: &WorkerName) -> Result<WorkerId, StoreError> {
        let name = name.clone();
        self.write(Urgency::Verb, move |tx| worker::register_worker(tx, &name)).await
    }

    async fn order_worker(&self, request: OrderWorker) -> Result<(), StoreError> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| worker::order_worker(tx, &request)).await
    }

    async fn beat_worker(&self, beat: Beat) -> Result<Order, StoreError> {
        beat.check()?;
        self.write(Urgency::Verb, move |tx| worker::beat_worker(tx, &beat)).await
    }

    async fn show_worker(&self, worker: WorkerId) -> Result<WorkerRecord, StoreError> {
        let found = self.read(move |tx| worker::list_workers(tx, Some(worker), 1)).await?.pop();
        found.ok_or_else(|| StoreError::NotFound(format!("worker {worker}")))
    }

    async fn list_workers(&self, limit: u32) -> Result<Vec<WorkerRecord>, StoreError> {
        WorkerRecord::check_limit(limit)?;
        self.read(move |tx| worker::list_workers(tx, None, limit)).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.engine.shared.now())
    }

    async fn separate(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(self.clone()))
    }

    async fn sum_usage(&self, filter: &UsageFilter) -> Result<Vec<UsageTotal>, StoreError> {
        filter.check()?;
        let filter = filter.clone();
        self.read(move |tx| usage::sum_usage(tx, &filter)).await
    }

    async fn fold_usage(&self) -> Result<u64, StoreError> {
        // Every sum is up to date.
        Ok(0)
    }

    async fn count_endings(&self, within: Duration) -> Result<Vec<EndingCount>, StoreError> {
        EndingCount::check_within(within)?;
        self.read(move |tx| queue::count_endings(tx, within)).await
    }

    async fn has_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        let queue = queue.clone();
        self.read(move |tx| Ok(queue::find(tx, &queue)?.is_some())).await
    }

    async fn list_queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        self.read(queue::list_queues).await
    }

    async fn set_queue(&self, request: SetQueue) -> Result<(), StoreError> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| queue::set_queue(tx, &request)).await
    }

    async fn pause_queue(&self, request: PauseQueue) -> Result<(), StoreError> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| queue::pause_queue(tx, &request)).await
    }

    async fn prune_jobs(&self, request: PruneJobs) -> Result<u64, StoreError> {
        request.check()?;
        self.write(Urgency::Bulk, move |tx| prune::prune_jobs(tx, &request)).await
    }

    async fn find_violations(&self, limit: u32) -> Result<Vec<Violation>, StoreError> {
        self.read(move |tx| violations::find_violations(tx, limit)).await
    }
}
