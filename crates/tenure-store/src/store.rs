//! Every verb a store has, by noun.
//!
//! Two rules hold for all of them. A verb is one transaction: it happened whole or not at all. And every verb may be
//! sent again after a lost reply: the second answer says what the first one did.

mod access;
mod cached;
mod journal;
mod operations;
mod rollups;
mod webhooks;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::gate::{GateRule, Pattern};
use tenure_core::name::{GateName, QueueName, ScheduleName, TenantName, WorkerName};
use tenure_core::{How, JobId, LeaseNo, NewJob, RunId, Timestamp, WorkerId};

use crate::enqueue::Enqueued;
use crate::error::StoreError;
use crate::gate::{AcquireTokens, Acquired, GateFilter, GateRecord, OperateGate, PatchRule, SetRule};
use crate::lease::{ClaimJobs, Claimed, EndJobs, Ended, Reclaimed, RenewLeases, Renewed};
use crate::operate::{CancelJob, Canceled, HastenJob, OpenJob, PauseQueue, PruneJobs, RequeueJob, SetQueue};
use crate::record::{
    EndingCount, JobFilter, JobRecord, JobSummary, JobsFound, Migration, QueueRecord, SecondWall, Sight, Violation,
};
use crate::run::{
    AddToRun, Added, AdvancePage, CancelRun, FoldedRuns, NewRun, OperatePartition, PageFound, PartitionFilter,
    PartitionRecord, RunCreated, RunFilter, RunRecord, SealRun,
};
use crate::schedule::{
    DueSchedules, FireRecord, FireResult, FireSchedule, Fired, PauseSchedule, RemoveSchedule, ScheduleFilter,
    ScheduleRecord, ScheduleSet, SetSchedule,
};
use crate::usage::{UsageFilter, UsageTotal};
use crate::worker::{Beat, Order, OrderWorker, WorkerRecord};

pub use access::AccessStore;
pub use cached::CacheStore;
pub use journal::JournalStore;
pub use operations::OperationStore;
pub use rollups::RollupStore;
pub use webhooks::WebhookStore;

/// A store: all nouns together.
pub trait Store:
    JobStore
    + LeaseStore
    + GateStore
    + ScheduleStore
    + RunStore
    + CacheStore
    + AccessStore
    + WebhookStore
    + OperationStore
    + RollupStore
    + JournalStore
    + AdminStore
    + WakeStore
{
}
impl<S> Store for S where
    S: JobStore
        + LeaseStore
        + GateStore
        + ScheduleStore
        + RunStore
        + CacheStore
        + AccessStore
        + WebhookStore
        + OperationStore
        + RollupStore
        + JournalStore
        + AdminStore
        + WakeStore
{
}

/// Producers and operators: jobs by their id.
#[async_trait]
pub trait JobStore: Send + Sync {
    /// Stores jobs, all or none. Answers in the order given: created, or found with the job that was there before.
    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError>;

    /// One job with its attempts. `NotFound` for an unknown id and for a job out of sight alike.
    async fn show_job(&self, sight: &Sight, job: JobId) -> Result<JobRecord, StoreError>;

    /// Jobs that match, newest first.
    async fn list_jobs(&self, filter: &JobFilter) -> Result<Vec<JobSummary>, StoreError>;

    /// Jobs that match and whose payload contains a text, newest first: its JSON as the store writes it, letters a to z in
    /// either case, no wildcards. Looks into at most [`SEARCHED_MAX`](crate::record::SEARCHED_MAX) jobs, and says where to
    /// go on.
    async fn search_jobs(&self, filter: &JobFilter, text: &str) -> Result<JobsFound, StoreError>;

    /// Ends a job nobody holds; asks the holder of a running one, or fences it with `force`.
    async fn cancel_job(&self, request: CancelJob) -> Result<Canceled, StoreError>;

    /// Revives a failed, dead or canceled job: attempts and losses start again. `Conflict` when it has not ended, when
    /// it succeeded, or when another job has taken its unique key meanwhile.
    async fn requeue_job(&self, request: RequeueJob) -> Result<(), StoreError>;

    /// Makes a waiting job due now. `Conflict` when it does not wait.
    async fn open_job(&self, request: OpenJob) -> Result<(), StoreError>;

    /// Makes a job due now that is delayed or waits for its next try, and opens one that waits; answers whether it was not
    /// due before. One that was is left alone, and not journaled. `Conflict` when it runs or has ended.
    async fn hasten_job(&self, request: HastenJob) -> Result<bool, StoreError>;
}

