//! The port of the store over the network: the worker's own calls, each with its fate, each in the books.

mod lease;
mod schedule;

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::gate::{GateRule, Pattern};
use tenure_core::journal::JournalRow;
use tenure_core::name::{GateName, QueueName, WorkerName};
use tenure_core::seal::Seal;
use tenure_core::{JobId, NewJob, Timestamp, WorkerId};
use tenure_store::cache::{Cached, PutCached};
use tenure_store::enqueue::Enqueued;
use tenure_store::gate::{AcquireTokens, Acquired, GateFilter, GateRecord, OperateGate, PatchRule, SetRule};
use tenure_store::journal::{JournalFilter, JournalFound, JournalPage, JournalTraces};
use tenure_store::operate::{CancelJob, Canceled, HastenJob, OpenJob, PauseQueue, PruneJobs, RequeueJob, SetQueue};
use tenure_store::record::{
    EndingCount, JobFilter, JobRecord, JobSummary, JobsFound, Migration, QueueRecord, Sight, Violation,
};
use tenure_store::usage::{UsageFilter, UsageTotal};
use tenure_store::worker::{Beat, Order, OrderWorker, WorkerRecord};
use tenure_store::{AdminStore, CacheStore, GateStore, JobStore, JournalStore, Store, StoreError, WakeStore};

use super::net::{Twice, Verb, Wire};
use super::world::World;

/// How an answer looks that nobody reads.
pub(crate) fn ok<T>(_: &World, _: &T) -> String {
    "ok".into()
}

#[async_trait]
impl JobStore for Wire {
    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError> {
        let said = self.world.ledger.names_of(jobs.iter().map(|job| job.id));
        let tell = |world: &World, stored: &Vec<Enqueued>| {
            let one = |it: &Enqueued| match it {
                Enqueued::Created(_) => "created".to_owned(),
                Enqueued::Found { job, .. } => format!("found {}", world.ledger.name_of(*job)),
            };
            stored.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        self.send(Verb("enqueue", Twice::Later), said, tell, move |site| {
            let jobs = jobs.clone();
            Box::pin(async move { site.store.enqueue_jobs(jobs).await })
        })
        .await
    }

    async fn show_job(&self, sight: &Sight, job: JobId) -> Result<JobRecord, StoreError> {
        let (sight, said) = (sight.clone(), self.world.ledger.name_of(job));
        let tell = |_: &World, job: &JobRecord| job.summary.state.as_str().to_owned();
        self.send(Verb("show", Twice::AtOnce), said, tell, move |site| {
            let sight = sight.clone();
            Box::pin(async move { site.store.show_job(&sight, job).await })
        })
        .await
    }

    async fn list_jobs(&self, filter: &JobFilter) -> Result<Vec<JobSummary>, StoreError> {
        self.store.list_jobs(filter).await
    }

    async fn search_jobs(&self, filter: &JobFilter, text: &str) -> Result<JobsFound, StoreError> {
        self.store.search_jobs(filter, text).await
    }

    async fn cancel_job(&self, request: CancelJob) -> Result<Canceled, StoreError> {
        let how = if request.force { "by force" } else { "politely" };
        let said = format!("{} {how}", self.world.ledger.name_of(request.job));
        let tell = |_: &World, canceled: &Canceled| format!("{canceled:?}");
        self.send(Verb("cancel", Twice::Later), said, tell, move |site| {
            let request = request.clone();
            Box::pin(async move {
                let (job, force) = (request.job, request.force);
                let canceled = site.store.cancel_job(request).await?;
                if force && canceled == Canceled::Now {
                    site.world.ledger.forced(job);
                    site.world.count("forced_cancels");
                }
                Ok(canceled)
            })
        })
        .await
    }

    async fn requeue_job(&self, request: RequeueJob) -> Result<(), StoreError> {
        let said = self.world.ledger.name_of(request.job);
        self.send(Verb("requeue", Twice::Later), said, ok, move |site| {
            let request = request.clone();
            Box::pin(async move {
                site.store.requeue_job(request).await?;
                site.world.count("requeued");
                Ok(())
            })
        })
        .await
    }

    async fn open_job(&self, request: OpenJob) -> Result<(), StoreError> {
        self.store.open_job(request).await
    }

    async fn hasten_job(&self, request: HastenJob) -> Result<bool, StoreError> {
        self.store.hasten_job(request).await
    }
}

tenure_store::forward_runs!(Wire, store);
tenure_store::forward_access!(Wire, store);
tenure_store::forward_webhooks!(Wire, store);
tenure_store::forward_operations!(Wire, store);
tenure_store::forward_rollups!(Wire, store);

#[async_trait]
impl CacheStore for Wire {
    async fn find_cached(&self, key: &str) -> Result<Option<Cached>, StoreError> {
        self.store.find_cached(key).await
    }

