//! Migrations: from empty, by two at once, past readers and writers, and never over what somebody else has made.

use tenure_contract::fixture::success;
use tenure_contract::postgres_server::{psql, shared_admin_url};
use tenure_core::{JobId, Json, KindName, NewJob, QueueName};
use tenure_postgres::migrate::STEPS;
use tenure_postgres::{PgOptions, PgStore, tx};
use tenure_store::audit;
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended, RenewLeases};
use tenure_store::operate::PruneJobs;
use tenure_store::user_tx::CompleteJob;
use tenure_store::{AdminStore, JobStore, JournalStore, LeaseStore, StoreError, WakeStore};
use tokio::sync::Barrier;

use crate::database::Database;
use crate::scene::{connect, number, real_now, run, soon, until};

fn new_job() -> NewJob {
    NewJob::new(JobId::from_parts(real_now(), [7; 10]), KindName::new("noop").expect("a name"), Json::null())
}

async fn open(database: &Database) -> PgStore {
    PgStore::connect(&database.url, PgOptions::default()).await.expect("connect")
}

#[track_caller]
fn schema_error<T: std::fmt::Debug>(answer: Result<T, StoreError>) -> String {
    match answer {
        Err(StoreError::Schema(said)) => said,
        other => panic!("not a word about the schema: {other:?}"),
    }
}

/// Red when a verb on an empty database says anything that does not help.
#[tokio::test]
async fn an_unmigrated_database_says_what_to_do() {
    let database = Database::bare();
    let store = open(&database).await;
    let queue = QueueName::default();
    let claim = ClaimJobs::new(tenure_core::WorkerId(1), queue.clone(), 1);
    let said = [
        schema_error(store.enqueue_jobs(vec![new_job()]).await),
        schema_error(store.claim_jobs(claim).await),
        schema_error(store.list_queues().await),
        schema_error(store.seal_journal().await),
        schema_error(store.push_idle(&queue).await),
        schema_error(store.cancel_job(tenure_contract::fixture::cancel(new_job().id, false)).await),
    ];
    for said in said {
        assert!(said.contains("`tenure migrate`"), "{said}");
    }
    assert!(store.list_migrations().await.expect("list").iter().all(|step| !step.applied));
}

#[tokio::test]
async fn an_empty_database_is_migrated_once() {
    let database = Database::bare();
    let store = open(&database).await;
    let applied: Vec<i32> = store.migrate().await.expect("migrate").iter().map(|step| step.version).collect();
    assert_eq!(applied, STEPS.iter().map(|step| step.version).collect::<Vec<_>>());
    assert!(store.migrate().await.expect("migrate").is_empty(), "nothing is left to do");
    assert!(store.list_migrations().await.expect("list").iter().all(|step| step.applied));
    store.enqueue_jobs(vec![new_job()]).await.expect("enqueue");
}

/// Red without the advisory lock: one of them fails on what the other has just made.
#[tokio::test]
async fn two_starters_at_once_both_succeed() {
    let database = Database::bare();
    let (one, two) = (open(&database).await, open(&database).await);
    let barrier = Barrier::new(2);
    let start = async |store: &PgStore| {
        barrier.wait().await;
        store.migrate().await.expect("migrate").len()
    };
    let (first, second) = soon("both", async { tokio::join!(start(&one), start(&two)) }).await;
    assert_eq!(first + second, STEPS.len(), "each migration was applied once");
    let look = connect(&database.url).await;
    assert_eq!(number(&look, "select count(*) from tenure.migration").await, STEPS.len() as i64);
}

/// A writer holds up a trigger's table lock for longer than a migration waits. Red when that fails the migration, or when
/// the migration stands in front of everybody else until it gets its lock.
#[tokio::test]
async fn a_migration_lets_others_pass_while_it_cannot_have_its_lock() {
    let database = Database::bare();
    let (writer, look) = (connect(&database.url).await, connect(&database.url).await);
    let prepare = "create schema tenure; create table tenure.migration (version int primary key, name text not null,
        checksum text not null, min_binary int not null, applied_at timestamptz not null default clock_timestamp())";
    run(&look, prepare).await;
    run(&look, STEPS[0].sql).await;
    let record = "insert into tenure.migration (version, name, checksum, min_binary) values ($1, $2, md5($3), $1)";
    look.execute(record, &[&STEPS[0].version, &STEPS[0].name, &STEPS[0].sql]).await.expect("record the first step");
    run(&writer, "begin; lock table tenure.journal in row exclusive mode").await;

    let store = open(&database).await;
    let migrating = tokio::spawn(async move { store.migrate().await });
    let waits = "select exists (select from pg_locks where database = (select oid from pg_database where datname = current_database())
        and relation = 'tenure.journal'::regclass and not granted)";
    until(&look, "it waits for the table", waits).await;
    until(&look, "it gives up for a while", &format!("select not ({waits})")).await;
    until(&look, "it tries again", waits).await;
    run(&writer, "commit").await;
    let applied = soon("the migration", migrating).await.expect("no panic").expect("migrate");
    assert_eq!(applied.len(), STEPS.len() - 1);
}

