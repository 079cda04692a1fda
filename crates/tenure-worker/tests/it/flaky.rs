//! A store that fails at will: replies lost after the deed, calls lost before it, endings that cannot be stored.

mod jobs;
mod schedule;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::gate::{GateRule, Pattern};
use tenure_core::name::{GateName, QueueName, WorkerName};
use tenure_core::{How, Invalid, JobId, LeaseNo, Timestamp, WorkerId};
use tenure_sqlite::SqliteStore;
use tenure_store::cache::{Cached, PutCached};
use tenure_store::gate::{AcquireTokens, Acquired, GateFilter, GateRecord, OperateGate, PatchRule, SetRule};
use tenure_store::lease::{ClaimJobs, Claimed, EndJob, EndJobs, Ended, Ending, Reclaimed, RenewLeases, Renewed};
use tenure_store::operate::{PauseQueue, PruneJobs, SetQueue};
use tenure_store::record::{EndingCount, Migration, QueueRecord, Violation};
use tenure_store::schedule::ScheduleId;
use tenure_store::usage::{UsageFilter, UsageTotal};
use tenure_store::worker::{Beat, Order, OrderWorker, WorkerRecord};
use tenure_store::{AdminStore, CacheStore, GateStore, IntoStore, LeaseStore, Store, StoreError, WakeStore};

/// What goes wrong with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Fault {
    /// It happens, and nobody hears of it.
    ReplyLost,
    /// It does not happen.
    LostBefore,
    /// It is refused, because a result in it is [`POISON`].
    Refused,
    /// It does not happen, and is never answered.
    Hang,
    /// It does not happen, and never will.
    Corrupt,
    /// It does not happen, because somebody is about to migrate.
    Schema,
    /// The store has a bug.
    Panic,
}

/// A result that this store does not take.
pub(crate) const POISON: &str = "poison";

/// A result whose attempt somebody's open transaction has, it says.
pub(crate) const BUSY: &str = "busy";

/// The verbs that can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Verb {
    Claim,
    Renew,
    End,
    /// A report of nothing but successes.
    Succeed,
    FindEndings,
    ReleaseUnknown,
    Wait,
    Fire,
}

/// A store in front of another. Clones share their faults.
#[derive(Clone)]
pub(crate) struct Flaky {
    inner: SqliteStore,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Default)]
struct Plan {
    /// How often each verb is still to fail, and how.
    faults: HashMap<Verb, (Fault, u32)>,
    hits: HashMap<(Verb, Fault), u32>,
    /// How many jobs each report carried.
    reports: Vec<usize>,
    /// How many jobs each claim asked for.
    claims: Vec<u32>,
    /// The schedules of each batch of fires.
    fires: Vec<Vec<ScheduleId>>,
    /// How often somebody said that it is idle.
    pushes: u32,
}

impl Flaky {
    pub(crate) fn new(inner: SqliteStore) -> Self {
        Self { inner, plan: Arc::default() }
    }

    pub(crate) fn fail(&self, verb: Verb, fault: Fault, times: u32) {
        self.plan.lock().unwrap().faults.insert(verb, (fault, times));
    }

    /// How often a fault really hit.
    pub(crate) fn hits(&self, verb: Verb, fault: Fault) -> u32 {
        self.plan.lock().unwrap().hits.get(&(verb, fault)).copied().unwrap_or(0)
    }

    pub(crate) fn reports(&self) -> Vec<usize> {
        self.plan.lock().unwrap().reports.clone()
    }

    pub(crate) fn fires(&self) -> Vec<Vec<ScheduleId>> {
        self.plan.lock().unwrap().fires.clone()
    }

    pub(crate) fn pushes(&self) -> u32 {
        self.plan.lock().unwrap().pushes
    }

    pub(crate) fn claims(&self) -> Vec<u32> {
        self.plan.lock().unwrap().claims.clone()
    }

    fn next(&self, verb: Verb) -> Option<Fault> {
        let mut plan = self.plan.lock().unwrap();
        let (fault, left) = plan.faults.get_mut(&verb)?;
        if *left == 0 {
            return None;
        }
        *left -= 1;
        let fault = *fault;
        *plan.hits.entry((verb, fault)).or_default() += 1;
        Some(fault)
    }