    async fn put_cached(&self, request: PutCached) -> Result<(), StoreError> {
        self.store.put_cached(request).await
    }

    async fn forget_cached(&self, key: &str) -> Result<(), StoreError> {
        self.store.forget_cached(key).await
    }

    async fn prune_cache(&self, most: u64) -> Result<u64, StoreError> {
        self.store.prune_cache(most).await
    }
}

#[async_trait]
impl JournalStore for Wire {
    async fn seal_journal(&self) -> Result<Option<Seal>, StoreError> {
        let tell =
            |_: &World, seal: &Option<Seal>| seal.as_ref().map_or("nothing".into(), |seal| format!("{}", seal.no));
        self.send(Verb("seal", Twice::Later), String::new(), tell, |site| {
            Box::pin(async move { site.store.seal_journal().await })
        })
        .await
    }

    async fn list_seals(&self, after: i64, limit: u32) -> Result<Vec<Seal>, StoreError> {
        self.store.list_seals(after, limit).await
    }

    async fn read_journal(&self, page: JournalPage) -> Result<Vec<JournalRow>, StoreError> {
        self.store.read_journal(page).await
    }

    async fn list_journal_ids(&self, from: i64, limit: u32) -> Result<Vec<i64>, StoreError> {
        self.store.list_journal_ids(from, limit).await
    }

    async fn journal_traces(&self) -> Result<JournalTraces, StoreError> {
        self.store.journal_traces().await
    }

    async fn list_job_rows(&self, sight: &Sight, job: JobId) -> Result<Vec<JournalRow>, StoreError> {
        self.store.list_job_rows(sight, job).await
    }

    async fn list_journal(&self, filter: &JournalFilter) -> Result<JournalFound, StoreError> {
        self.store.list_journal(filter).await
    }
}

#[async_trait]
impl AdminStore for Wire {
    async fn migrate(&self) -> Result<Vec<Migration>, StoreError> {
        self.store.migrate().await
    }

    async fn list_migrations(&self) -> Result<Vec<Migration>, StoreError> {
        self.store.list_migrations().await
    }

    async fn register_worker(&self, name: &WorkerName) -> Result<WorkerId, StoreError> {
        let name = name.clone();
        let tell = |_: &World, worker: &WorkerId| format!("worker {worker}");
        self.send(Verb("register", Twice::Later), name.to_string(), tell, move |site| {
            let name = name.clone();
            Box::pin(async move { site.store.register_worker(&name).await })
        })
        .await
    }

    async fn order_worker(&self, request: OrderWorker) -> Result<(), StoreError> {
        self.store.order_worker(request).await
    }

    async fn beat_worker(&self, beat: Beat) -> Result<Order, StoreError> {
        self.send(Verb("beat", Twice::Later), String::new(), ok, move |site| {
            let beat = beat.clone();
            Box::pin(async move { site.store.beat_worker(beat).await })
        })
        .await
    }

    async fn show_worker(&self, worker: WorkerId) -> Result<WorkerRecord, StoreError> {
        self.store.show_worker(worker).await
    }

    async fn list_workers(&self, limit: u32) -> Result<Vec<WorkerRecord>, StoreError> {
        self.store.list_workers(limit).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.send(Verb("now", Twice::AtOnce), String::new(), ok, |site| Box::pin(async move { site.store.now().await }))
            .await
    }

    async fn separate(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(self.clone()))
    }

    async fn sum_usage(&self, filter: &UsageFilter) -> Result<Vec<UsageTotal>, StoreError> {
        self.store.sum_usage(filter).await
    }

    async fn fold_usage(&self) -> Result<u64, StoreError> {
        self.store.fold_usage().await
    }

    async fn count_endings(&self, within: Duration) -> Result<Vec<EndingCount>, StoreError> {
        self.store.count_endings(within).await
    }

