//! What happened to a job is found by index, however much happened to others.

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
