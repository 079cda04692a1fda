//! A claim costs the same whatever else the tables hold.
//!
//! Beside the jobs to claim: 100,000 future jobs, a million finished ones, 10,000 due jobs of a lower priority, and 20,000
//! rows that were claimed while somebody's old snapshot keeps every one of them from being cleaned up. Costs are rows and
//! buffers; the claim without floors is measured as well, and must be much worse, or the test proves nothing.

use tenure_core::name::WorkerName;
use tenure_core::{QueueName, Timestamp};
use tenure_postgres::{PgOptions, PgStore, statement};
use tenure_store::lease::{ClaimJobs, Claimed, EndJob, EndJobs, Ending};
use tenure_store::{AdminStore, LeaseStore};
use uuid::Uuid;

use crate::database::Database;
use crate::explain::Cost;
use crate::session::{SHORT, Session};

/// Jobs that one claim takes here.
const LIMIT: u64 = 20;
/// Jobs that pass under the old snapshot.
const PASSING: u64 = 20_000;

#[tokio::test]
async fn flat_claims_beside_a_full_house() {
    let database = Database::new().await;
    enqueue(&database, 200);
    // Prepared and planned while the tables were as good as empty; the plan stays.
    let session = Session::open(&database, SHORT).await;
    session.prepare(statement::CLAIM_JOBS).await;
    let empty = claim(&session, NO_FLOOR).await;

    fill(&database);
    let full = claim(&session, NO_FLOOR).await;
    assert_flat(&full, &empty, "with future, finished and less urgent jobs");
    session.run("discard plans; analyze tenure.ready, tenure.job, tenure.attempt").await;
    let analyzed = claim(&session, NO_FLOOR).await;
    assert_flat(&analyzed, &empty, "planned anew, with statistics");

    let pin = Session::open(&database, "begin isolation level repeatable read; select from tenure.ready limit 1").await;
    enqueue(&database, PASSING);
    let floor = pass_through(&database).await;
    let pinned = claim(&session, &floor).await;
    assert_flat(&pinned, &empty, "over dead rows, from a floor");
    let swept = claim(&session, NO_FLOOR).await;
    println!("empty {empty:?}\nfull {full:?}\nanalyzed {analyzed:?}\npinned {pinned:?}\nwithout floors {swept:?}");
    assert!(swept.buffers > 10 * pinned.buffers, "dead rows cost nothing even without floors: {swept:?}, {pinned:?}");
    pin.run("rollback").await;
}

/// Floors as the client passes them before it has any.
const NO_FLOOR: &str =
    "array[null, null, null, null]::timestamptz[], array_fill('00000000-0000-0000-0000-000000000000'::uuid, array[4])";

async fn claim(session: &Session, floors: &str) -> Cost {
    Cost::of(session, &format!("claim_jobs(1, 'default', {LIMIT}, {floors}, null, '{{0, 1, 2, 3}}', 8192, false)"))
        .await
}

fn assert_flat(cost: &Cost, empty: &Cost, when: &str) {
    assert_eq!(cost.answered, LIMIT, "{when}: {cost:?}");
    assert!(cost.visited <= empty.visited + 20, "{when}: {cost:?}, empty {empty:?}");
    // Trees are a level or two deeper.
    assert!(cost.buffers <= 2 * empty.buffers + 100, "{when}: {cost:?}, empty {empty:?}");
    assert!(cost.removed <= 4, "{when}: {cost:?}");
    assert!(!cost.has_seq_scan(), "{when}: {cost:?}");
}

/// Due jobs of normal priority, as one bulk.
fn enqueue(database: &Database, jobs: u64) {
    insert(database, jobs, "tenure.new_id()", "now()", 2);
}

/// What else a busy system holds.
pub(crate) fn fill(database: &Database) {
    // Not written to the log, to be quick; plans are the same.
    database.sql("alter table tenure.job set unlogged; alter table tenure.attempt set unlogged");
    insert(database, 100_000, "tenure.new_id()", "now() + interval '1 day' + i * interval '10 s'", 2);
    insert(database, 10_000, "tenure.new_id()", "now()", 3);
    // Every hundredth is dead, the others succeeded.
    database.sql(
        "with j as (
           insert into tenure.job (id, created_at, run_at, tenant, queue, kind, payload)
           select ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, now(), now(), 1, 1, 'noop', '{}' from generate_series(1, 1000000) i
           returning id
         )
         insert into tenure.attempt (job, lease, started_at, ended_at, worker, attempt, how, final)
         select id, 0, now(), now(), 1, 1, case when id::text like '%00' then 4 else 1 end, true from j",
    );
}

fn insert(database: &Database, jobs: u64, id: &str, run_at: &str, priority: u8) {
    database.sql(&format!(
        "with j as (
           insert into tenure.job (id, created_at, run_at, tenant, queue, priority, kind, payload)
           select {id}, now(), {run_at}, 1, 1, {priority}, 'noop', '{{}}' from generate_series(1, {jobs}) i
           returning id, run_at, priority
         )
         insert into tenure.ready (run_at, job, queue, priority) select run_at, id, 1, priority from j"
    ));
}

/// Claims and completes all but the last jobs with a real store; answers the floor it has by then.
async fn pass_through(database: &Database) -> String {
    let store = database.store(PgOptions::default()).await;
    let worker = store.register_worker(&WorkerName::new("flat").expect("a name")).await.expect("register");
    let mut last = None;
    for _ in 0..PASSING / 200 {
        let request = ClaimJobs::new(worker, QueueName::default(), 200);
        let claimed = store.claim_jobs(request).await.expect("claim").expect("jobs are due");
        assert_eq!(claimed.jobs.len(), 200);
        complete(&store, worker, &claimed).await;
        last = Some(claimed);
    }
    floors(&last.expect("a claim"))
}

async fn complete(store: &PgStore, worker: tenure_core::WorkerId, claimed: &Claimed) {
    let ending = || Ending::Succeeded { result: None, usage: None };
    let jobs = claimed.jobs.iter().map(|job| EndJob::new(job.id, ending())).collect();
    store.end_jobs(EndJobs { worker, lease: claimed.lease, jobs }).await.expect("complete");
}

/// What the store remembers after this claim (`floor.rs`): the smallest place it returned, all being older than its margin.
fn floors(claimed: &Claimed) -> String {
    let (time, job): (Timestamp, Uuid) =
        claimed.jobs.iter().map(|job| (job.run_at, *job.id.as_uuid())).min().expect("jobs");
    let micros = time.as_micros();
    format!(
        "array[null, null, to_timestamp({micros} / 1e6), null], array['{z}', '{z}', '{job}', '{z}']::uuid[]",
        z = Uuid::nil()
    )
}