    async fn has_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        self.store.has_queue(queue).await
    }

    async fn list_queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        self.send(Verb("list_queues", Twice::AtOnce), String::new(), ok, |site| {
            Box::pin(async move { site.store.list_queues().await })
        })
        .await
    }

    async fn set_queue(&self, request: SetQueue) -> Result<(), StoreError> {
        self.store.set_queue(request).await
    }

    async fn pause_queue(&self, request: PauseQueue) -> Result<(), StoreError> {
        let said = format!("{} {}", request.queue, request.paused);
        self.send(Verb("pause", Twice::AtOnce), said, ok, move |site| {
            let request = request.clone();
            Box::pin(async move { site.store.pause_queue(request).await })
        })
        .await
    }

    async fn prune_jobs(&self, request: PruneJobs) -> Result<u64, StoreError> {
        let tell = |_: &World, pruned: &u64| pruned.to_string();
        self.send(Verb("prune", Twice::Later), String::new(), tell, move |site| {
            let request = request.clone();
            Box::pin(async move {
                let pruned = site.store.prune_jobs(request).await?;
                site.world.add("pruned", pruned as usize);
                Ok(pruned)
            })
        })
        .await
    }

    async fn find_violations(&self, limit: u32) -> Result<Vec<Violation>, StoreError> {
        self.store.find_violations(limit).await
    }
}

/// Gates are governed by operators, and operators are near the store: only tokens are asked for over the network.
#[async_trait]
impl GateStore for Wire {
    async fn set_rule(&self, request: SetRule) -> Result<(), StoreError> {
        self.store.set_rule(request).await
    }

    async fn patch_rule(&self, request: PatchRule) -> Result<GateRule, StoreError> {
        self.store.patch_rule(request).await
    }

    async fn list_rules(&self, limit: u32) -> Result<Vec<(Pattern, GateRule)>, StoreError> {
        self.store.list_rules(limit).await
    }

    async fn list_gates(&self, filter: &GateFilter) -> Result<Vec<GateRecord>, StoreError> {
        self.store.list_gates(filter).await
    }

    async fn show_gate(&self, gate: &GateName) -> Result<GateRecord, StoreError> {
        self.store.show_gate(gate).await
    }

    async fn operate_gate(&self, request: OperateGate) -> Result<(), StoreError> {
        self.store.operate_gate(request).await
    }

    async fn acquire_tokens(&self, request: AcquireTokens) -> Result<Acquired, StoreError> {
        let said = format!("{} tokens", request.tokens);
        self.send(Verb("acquire", Twice::AtOnce), said, ok, move |site| {
            let request = request.clone();
            Box::pin(async move { site.store.acquire_tokens(request).await })
        })
        .await
    }

    async fn repair_gates(&self) -> Result<u64, StoreError> {
        self.store.repair_gates().await
    }

    fn opens_in(&self, queue: &QueueName) -> Option<Duration> {
        self.store.opens_in(queue)
    }
}

#[async_trait]
impl WakeStore for Wire {
    async fn push_idle(&self, queue: &QueueName) -> Result<(), StoreError> {
        let queue = queue.clone();
        self.send(Verb("push_idle", Twice::AtOnce), queue.to_string(), ok, move |site| {
            let queue = queue.clone();
            Box::pin(async move { site.store.push_idle(&queue).await })
        })
        .await
    }

    /// Wake-ups are hints. Some never come, some connections break, and polling has to do.
    async fn wait_for_work(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        let (is_deaf, breaks_in) = match self.world.is_healed() {
            true => (false, None),
            false => self.world.draw(|rng| (rng.chance(150), rng.chance(100).then(|| rng.millis(0, 3_000)))),
        };
        if let Some(delay) = breaks_in {
            tokio::time::sleep(delay).await;
            return Err(StoreError::Unavailable("the connection broke".into(), None));
        }
        if is_deaf {
            return std::future::pending().await;
        }
        let mut wait: Pin<_> = pin!(self.store.wait_for_work(queues));
        // It looks into the store whenever it is polled, and the store's clock only moves when told to.
        std::future::poll_fn(|cx| -> Poll<Result<(), StoreError>> {
            self.world.clock.sync();
            wait.as_mut().poll(cx)
        })
        .await
    }
}