    async fn through<T>(&self, verb: Verb, call: impl Future<Output = Result<T, StoreError>>) -> Result<T, StoreError> {
        match self.next(verb) {
            None => call.await,
            Some(Fault::LostBefore) => Err(StoreError::Unavailable("lost before".into(), None)),
            Some(Fault::Hang) => std::future::pending().await,
            Some(Fault::Schema) => Err(StoreError::Schema("the schema is missing or too old".into())),
            Some(Fault::Panic) => panic!("a bug in the store"),
            Some(Fault::Corrupt) => Err(StoreError::Corrupt("it makes no sense".into())),
            Some(Fault::ReplyLost | Fault::Refused) => {
                call.await?;
                Err(StoreError::Unavailable("the reply was lost".into(), None))
            }
        }
    }
}

impl IntoStore for Flaky {
    fn into_store(self) -> Arc<dyn Store> {
        Arc::new(self)
    }
}

#[async_trait]
impl LeaseStore for Flaky {
    async fn claim_jobs(&self, request: ClaimJobs) -> Result<Option<Claimed>, StoreError> {
        self.plan.lock().unwrap().claims.push(request.limit);
        self.through(Verb::Claim, self.inner.claim_jobs(request)).await
    }

    async fn renew_leases(&self, request: RenewLeases) -> Result<Renewed, StoreError> {
        self.through(Verb::Renew, self.inner.renew_leases(request)).await
    }

    async fn end_jobs(&self, request: EndJobs) -> Result<Vec<Ended>, StoreError> {
        self.plan.lock().unwrap().reports.push(request.jobs.len());
        let poison = |end: &EndJob| matches!(&end.ending, Ending::Succeeded { result: Some(it), .. } if it.as_str().contains(POISON));
        if request.jobs.iter().any(poison) {
            *self.plan.lock().unwrap().hits.entry((Verb::End, Fault::Refused)).or_default() += 1;
            return Err(Invalid::new("result", POISON, "it cannot be stored").into());
        }
        let busy = |end: &EndJob| matches!(&end.ending, Ending::Succeeded { result: Some(it), .. } if it.as_str().contains(BUSY));
        if request.jobs.iter().any(busy) {
            return Ok(vec![Ended::Busy; request.jobs.len()]);
        }
        let succeed = request.jobs.iter().all(|end| end.ending.how() == How::Succeeded);
        let call = self.through(Verb::End, self.inner.end_jobs(request));
        if succeed { self.through(Verb::Succeed, call).await } else { call.await }
    }

    async fn find_endings(&self, w: WorkerId, l: LeaseNo, jobs: Vec<JobId>) -> Result<Vec<Option<How>>, StoreError> {
        self.through(Verb::FindEndings, self.inner.find_endings(w, l, jobs)).await
    }

    async fn find_cancel_requests(&self, jobs: Vec<JobId>) -> Result<Vec<JobId>, StoreError> {
        self.inner.find_cancel_requests(jobs).await
    }

    async fn drop_leases(&self, worker: WorkerId, leases: Vec<LeaseNo>) -> Result<Vec<LeaseNo>, StoreError> {
        self.inner.drop_leases(worker, leases).await
    }

    async fn find_leases(
        &self,
        worker: WorkerId,
        leases: Vec<LeaseNo>,
    ) -> Result<Vec<(LeaseNo, Duration)>, StoreError> {
        self.inner.find_leases(worker, leases).await
    }

    async fn newest_lease(&self) -> Result<LeaseNo, StoreError> {
        self.inner.newest_lease().await
    }

    async fn release_unknown(
        &self,
        worker: WorkerId,
        known: Vec<LeaseNo>,
        newest: LeaseNo,
    ) -> Result<Vec<JobId>, StoreError> {
        self.through(Verb::ReleaseUnknown, self.inner.release_unknown(worker, known, newest)).await
    }

    async fn reclaim_jobs(&self, by: Option<WorkerId>, leases_max: u32) -> Result<Vec<Reclaimed>, StoreError> {
        self.inner.reclaim_jobs(by, leases_max).await
    }
}

#[async_trait]
impl GateStore for Flaky {
    async fn set_rule(&self, request: SetRule) -> Result<(), StoreError> {
        self.inner.set_rule(request).await
    }

    async fn patch_rule(&self, request: PatchRule) -> Result<GateRule, StoreError> {
        self.inner.patch_rule(request).await
    }

    async fn list_rules(&self, limit: u32) -> Result<Vec<(Pattern, GateRule)>, StoreError> {
        self.inner.list_rules(limit).await
    }