/// Workers: what they hold and how it ends.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// Takes due jobs of one queue under one new lease; `None` when there is nothing to do. Never more than asked.
    async fn claim_jobs(&self, request: ClaimJobs) -> Result<Option<Claimed>, StoreError>;

    /// Pushes the deadline of these leases out. A number missing in the reply is unknown, not lost: ask again.
    async fn renew_leases(&self, request: RenewLeases) -> Result<Renewed, StoreError>;

    /// Reports how jobs of one lease ended, each answered by itself, in the order given. What comes too late is answered
    /// `LeaseLost` and leaves a journal row `refused`, as long as there is such a job.
    async fn end_jobs(&self, request: EndJobs) -> Result<Vec<Ended>, StoreError>;

    /// The same for several leases, in one round trip where the store can: answers in the order of the requests. After an
    /// error some of them may have been written; a repeated report is answered as before.
    async fn end_leases(&self, requests: Vec<EndJobs>) -> Result<Vec<Vec<Ended>>, StoreError> {
        let mut answers = Vec::with_capacity(requests.len());
        for request in requests {
            answers.push(self.end_jobs(request).await?);
        }
        Ok(answers)
    }

    /// How jobs ended under one lease of this worker, in the order given; `None` where they have not (or nobody knows). A
    /// worker asks after a handler said that it completed its job inside a transaction of its own.
    async fn find_endings(
        &self,
        worker: WorkerId,
        lease: LeaseNo,
        jobs: Vec<JobId>,
    ) -> Result<Vec<Option<How>>, StoreError>;

    /// Which of these jobs somebody asked to cancel. Renewals say so too; this one is asked more often.
    async fn find_cancel_requests(&self, jobs: Vec<JobId>) -> Result<Vec<JobId>, StoreError>;

    /// Deletes those of these leases whose jobs have all ended; answers which are gone now. (`end_jobs` drops a lease by
    /// itself when one report ends all of it.)
    async fn drop_leases(&self, worker: WorkerId, leases: Vec<LeaseNo>) -> Result<Vec<LeaseNo>, StoreError>;

    /// Those of these leases that are there and this worker's, with the time each was claimed with: a renewal does not
    /// tell what is lost from what is busy.
    async fn find_leases(&self, worker: WorkerId, leases: Vec<LeaseNo>)
    -> Result<Vec<(LeaseNo, Duration)>, StoreError>;

    /// The highest number that was drawn so far, by anybody.
    async fn newest_lease(&self) -> Result<LeaseNo, StoreError>;

    /// Gives back, uncharged, what this worker holds under leases it does not know: the claims whose reply was lost. Only
    /// leases up to `newest`, asked for before: should this be applied late, what was claimed meanwhile is not meant.
    async fn release_unknown(
        &self,
        worker: WorkerId,
        known: Vec<LeaseNo>,
        newest: LeaseNo,
    ) -> Result<Vec<JobId>, StoreError>;

    /// Takes back what expired leases held, at most `leases_max` leases.
    async fn reclaim_jobs(&self, by: Option<WorkerId>, leases_max: u32) -> Result<Vec<Reclaimed>, StoreError>;
}

/// Gates: what shared resources let through.
#[async_trait]
pub trait GateStore: Send + Sync {
    /// Sets the rule of a gate, or of all whose name begins alike; or removes it.
    async fn set_rule(&self, request: SetRule) -> Result<(), StoreError>;

    /// Changes some parts of a rule in one transaction; answers the whole rule. What is not named stays.
    async fn patch_rule(&self, request: PatchRule) -> Result<GateRule, StoreError>;

    /// Every rule, by pattern, at most `limit`.
    async fn list_rules(&self, limit: u32) -> Result<Vec<(Pattern, GateRule)>, StoreError>;

    /// Gates that jobs have passed or somebody has touched, by name.
    async fn list_gates(&self, filter: &GateFilter) -> Result<Vec<GateRecord>, StoreError>;

    /// One gate. `NotFound` when no job has passed it, nobody has touched it and no rule is meant for it.
    async fn show_gate(&self, gate: &GateName) -> Result<GateRecord, StoreError>;

    /// Pauses, resumes, trips or resets a gate. A repetition changes nothing and is not journaled.
    async fn operate_gate(&self, request: OperateGate) -> Result<(), StoreError>;

    /// Reserves tokens for a job that is inside its gate and calls its resource again.
    async fn acquire_tokens(&self, request: AcquireTokens) -> Result<Acquired, StoreError>;