/// Step 8 widens a check of the journal and adds to workers that are there. Red when that loses a row, validates a large
/// journal under its lock, or lets in an event that is none.
#[tokio::test]
async fn what_the_release_before_has_written_is_kept() {
    let database = Database::bare();
    let look = connect(&database.url).await;
    let prepare = "create schema tenure; create table tenure.migration (version int primary key, name text not null,
        checksum text not null, min_binary int not null, applied_at timestamptz not null default clock_timestamp())";
    run(&look, prepare).await;
    for step in STEPS.iter().filter(|step| step.version <= 7) {
        run(&look, step.sql).await;
        let record = "insert into tenure.migration (version, name, checksum, min_binary) values ($1, $2, md5($3), $1)";
        look.execute(record, &[&step.version, &step.name, &step.sql]).await.expect("record a step");
    }
    run(
        &look,
        "insert into tenure.worker (name) values ('old'); select tenure.cancel(e.job) from tenure.enqueue('noop') e",
    )
    .await;
    let store = open(&database).await;
    let refused = schema_error(store.list_workers(10).await);
    assert!(refused.contains("`tenure migrate`"), "{refused}");
    let applied: Vec<i32> = store.migrate().await.expect("migrate").iter().map(|step| step.version).collect();
    assert_eq!(applied, [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]);

    let workers = store.list_workers(10).await.expect("list");
    assert_eq!((workers.len(), workers[0].name.as_str(), &workers[0].beat), (1, "old", &None));
    assert_eq!(number(&look, "select count(*) from tenure.audit_log where event = 'canceled'").await, 1);
    run(&look, "insert into tenure.journal (at, event, jobs) values (now(), 20, '{}')").await;
    assert_eq!(number(&look, "select count(*) from tenure.audit_log where event = 'refused'").await, 1);
    for event in [0, 10, 19, 80] {
        let write = format!("insert into tenure.journal (at, event, jobs) values (now(), {event}, '{{}}')");
        let refused = look.batch_execute(&write).await.expect_err("there is no such event");
        assert_eq!(refused.code().map(|code| code.code()), Some("23514"), "{event}");
    }
    while store.seal_journal().await.expect("seal").is_some() {}
    let report = audit::verify(&store, None, |_| {}).await.expect("verify");
    assert!(report.findings.is_empty() && report.rows == 2, "{report:#?}");
}

/// Red when an old program works on a schema it does not know.
#[tokio::test]
async fn a_schema_newer_than_the_program_is_refused_naming_both_versions() {
    let database = Database::new().await;
    let store = open(&database).await;
    database.sql(
        "insert into tenure.migration (version, name, checksum, min_binary) values (999, 'of the future', 'x', 998)",
    );
    let known = STEPS.last().expect("steps").version.to_string();
    let connected = PgStore::connect(&database.url, PgOptions::default()).await.map(|_| "connected");
    for said in [schema_error(connected), schema_error(store.migrate().await)] {
        assert!(["version 999", "version 998", &known].iter().all(|part| said.contains(part)), "{said}");
    }
}

/// Red when a file that was changed after a release is taken for the one that was applied.
#[tokio::test]
async fn a_migration_that_was_changed_after_it_was_applied_is_refused_by_name() {
    let database = Database::new().await;
    database.sql("update tenure.migration set checksum = 'other' where version = 3");
    let said = schema_error(open(&database).await.migrate().await);
    assert!(said.contains(STEPS[2].name), "{said}");
}

/// The owner of a database needs no more than that. Red when a migration or a verb asks for a superuser.
#[tokio::test]
async fn the_owner_of_a_database_needs_no_other_rights() {
    let database = Database::bare();
    let role = format!("role_{}", database.name);
    psql(shared_admin_url(), &format!("create role {role} login")).expect("create a role");
    psql(shared_admin_url(), &format!("alter database {} owner to {role}", database.name)).expect("give it away");
    let (_, server) = database.url.split_once('@').expect("a URL with a user");
    let url = format!("postgres://{role}@{server}");
    let store = PgStore::connect(&url, PgOptions::default()).await.expect("connect");
    assert_eq!(store.migrate().await.expect("migrate").len(), STEPS.len());

    let worker = store.register_worker(&"w".parse().expect("a name")).await.expect("register");
    let (job, queue) = (new_job(), QueueName::default());
    let other = NewJob { id: JobId::from_parts(real_now(), [8; 10]), ..job.clone() };
    store.enqueue_jobs(vec![job.clone(), other.clone()]).await.expect("enqueue");
    store.push_idle(&queue).await.expect("push idle");
    let claim = ClaimJobs::new(worker, queue, 2);
    let lease = store.claim_jobs(claim).await.expect("claim").expect("jobs are due").lease;
    store.renew_leases(RenewLeases { worker, leases: vec![lease] }).await.expect("renew");
    let end = EndJobs { worker, lease, jobs: vec![EndJob::new(job.id, success())] };
    assert!(matches!(store.end_jobs(end).await.expect("end")[..], [Ended::Now(_)]));
    let user = connect(&url).await;
    run(&user, "begin").await;
    tx::complete_in(&user, &CompleteJob::new(worker, lease, other.id)).await.expect("complete in a transaction");
    run(&user, "commit").await;
    store.reclaim_jobs(None, 10).await.expect("reclaim");
    store.drop_leases(worker, vec![lease]).await.expect("drop");
    store.seal_journal().await.expect("seal").expect("there is something to seal");
    let report = audit::verify(&store, None, |_| {}).await.expect("verify");
    assert!(report.findings.is_empty() && report.rows == 3, "{report:#?}");
    let prune = PruneJobs { older_than: std::time::Duration::ZERO, dead_too: false, limit: 10 };
    assert_eq!(store.prune_jobs(prune).await.expect("prune"), 2);

    drop((user, store, database));
    psql(shared_admin_url(), &format!("drop role {role}")).expect("drop the role");
}
