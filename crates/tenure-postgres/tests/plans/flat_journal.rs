//! What happened to a job, and what people did, is found by index, however much workers wrote.

use tenure_postgres::statement;

use crate::database::Database;
use crate::explain::Cost;
use crate::session::{LONG, Session};

/// Claims and endings of others.
const ROWS: u32 = 200_000;
const JOB: &str = "'01933c5e-7b5a-7000-8000-000000000001'";

/// A busy journal, and a job that was claimed, given back and canceled in the midst of it.
fn fill(database: &Database) {
    database.sql("alter table tenure.journal set unlogged; alter table tenure.attempt set unlogged");
    let busy = |from: u32, to: u32| {
        format!(
            "insert into tenure.journal (at, worker, event, lease, jobs)
             select now(), 1, 1 + i % 2 * 10, i / 2, array[tenure.new_id()] from generate_series({from}, {to}) i"
        )
    };
    database.sql(&busy(1, ROWS / 2));
    database.sql(&format!(
        "insert into tenure.job (id, created_at, run_at, tenant, queue, kind, payload) values ({JOB}, now(), now(), 1, 1, 'noop', '{{}}');
         insert into tenure.attempt (job, lease, ended_at, attempt, how, final) values ({JOB}, 7, now(), 1, 7, false), ({JOB}, 9, now(), 1, 5, true);
         insert into tenure.journal (at, worker, event, lease, jobs) values (now(), 1, 1, 7, array[{JOB}, tenure.new_id()]), (now(), 1, 17, 7, array[{JOB}::uuid]);
         insert into tenure.journal (at, event, lease, jobs) values (now(), 15, 9, array[{JOB}::uuid]);
         insert into tenure.journal (at, event, jobs) values (now(), 2, array[{JOB}::uuid])"
    ));
    database.sql(&busy(ROWS / 2, ROWS));
    database.sql("analyze tenure.journal, tenure.attempt, tenure.job");
}

#[tokio::test]
async fn flat_stories_in_a_long_journal() {
    let database = Database::new().await;
    fill(&database);
    let session = Session::open(&database, LONG).await;
    for mode in ["auto", "force_generic_plan", "force_custom_plan"] {
        session.run(&format!("set plan_cache_mode = {mode}; deallocate all")).await;
        session.prepare(statement::LIST_JOB_ROWS).await;
        let cost = Cost::of(&session, &format!("list_job_rows({JOB}, null, 1000)")).await;
        println!("{mode}: {cost:?}");
        assert_eq!(cost.answered, 4, "{mode}: {cost:?}");
        assert!(cost.visited <= 40 && cost.buffers <= 200, "{mode}: {cost:?}");
        assert!(!cost.scans.contains(&"Seq Scan on journal".to_owned()), "{mode}: {cost:?}");
    }
}

/// A page of the walk below an id.
fn below(id: &str, acts: bool, more: &str) -> String {
    let names = "'{queue}'";
    format!("list_journal({id}, 1000, 50, {acts}, null, null, null, {more}, {names}, null, null)")
}

#[tokio::test]
async fn flat_acts_in_a_long_journal() {
    let database = Database::new().await;
    fill(&database);
    let session = Session::open(&database, LONG).await;
    for mode in ["auto", "force_generic_plan", "force_custom_plan"] {
        session.run(&format!("set plan_cache_mode = {mode}; deallocate all")).await;
        session.prepare(statement::LIST_JOURNAL).await;
        let newest = Cost::of(&session, &below("9223372036854775807", false, "null")).await;
        println!("{mode}: {newest:?}");
        assert_eq!(newest.answered, 50, "{mode}: {newest:?}");
        let acts = Cost::of(&session, &below("9223372036854775807", true, "null")).await;
        println!("{mode}: {acts:?}");
        assert_eq!(acts.answered, 2, "a cancel and its request: {mode}: {acts:?}");
        assert!(acts.visited <= 40 && acts.buffers <= 200, "{mode}: {acts:?}");
        for cost in [newest, acts] {
            assert!(cost.visited <= 4_000, "{mode}: {cost:?}");
            assert!(!cost.scans.contains(&"Seq Scan on journal".to_owned()), "{mode}: {cost:?}");
        }
    }
}

/// A moment is found by halving the way; the answer is near.
#[tokio::test]
async fn a_moment_of_the_journal_is_found_in_few_looks() {
    let database = Database::new().await;
    database.sql("alter table tenure.journal set unlogged");
    database.sql(
        "insert into tenure.journal (at, worker, event, lease, jobs)
         select '2026-01-01T00:00:00Z'::timestamptz + i * interval '1 s', 1, 1, i, '{}' from generate_series(1, 20000) i",
    );
    let above = |second: u32| -> i64 {
        let sql =
            format!("select tenure.journal_before('2026-01-01T00:00:00Z'::timestamptz + {second} * interval '1 s')");
        database.sql(&sql).trim().parse().expect("an id")
    };
    let first: i64 = database.sql("select min(id) from tenure.journal").trim().parse().expect("an id");
    for second in [1, 500, 10_000, 20_000, 30_000] {
        let wanted = first + i64::from(second.min(20_001)) - 1;
        let met = above(second);
        assert!(met >= wanted && met <= wanted + 1_000, "{second}: {met} for {wanted}");
    }
}