    /// Counts the permits of gates anew from live leases, and mends those that differ; answers how many did. It must be
    /// none: this is here to prove it.
    async fn repair_gates(&self) -> Result<u64, StoreError>;

    /// How long until a gate may open that a claim of this queue found closed; `None` when none was.
    fn opens_in(&self, queue: &QueueName) -> Option<Duration>;
}

/// Schedules: what asks for a job again and again.
#[async_trait]
pub trait ScheduleStore: Send + Sync {
    /// Makes a schedule or changes it. The same again changes nothing and is not journaled; a change of its timing begins
    /// now, a change of its job alone leaves its times as they are. One that is paused stays so.
    async fn set_schedule(&self, request: SetSchedule) -> Result<ScheduleSet, StoreError>;

    /// Removes a schedule and its fires; jobs stay. `NotFound` when there is none.
    async fn remove_schedule(&self, request: RemoveSchedule) -> Result<(), StoreError>;

    /// Pauses a schedule or resumes it. A repetition changes nothing and is not journaled.
    async fn pause_schedule(&self, request: PauseSchedule) -> Result<(), StoreError>;

    /// Schedules, by tenant and name.
    async fn list_schedules(&self, filter: &ScheduleFilter) -> Result<Vec<ScheduleRecord>, StoreError>;

    /// One schedule with its last fires, the newest first. `NotFound` when this tenant has none of this name.
    async fn show_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<(ScheduleRecord, Vec<FireRecord>), StoreError>;

    /// Due schedules, at most `limit`, 1..=1,000, in a fair order between tenants: the longest due schedule of every
    /// tenant first, then the second of every tenant, and so on. A paused schedule is never due.
    async fn due_schedules(&self, limit: u32) -> Result<DueSchedules, StoreError>;

    /// Moves schedules on and stores the jobs of their fires in one transaction, at most 1,000 schedules, each at most
    /// once. Answers in the order given. A fire is stored whole or not at all, and a fire that is refused (its queue is
    /// full, its payload is not accepted) leaves the others of the batch alone. A job is due at its fire time.
    async fn fire_schedules(&self, requests: Vec<FireSchedule>) -> Result<Vec<FireResult>, StoreError>;

    /// Fires one schedule by [`fire_schedules`](Self::fire_schedules).
    async fn fire_schedule(&self, request: FireSchedule) -> Result<Fired, StoreError> {
        let answer = self.fire_schedules(vec![request]).await?.pop();
        answer.unwrap_or_else(|| Err(StoreError::Corrupt("the store answered no fire".to_owned())))
    }
}

/// Runs: many jobs with one goal.
#[async_trait]
pub trait RunStore: Send + Sync {
    /// Creates a run with its first members, all or none.
    async fn create_run(&self, request: NewRun) -> Result<RunCreated, StoreError>;

    /// Adds members, all or none. `Conflict` when the run is sealed or has ended.
    async fn add_to_run(&self, request: AddToRun) -> Result<Added, StoreError>;

    /// Says that an open run has all its members. Waits for those that are being added. A repetition changes nothing.
    async fn seal_run(&self, request: SealRun) -> Result<(), StoreError>;

    /// Runs that match, newest first. What their jobs said last may not be counted yet.
    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, StoreError>;

    /// One run. `NotFound` for an unknown id and for a run out of sight alike.
    async fn show_run(&self, sight: &Sight, run: RunId) -> Result<RunRecord, StoreError>;

    /// Partitions that match, by run and name.
    async fn list_partitions(&self, filter: &PartitionFilter) -> Result<Vec<PartitionRecord>, StoreError>;

    /// Ends a run: no page goes on, and its jobs are canceled one after the other by [`fold_runs`](Self::fold_runs).
    /// Answers whether it was not canceled before; `Conflict` when it has succeeded.
    async fn cancel_run(&self, request: CancelRun) -> Result<bool, StoreError>;

    /// Lets a partition go on that has stopped, and its run with it. `Conflict` when it goes on by itself, or the run has
    /// succeeded or was canceled.
    async fn operate_partition(&self, request: OperatePartition) -> Result<(), StoreError>;

    /// Asked before the handler of a page begins: whether it is the page's turn. The first one starts partition and run.
    async fn begin_page(&self, job: JobId) -> Result<PageFound, StoreError>;

    /// Moves a partition's offset, stores its next page and completes this one, without a transaction of the user's: for
    /// pages whose rows are kept elsewhere. `OffsetMismatch` when it is another page's turn.
    async fn advance_page(&self, request: AdvancePage) -> Result<(), StoreError>;

