//! Endings, renewals and drops touch the right rows whatever plan they get.
//!
//! Worker 1 holds leases 1 (jobs 1 to 5) and 2 (jobs 6 to 8), worker 2 holds lease 3 (jobs 9 to 12). Each call names rows
//! of others as well, is looked at, and rolled back.

use tenure_postgres::statement::{self, Statement};

use crate::database::Database;
use crate::session::Session;
use crate::switches::{some_settings, texts};

/// Jobs by their numbers, which their ids end in.
const NUMBERED: &str = "create view numbered as
    select i as n, ('01900000-0000-7000-8000-' || lpad(i::text, 12, '0'))::uuid as id from generate_series(1, 12) i";
const ENDED: &str = "select n.n || ' ' || a.how from tenure.attempt a join numbered n on n.id = a.job";
const LEASES: &str = "select no from tenure.lease";

#[tokio::test]
async fn switches_never_make_a_complete_end_other_jobs() {
    let call = format!("complete_jobs(1, array[1, 3], array[1, 1, 1, 3], {}, null, null, null)", jobs(&[1, 2, 6, 9]));
    each(statement::COMPLETE_JOBS, &call, &[(ENDED, &["1 1", "2 1"]), (LEASES, &["1", "2", "3"])]).await;
}

#[tokio::test]
async fn switches_never_keep_a_complete_from_dropping_its_lease() {
    let call = format!(
        "complete_jobs(1, array[2, 1], array[1, 1, 2, 1, 1, 1], {}, null, null, null)",
        jobs(&[5, 4, 7, 3, 2, 1])
    );
    each(
        statement::COMPLETE_JOBS,
        &call,
        &[(ENDED, &["1 1", "2 1", "3 1", "4 1", "5 1", "7 1"]), (LEASES, &["2", "3"])],
    )
    .await;
}

#[tokio::test]
async fn switches_never_make_an_end_put_back_other_jobs() {
    let none = "array[null, null, null, null]::text[]";
    let (named, hows) = (jobs(&[6, 7, 8, 9]), "array[2, 3, 7, 2]::smallint[], array[0, 0, 0, 0]::bigint[]");
    let gates = "array[null, null, null, null]::smallint[], array[null, null, null, null]::bigint[]";
    let call = format!("end_jobs(1, 2, {named}, {hows}, {none}, {none}, {none}, null, {gates})");
    let put_back =
        "select n.n || ' ' || r.state || ' ' || r.attempt from tenure.ready r join numbered n on n.id = r.job";
    let checks: &[(&str, &[&str])] =
        &[(ENDED, &["6 2", "7 3", "8 7"]), (put_back, &["6 1 1", "8 0 0"]), (LEASES, &["1", "3"])];
    each(statement::END_JOBS, &call, checks).await;
}

#[tokio::test]
async fn switches_never_make_a_refusal_write_down_other_jobs() {
    let before = "insert into tenure.attempt (job, lease, worker, ended_at, attempt, how, final)
        select id, 1, 1, now(), 1, case n when 1 then 1 when 2 then 8 else 5 end, n = 1 from numbered where n <= 4";
    // Job 1 was done before, 2 was lost, 3 and 4 were canceled, 6 is another lease's, and 13 is no job.
    let call =
        format!("refuse_endings(1, 1, {}, array[1, 1, 2, 3, 1, 1]::smallint[], null)", jobs(&[1, 2, 3, 4, 6, 13]));
    let refused = "select n.n || ' ' || (g.details ->> 'reported') from tenure.journal g
        cross join lateral unnest(g.jobs) u (job) join numbered n on n.id = u.job where g.event = 20";
    let rows = "select count(*) from tenure.journal";
    let checks: &[(&str, &[&str])] = &[(refused, &["2 succeeded", "4 failed", "6 succeeded"]), (rows, &["2"])];
    each_after(before, statement::REFUSE_ENDINGS, &call, checks).await;
}

#[tokio::test]
async fn switches_never_make_a_renewal_push_out_other_leases() {
    let renewed = "select no from tenure.lease where expires_at > now() + interval '1 minute'";
    each(
        statement::RENEW_LEASES,
        "renew_leases(1, array[3, 2, 1], now() + interval '1 minute')",
        &[(renewed, &["1", "2"])],
    )
    .await;
}

#[tokio::test]
async fn switches_never_make_a_drop_delete_a_lease_that_is_needed() {
    let call = "drop_leases(1, array[1, 2, 3])";
    each(statement::DROP_LEASES, call, &[(LEASES, &["1", "2", "3"])]).await;
    let emptied = "insert into tenure.attempt (job, lease, ended_at, attempt, how, final)
        select unnest(jobs), no, now(), 1, 1, true from tenure.lease where no in (2, 3)";
    let checks: &[(&str, &[&str])] = &[(LEASES, &["1", "3"])];
    each_after(emptied, statement::DROP_LEASES, call, checks).await;
}

async fn each(statement: Statement, call: &str, checks: &[(&str, &[&str])]) {
    each_after("select", statement, call, checks).await;
}

/// Runs a call after some SQL under a few settings, with and without statistics, and compares what each check answers.
async fn each_after(before: &str, statement: Statement, call: &str, checks: &[(&str, &[&str])]) {
    let database = Database::new().await;
    database.sql(NUMBERED);
    database.sql(
        "insert into tenure.job (id, created_at, run_at, tenant, queue, kind, payload) select id, now(), now(), 1, 1, 'noop', '{}' from numbered;
         insert into tenure.lease (queue, worker, claimed_at, renewed_at, expires_at, jobs, attempts, losses)
         select 1, w, now(), now(), now() + interval '1 minute', array_agg(id), array_agg(1), array_agg(0)
         from numbered, lateral (select case when n <= 8 then 1 else 2 end as w, case when n <= 5 then 1 when n <= 8 then 2 else 3 end as no) l
         group by no, w order by no",
    );
    let session = Session::open(&database, "set jit = off").await;
    session.prepare(statement).await;
    let questions: String = checks.iter().map(|(question, _)| format!("{question}; ")).collect();
    for statistics in [false, true] {
        if statistics {
            session.run("analyze").await;
        }
        for setting in some_settings() {
            let script = format!("begin; {setting}; discard plans; {before}; execute {call}; {questions} rollback");
            let answers = session.ask(&script).await;
            let answers = &answers[answers.len() - 1 - checks.len()..];
            for ((question, expected), rows) in checks.iter().zip(answers) {
                let mut found = texts(rows, 0);
                found.sort_unstable();
                assert_eq!(found, *expected, "{question}\nafter {call}, statistics {statistics}, {setting}");
            }
        }
    }
}

/// An array of the ids of these jobs, in this order.
fn jobs(numbers: &[u32]) -> String {
    let ids: Vec<String> = numbers.iter().map(|n| format!("01900000-0000-7000-8000-{n:012}")).collect();
    format!("array{ids:?}::uuid[]").replace('"', "'")
}
