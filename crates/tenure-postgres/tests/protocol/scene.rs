//! A store on a fresh database, raw connections beside it, and waiting for what the server does.

use std::future::Future;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tenure_contract::Fixture;
use tenure_core::{JobId, Json, LeaseNo, Timestamp, WorkerId};
use tenure_postgres::mutant::Mutant;
use tenure_postgres::{PgOptions, PgStore, tx};
use tenure_store::audit::{self, Report};
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::lease::{EndJob, EndJobs, Ended, Ending};
use tenure_store::user_tx::CompleteJob;
use tenure_store::{AdminStore, JournalStore, LeaseStore};
use tokio_postgres::{Client, NoTls};

use crate::database::Database;

/// How long a step may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the server is asked.
const TICK: Duration = Duration::from_millis(3);

/// A store on a database of its own. Its clock begins at the real time, because users' transactions read the server's.
pub(crate) struct Scene {
    pub(crate) store: PgStore,
    pub(crate) fixture: Fixture,
    pub(crate) database: Database,
}

impl Deref for Scene {
    type Target = Fixture;
    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}

impl Scene {
    pub(crate) async fn new() -> Self {
        Self::with(PgOptions::default()).await
    }

    /// A store with these options, whatever the clock in them.
    pub(crate) async fn with(options: PgOptions) -> Self {
        let clock = ManualClock::new(real_now());
        let options = PgOptions { clock: Clock::Manual(clock.clone()), ..options };
        Self::open(options, clock).await
    }

    /// A store one statement of which is changed.
    pub(crate) async fn mutated(statement: &'static str, find: &'static str, replace: &'static str) -> Self {
        let mutant = Some(Mutant { statement, find, replace });
        Self::with(PgOptions { mutant, ..PgOptions::default() }).await
    }

    /// A store that reads the server's clock.
    pub(crate) async fn on_server_time(options: PgOptions) -> Self {
        Self::open(options, ManualClock::new(real_now())).await
    }

    async fn open(options: PgOptions, clock: ManualClock) -> Self {
        let database = Database::new().await;
        let store = database.store(options).await;
        let fixture = Fixture::new("postgres", Arc::new(store.clone()), clock);
        Self { store, fixture, database }
    }

    /// Another store on the same database, with the same clock.
    pub(crate) async fn other_store(&self, options: PgOptions) -> PgStore {
        let options = PgOptions { clock: Clock::Manual(self.clock.clone()), ..options };
        self.database.store(options).await
    }

    /// A connection of a user.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.database.url).await
    }

    /// Stores `n` jobs at once and claims them all under one lease; the jobs in the order of their ids.
    pub(crate) async fn claim_batch(&self, worker: WorkerId, n: u32) -> (LeaseNo, Vec<JobId>) {
        for _ in 0..n {
            self.enqueue().await;
        }
        let claimed = self.claim(worker, n).await.expect("jobs are due");
        let mut jobs: Vec<JobId> = claimed.jobs.iter().map(|job| job.id).collect();
        jobs.sort_unstable();
        assert_eq!(jobs.len(), n as usize);
        (claimed.lease, jobs)
    }

    /// Reports several jobs of a lease in one call.
    pub(crate) async fn end_all(
        &self,
        worker: WorkerId,
        lease: LeaseNo,
        jobs: &[JobId],
        ending: &Ending,
    ) -> Vec<Ended> {
        let jobs = jobs.iter().map(|job| EndJob::new(*job, ending.clone())).collect();
        self.store.end_jobs(EndJobs { worker, lease, jobs }).await.expect("end")
    }

    /// The state of a job, by the view.
    pub(crate) async fn state(&self, job: JobId) -> &'static str {
        self.show(job).await.summary.state.as_str()
    }

    /// Seals until nothing is left and checks the journal.
    pub(crate) async fn audit(&self) -> Report {
        while self.store.seal_journal().await.expect("seal").is_some() {}
        audit::verify(&self.store, None, |_| {}).await.expect("verify")
    }

    /// No invariant is broken, and the journal replays without a finding.
    pub(crate) async fn assert_sound(&self) {
        let violations = self.store.find_violations(10).await.expect("find violations");
        assert!(violations.is_empty(), "{violations:#?}");
        let report = self.audit().await;
        assert!(report.findings.is_empty() && report.tail == 0, "{report:#?}");
    }
}

