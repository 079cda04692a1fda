//! Tenure inside an sqlx transaction.

#[path = "../it/database.rs"]
#[expect(dead_code, reason = "shared with the other test binaries, which use all of it")]
mod database;

use std::time::Duration;

use database::Database;
use sqlx::{Connection, PgConnection};
use tenure_core::new_job::Due;
use tenure_core::unique::Policy;
use tenure_core::{JobId, Json, KindName, NewJob, Priority, QueueName, State, Timestamp, Unique};
use tenure_postgres::sqlx_tx::{complete_in, enqueue_within};
use tenure_postgres::{PgOptions, PgStore};
use tenure_store::enqueue::Enqueued;
use tenure_store::lease::{ClaimJobs, Claimed};
use tenure_store::record::Sight;
use tenure_store::user_tx::{CompleteJob, UserTx};
use tenure_store::{AdminStore, JobStore, LeaseStore, StoreError};

struct World {
    database: Database,
    store: PgStore,
    sqlx: PgConnection,
}

async fn world() -> World {
    let database = Database::new().await;
    let store = database.store(PgOptions::default()).await;
    let sqlx = PgConnection::connect(&database.url).await.expect("connect");
    World { database, store, sqlx }
}

fn new_job(n: u8) -> NewJob {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_micros();
    let now = Timestamp::from_micros(i64::try_from(now).expect("before 9999"));
    let payload = Json::parse("payload", r#"{"quote":"\"","deep":[1.5,null]}"#).expect("JSON");
    NewJob::new(JobId::from_parts(now, [n; 10]), KindName::new("noop").expect("a name"), payload)
}

async fn claim(store: &PgStore) -> (tenure_core::WorkerId, Claimed) {
    let worker = store.register_worker(&"sqlx".parse().expect("a name")).await.expect("register");
    let request = ClaimJobs::new(worker, QueueName::default(), 10);
    (worker, store.claim_jobs(request).await.expect("claim").expect("a job is due"))
}

#[tokio::test]
async fn jobs_exist_when_the_transaction_commits() {
    let mut world = world().await;
    let (kept, dropped) = (new_job(1), new_job(2));
    let mut tx = world.sqlx.begin().await.expect("begin");
    enqueue_within(&mut tx, std::slice::from_ref(&dropped)).await.expect("enqueue");
    tx.rollback().await.expect("rollback");
    let mut tx = world.sqlx.begin().await.expect("begin");
    let stored = enqueue_within(&mut tx, std::slice::from_ref(&kept)).await.expect("enqueue");
    tx.commit().await.expect("commit");
    assert_eq!(stored, [Enqueued::Created(kept.id)]);
    let shown = world.store.show_job(&Sight::All, kept.id).await.expect("show");
    assert_eq!(shown.payload.as_str(), r#"{"deep": [1.5, null], "quote": "\""}"#);
    assert!(matches!(world.store.show_job(&Sight::All, dropped.id).await, Err(StoreError::NotFound(_))));
}

#[tokio::test]
async fn everything_a_producer_says_arrives() {
    let mut world = world().await;
    let mut job = new_job(3);
    job.queue = QueueName::new("mail").expect("a name");
    job.priority = Priority::HIGH;
    job.due = Due::After(Duration::from_millis(3_600_500));
    job.rules.max_attempts = 2;
    job.rules.backoff = "fixed 5m".parse().expect("a policy");
    job.unique = Some(Unique::new("k", Policy::Window(Duration::from_secs(600))));
    job.trace = Some("00-abc".to_owned());
    job.gate = Some("source:mint".parse().expect("a name"));
    enqueue_within(&mut world.sqlx, std::slice::from_ref(&job)).await.expect("enqueue");
    let shown = world.store.show_job(&Sight::All, job.id).await.expect("show");
    assert_eq!(
        (shown.summary.queue, shown.summary.priority, shown.rules, shown.trace, shown.summary.gate),
        (job.queue, job.priority, job.rules, job.trace, job.gate)
    );
    assert_eq!(shown.summary.run_at.since(shown.summary.created_at), Duration::from_millis(3_600_500));
    let twin = NewJob { id: new_job(4).id, unique: job.unique, ..new_job(4) };
    let found = enqueue_within(&mut world.sqlx, &[twin]).await.expect("enqueue");
    assert_eq!(found, [Enqueued::Found { job: job.id, state: Some(State::Queued) }]);
}

#[tokio::test]
async fn rows_and_completion_commit_together_and_a_stale_lease_stops_both() {
    let mut world = world().await;
    world.database.sql("create table effect (job uuid)");
    world.store.enqueue_jobs(vec![new_job(5)]).await.expect("enqueue");
    let (worker, claimed) = claim(&world.store).await;
    let job = claimed.jobs[0].id;
    let mut tx = world.sqlx.begin().await.expect("begin");
    sqlx::query("insert into effect select id from tenure.job").execute(&mut *tx).await.expect("insert");
    complete_in(
        &mut tx,
        &CompleteJob {
            result: Some(Json::null()),
            usage: Some(Json::parse("usage", r#"{"calls": 3}"#).expect("JSON")),
            ..CompleteJob::new(worker, claimed.lease, job)
        },
    )
    .await
    .expect("complete");
    tx.commit().await.expect("commit");
    let shown = world.store.show_job(&Sight::All, job).await.expect("show");
    assert_eq!(shown.summary.state, State::Succeeded);
    assert_eq!(shown.attempts[0].usage.as_ref().map(Json::as_str), Some(r#"{"calls": 3}"#));

    let mut tx = world.sqlx.begin().await.expect("begin");
    sqlx::query("insert into effect select id from tenure.job").execute(&mut *tx).await.expect("insert");
    let stale = tenure_core::LeaseNo(claimed.lease.0 + 1);
    let refused = complete_in(&mut tx, &CompleteJob::new(worker, stale, job)).await;
    assert!(matches!(refused, Err(StoreError::LeaseLost(lost)) if lost == job), "{refused:?}");
    // What the server has aborted cannot be committed: it is rolled back instead.
    let _aborted = tx.commit().await;
    assert_eq!(world.database.sql("select count(*) from effect"), "1");
}

/// The port's trait over both of sqlx's handles; the store follows from the handle.
fn complete<S, X: UserTx<S>>(tx: X, request: CompleteJob) -> X::Reply<Result<(), StoreError>> {
    tx.complete_job(request, |answer| answer)
}

fn enqueue<S, X: UserTx<S>>(tx: X, job: &NewJob) -> X::Reply<Result<Vec<Enqueued>, StoreError>> {
    tx.enqueue_jobs(vec![job.clone()], |answer| answer)
}

#[tokio::test]
async fn both_handles_of_sqlx_are_a_users_transaction() {
    let mut world = world().await;
    let (first, second) = (new_job(1), new_job(2));
    let mut tx = world.sqlx.begin().await.expect("begin");
    assert_eq!(enqueue(&mut tx, &first).await.expect("enqueue"), [Enqueued::Created(first.id)]);
    assert_eq!(enqueue(&mut *tx, &second).await.expect("enqueue"), [Enqueued::Created(second.id)]);
    tx.commit().await.expect("commit");
    let (worker, claimed) = claim(&world.store).await;
    let request = |job: JobId| CompleteJob::new(worker, claimed.lease, job);
    let mut tx = world.sqlx.begin().await.expect("begin");
    complete(&mut tx, request(first.id)).await.expect("complete");
    complete(&mut *tx, request(second.id)).await.expect("complete");
    tx.commit().await.expect("commit");
    let mut tx = world.sqlx.begin().await.expect("begin");
    let stale = CompleteJob { lease: tenure_core::LeaseNo(claimed.lease.0 + 1), ..request(first.id) };
    assert!(matches!(complete(&mut tx, stale).await, Err(StoreError::LeaseLost(job)) if job == first.id));
    for job in [first.id, second.id] {
        assert_eq!(world.store.show_job(&Sight::All, job).await.expect("show").summary.state, State::Succeeded);
    }
}