    async fn list_gates(&self, filter: &GateFilter) -> Result<Vec<GateRecord>, StoreError> {
        self.inner.list_gates(filter).await
    }

    async fn show_gate(&self, gate: &GateName) -> Result<GateRecord, StoreError> {
        self.inner.show_gate(gate).await
    }

    async fn operate_gate(&self, request: OperateGate) -> Result<(), StoreError> {
        self.inner.operate_gate(request).await
    }

    async fn acquire_tokens(&self, request: AcquireTokens) -> Result<Acquired, StoreError> {
        self.inner.acquire_tokens(request).await
    }

    async fn repair_gates(&self) -> Result<u64, StoreError> {
        self.inner.repair_gates().await
    }

    fn opens_in(&self, queue: &QueueName) -> Option<Duration> {
        self.inner.opens_in(queue)
    }
}

tenure_store::forward_runs!(Flaky, inner);
tenure_store::forward_access!(Flaky, inner);
tenure_store::forward_webhooks!(Flaky, inner);
tenure_store::forward_operations!(Flaky, inner);
tenure_store::forward_rollups!(Flaky, inner);

#[async_trait]
impl CacheStore for Flaky {
    async fn find_cached(&self, key: &str) -> Result<Option<Cached>, StoreError> {
        self.inner.find_cached(key).await
    }

    async fn put_cached(&self, request: PutCached) -> Result<(), StoreError> {
        self.inner.put_cached(request).await
    }

    async fn forget_cached(&self, key: &str) -> Result<(), StoreError> {
        self.inner.forget_cached(key).await
    }

    async fn prune_cache(&self, most: u64) -> Result<u64, StoreError> {
        self.inner.prune_cache(most).await
    }
}

#[async_trait]
impl AdminStore for Flaky {
    async fn migrate(&self) -> Result<Vec<Migration>, StoreError> {
        self.inner.migrate().await
    }

    async fn list_migrations(&self) -> Result<Vec<Migration>, StoreError> {
        self.inner.list_migrations().await
    }

    async fn register_worker(&self, name: &WorkerName) -> Result<WorkerId, StoreError> {
        self.inner.register_worker(name).await
    }

    async fn beat_worker(&self, beat: Beat) -> Result<Order, StoreError> {
        self.inner.beat_worker(beat).await
    }

    async fn order_worker(&self, request: OrderWorker) -> Result<(), StoreError> {
        self.inner.order_worker(request).await
    }

    async fn list_workers(&self, limit: u32) -> Result<Vec<WorkerRecord>, StoreError> {
        self.inner.list_workers(limit).await
    }

    async fn show_worker(&self, worker: WorkerId) -> Result<WorkerRecord, StoreError> {
        self.inner.show_worker(worker).await
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        self.inner.now().await
    }

    async fn separate(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(self.clone()))
    }

    async fn sum_usage(&self, filter: &UsageFilter) -> Result<Vec<UsageTotal>, StoreError> {
        self.inner.sum_usage(filter).await
    }

    async fn fold_usage(&self) -> Result<u64, StoreError> {
        self.inner.fold_usage().await
    }

    async fn count_endings(&self, within: Duration) -> Result<Vec<EndingCount>, StoreError> {
        self.inner.count_endings(within).await
    }

    async fn has_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        self.inner.has_queue(queue).await
    }

    async fn list_queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        self.inner.list_queues().await
    }

    async fn set_queue(&self, request: SetQueue) -> Result<(), StoreError> {
        self.inner.set_queue(request).await
    }

    async fn pause_queue(&self, request: PauseQueue) -> Result<(), StoreError> {
        self.inner.pause_queue(request).await
    }

    async fn prune_jobs(&self, request: PruneJobs) -> Result<u64, StoreError> {
        self.inner.prune_jobs(request).await
    }

    async fn find_violations(&self, limit: u32) -> Result<Vec<Violation>, StoreError> {
        self.inner.find_violations(limit).await
    }
}

#[async_trait]
impl WakeStore for Flaky {
    async fn push_idle(&self, queue: &QueueName) -> Result<(), StoreError> {
        self.plan.lock().unwrap().pushes += 1;
        self.inner.push_idle(queue).await
    }

    async fn wait_for_work(&self, queues: &[QueueName]) -> Result<(), StoreError> {
        self.through(Verb::Wait, self.inner.wait_for_work(queues)).await
    }
}