/// A connection of a user; one that waits for a lock longer than it ever should says so.
pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.expect("connect");
    tokio::spawn(connection);
    run(&client, "set lock_timeout = '20s'").await;
    client
}

/// Runs statements without parameters.
pub(crate) async fn run(client: &Client, sql: &str) {
    soon(sql, client.batch_execute(sql)).await.unwrap_or_else(|error| panic!("{sql}: {}", said(&error)));
}

/// The one number a query answers.
pub(crate) async fn number(client: &Client, sql: &str) -> i64 {
    client
        .query_one(&format!("select ({sql})::bigint"), &[])
        .await
        .unwrap_or_else(|e| panic!("{sql}: {}", said(&e)))
        .get(0)
}

/// The one text a query answers.
pub(crate) async fn text(client: &Client, sql: &str) -> String {
    client
        .query_one(&format!("select ({sql})::text"), &[])
        .await
        .unwrap_or_else(|e| panic!("{sql}: {}", said(&e)))
        .get(0)
}

/// The server's own words, which the driver's error leaves to its source.
pub(crate) fn said(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |db| format!("{} {}", db.code().code(), db.message()))
}

/// The process that serves a connection.
pub(crate) async fn pid(client: &Client) -> i64 {
    number(client, "pg_backend_pid()").await
}

/// Completes a job inside the transaction a user has open.
pub(crate) async fn complete_in(user: &Client, worker: WorkerId, lease: LeaseNo, job: JobId) {
    soon("complete_in", tx::complete_in(user, &CompleteJob::new(worker, lease, job)))
        .await
        .expect("complete in a transaction");
}

/// Awaits what must not block; one that hangs fails the test.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("hangs: {what}"))
}

/// Asks the server again and again until a condition holds.
pub(crate) async fn until(client: &Client, what: &str, condition: &str) {
    let is_so = async {
        while number(client, &format!("select ({condition})::int")).await == 0 {
            tokio::time::sleep(TICK).await;
        }
    };
    tokio::time::timeout(PATIENCE, is_so).await.unwrap_or_else(|_| panic!("in vain: until {what}"));
}

/// Waits until a process waits for a lock.
pub(crate) async fn until_blocked(client: &Client, pid: i64) {
    until(client, "it waits for a lock", &format!("select cardinality(pg_blocking_pids({pid}::int)) > 0")).await;
}

/// Waits until a process is gone.
pub(crate) async fn until_gone(client: &Client, pid: i64) {
    until(
        client,
        "the backend is gone",
        &format!("select not exists (select from pg_stat_activity where pid = {pid})"),
    )
    .await;
}

/// Replaces one piece of a function of ours, in this database only.
pub(crate) async fn mutate(client: &Client, function: &str, find: &str, replace: &str) {
    let source = text(client, &format!("pg_get_functiondef('{function}'::regproc)")).await;
    assert!(source.contains(find), "{function} has no `{find}`:\n{source}");
    run(client, &source.replace(find, replace)).await;
}

/// A failure that is not worth another try.
pub(crate) fn failure() -> Ending {
    Ending::Failed { error: Json::null() }
}

/// A failure that is tried again at once.
pub(crate) fn retry() -> Ending {
    Ending::Retry { delay: Duration::ZERO, error: Json::null() }
}

pub(crate) fn real_now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    Timestamp::from_micros(i64::try_from(since.as_micros()).expect("before the year 9999"))
}