    /// Counts what jobs said of their runs and does what follows, a bounded batch: consolidates are opened or canceled,
    /// what is left of an ended run is canceled, deadlines are met. Two at once: one does nothing.
    async fn fold_runs(&self) -> Result<FoldedRuns, StoreError>;
}

/// The store itself, its queues and its workers.
#[async_trait]
pub trait AdminStore: Send + Sync {
    /// Brings the schema up to this program's version; answers what was applied. Two at once: one waits.
    async fn migrate(&self) -> Result<Vec<Migration>, StoreError>;

    /// Every migration this program knows, and whether it is applied.
    async fn list_migrations(&self) -> Result<Vec<Migration>, StoreError>;

    /// Whether the database itself keeps tenants apart, as it was when the store was opened.
    fn second_wall(&self) -> SecondWall {
        SecondWall::None
    }

    /// Enters a worker process start into the registry; its number goes into leases and journal.
    async fn register_worker(&self, name: &WorkerName) -> Result<WorkerId, StoreError>;

    /// Writes down what a worker is and does now, the last word stands, and answers what it is told to do. `NotFound` for
    /// a number nobody was given.
    async fn beat_worker(&self, beat: Beat) -> Result<Order, StoreError>;

    /// Tells a worker what to do. A repetition changes nothing and is not journaled. `NotFound` for a number nobody was
    /// given.
    async fn order_worker(&self, request: OrderWorker) -> Result<(), StoreError>;

    /// Workers, last seen first, at most `limit`, 1..=1,000. Those that never beat come last, the newest first.
    async fn list_workers(&self, limit: u32) -> Result<Vec<WorkerRecord>, StoreError>;

    /// One worker. `NotFound` for a number nobody was given.
    async fn show_worker(&self, worker: WorkerId) -> Result<WorkerRecord, StoreError>;

    /// The store's clock.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// The same store over connections of its own, opened by the calling runtime: however busy the users of this handle
    /// are, they do not delay that one's verbs. An embedded store, which lets renewals go first, answers itself.
    async fn separate(&self) -> Result<Arc<dyn Store>, StoreError>;

    /// How many attempts ended how in the last `within`, at most a week, in the order of queue, kind and ending.
    async fn count_endings(&self, within: Duration) -> Result<Vec<EndingCount>, StoreError>;

    /// What handlers said that they used, summed by day, tenant, kind and name; the newest day first.
    async fn sum_usage(&self, filter: &UsageFilter) -> Result<Vec<UsageTotal>, StoreError>;

    /// Adds up what was reported since the last time, a bounded batch; answers how much. Sums are right without it: it
    /// keeps them cheap.
    async fn fold_usage(&self) -> Result<u64, StoreError>;

    /// Whether there is such a queue.
    async fn has_queue(&self, queue: &QueueName) -> Result<bool, StoreError>;

    /// Queues with their counts, by name.
    async fn list_queues(&self) -> Result<Vec<QueueRecord>, StoreError>;

    /// Creates a queue or changes its settings.
    async fn set_queue(&self, request: SetQueue) -> Result<(), StoreError>;

    /// Stops or resumes claims of a queue; running jobs go on. An unknown queue is `NotFound`: an operator's
    /// typing error must not look like a pause. Jobs and [`set_queue`](Self::set_queue) make queues.
    async fn pause_queue(&self, request: PauseQueue) -> Result<(), StoreError>;

    /// Deletes jobs that ended long ago, a bounded batch, and frees keys whose window is over; answers how many jobs. A call
    /// looks at a bounded number of attempts, the next one goes on there. Fewer than the limit: that is all for now, or
    /// another session prunes.
    async fn prune_jobs(&self, request: PruneJobs) -> Result<u64, StoreError>;

    /// Looks for broken invariants, at most `limit`. An empty answer is the only good one.
    async fn find_violations(&self, limit: u32) -> Result<Vec<Violation>, StoreError>;
}

/// Wake-ups. Polling is the truth; these only make it faster.
#[async_trait]
pub trait WakeStore: Send + Sync {
    /// Says that a worker of this queue is idle and wants to be woken for the next second.
    async fn push_idle(&self, queue: &QueueName) -> Result<(), StoreError>;

    /// Waits until work may have come into one of these queues. May return early; returns an error instead of hanging
    /// when the connection is lost, and then everything must be fetched anew.
    async fn wait_for_work(&self, queues: &[QueueName]) -> Result<(), StoreError>;
}
