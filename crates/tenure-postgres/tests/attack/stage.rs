//! A small stage for cases of two or three actors whose every step is placed by hand.

use std::error::Error;
use std::time::{Duration, Instant};

use tenure_core::name::WorkerName;
use tenure_core::unique::{Policy, Unique};
use tenure_core::{JobId, Json, KindName, LeaseNo, NewJob, QueueName, WorkerId};
use tenure_postgres::mutant::Mutant;
use tenure_postgres::{PgOptions, PgStore};
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended, Ending};
use tenure_store::user_tx::CompleteJob;
use tenure_store::{AdminStore, JobStore, LeaseStore, StoreError};
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::database::Database;
use crate::field::connect;
use crate::mutants::Cut;
use crate::rng::Rng;

/// What a case says: nothing, or what is wrong.
pub(crate) type Verdict = Result<(), Box<dyn Error + Send + Sync>>;

/// A session that waits for no lock after this long never will.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Stage {
    pub(crate) database: Database,
    pub(crate) store: PgStore,
    /// A plain connection, as a user has.
    pub(crate) user: Client,
    /// Looks on, holds nothing.
    watcher: Client,
    pub(crate) worker: WorkerId,
    mutant: Option<Mutant>,
    rng: Rng,
}

impl Stage {
    /// A fresh database, whole or with a cut.
    pub(crate) async fn new(cut: Option<&Cut>) -> Self {
        let database = Database::new().await;
        database.sql(&format!("alter database {} set deadlock_timeout = '50ms'", database.name));
        let watcher = connect(&database.url).await;
        if let Some(cut) = cut {
            cut.apply(&watcher).await;
        }
        let mutant = cut.and_then(Cut::statement);
        let store = database.store(PgOptions { mutant, ..PgOptions::default() }).await;
        let worker = store.register_worker(&WorkerName::new("one").expect("a name")).await.expect("register");
        let user = connect(&database.url).await;
        Self { database, store, user, watcher, worker, mutant, rng: Rng::new(1, 1) }
    }

    /// Another store on the same database, whose clock is moved by hand.
    pub(crate) async fn store_with(&self, clock: &ManualClock) -> PgStore {
        let options = PgOptions { mutant: self.mutant, clock: Clock::Manual(clock.clone()), ..PgOptions::default() };
        self.database.store(options).await
    }

    /// Jobs with ascending ids.
    pub(crate) fn new_jobs(&mut self, count: usize) -> Vec<NewJob> {
        let mut ids: Vec<JobId> = (0..count).map(|_| self.rng.job_id()).collect();
        ids.sort_unstable();
        let kind = KindName::new("case").expect("a name");
        ids.into_iter().map(|id| NewJob::new(id, kind.clone(), Json::from_store("{}"))).collect()
    }

    /// A job that holds `key` while it is active.
    pub(crate) fn keyed(&mut self, key: &str) -> NewJob {
        let job = self.new_jobs(1).remove(0);
        NewJob { unique: Some(Unique::new(key, Policy::WhileActive)), ..job }
    }

    /// Stores jobs and claims them together.
    pub(crate) async fn claim(&mut self, count: usize) -> Result<(LeaseNo, Vec<JobId>), StoreError> {
        let jobs = self.new_jobs(count);
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        self.store.enqueue_jobs(jobs).await?;
        Ok((self.claim_due(count).await?, ids))
    }

    /// Claims what is due.
    pub(crate) async fn claim_due(&self, count: usize) -> Result<LeaseNo, StoreError> {
        let limit = u32::try_from(count).expect("few");
        let request = ClaimJobs::new(self.worker, QueueName::default(), limit);
        let claimed = self.store.claim_jobs(request).await?.expect("something is due");
        assert_eq!(claimed.jobs.len(), count);
        Ok(claimed.lease)
    }

    pub(crate) async fn end(&self, lease: LeaseNo, jobs: &[JobId], ending: Ending) -> Result<Vec<Ended>, StoreError> {
        self.store.end_jobs(report(self.worker, lease, jobs, &ending)).await
    }

    pub(crate) async fn complete_in(&self, lease: LeaseNo, job: JobId) -> Result<(), StoreError> {
        tenure_postgres::tx::complete_in(&self.user, &CompleteJob::new(self.worker, lease, job)).await
    }

    /// Lets all leases expire.
    pub(crate) fn expire(&self) {
        self.database.sql("update tenure.lease set expires_at = clock_timestamp() - interval '1 ms'");
    }

    /// Runs `task` until it waits for somebody's lock, or is done without.
    pub(crate) async fn until_blocked<T>(&self, task: &JoinHandle<T>, sessions: i64) {
        let blocked =
            "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
        let began = Instant::now();
        while !task.is_finished() {
            let waiting: i64 = self.watcher.query_one(blocked, &[]).await.expect("look").get(0);
            if waiting >= sessions {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "nobody waits");
        }
    }

    /// Waits until no transaction on the server is older than this one, which is open: those of other tests may be.
    pub(crate) async fn until_older_are_gone(&self, xid: &str) {
        let look = format!("select pg_snapshot_xmin(pg_current_snapshot()) >= '{xid}'::xid8");
        let began = Instant::now();
        while !self.watcher.query_one(&look, &[]).await.expect("look").get::<_, bool>(0) {
            assert!(began.elapsed() < PATIENCE, "an older transaction stays open");
        }
    }

    /// No invariant is broken.
    pub(crate) async fn is_sound(&self) -> Verdict {
        let broken = self.store.find_violations(10).await?;
        if broken.is_empty() { Ok(()) } else { Err(format!("{broken:?}").into()) }
    }

    pub(crate) fn state(&self, job: JobId) -> String {
        self.database.sql(&format!("select tenure.state_of('{job}')"))
    }

    /// Ends all sessions; the server broke no deadlock between them.
    pub(crate) async fn had_no_deadlock(self) -> Verdict {
        let Self { database, store, user, watcher, .. } = self;
        drop((store, user, watcher));
        match crate::deadlocks(&database).await {
            0 => Ok(()),
            n => Err(format!("the server broke {n} deadlocks").into()),
        }
    }
}

pub(crate) fn report(worker: WorkerId, lease: LeaseNo, jobs: &[JobId], ending: &Ending) -> EndJobs {
    EndJobs { worker, lease, jobs: jobs.iter().map(|job| EndJob::new(*job, ending.clone())).collect() }
}

/// Holds an answer against what it must be.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: &T, must: &T) -> Verdict {
    if is == must { Ok(()) } else { Err(format!("{what} is {is:?}, must be {must:?}").into()) }
}
