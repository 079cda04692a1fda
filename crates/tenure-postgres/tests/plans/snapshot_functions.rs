//! Plans of the statements inside our functions, told by `auto_explain` while they run.

use crate::database::Database;
use crate::session::{SHORT, Session};
use crate::snapshot::{assert_no_seq_scan, compare};

/// Has the server tell every plan that is run, also those inside functions.
const TELL: &str =
    "load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
    set auto_explain.log_timing = off; set client_min_messages = log";

/// A lease of worker 1 that has run out, with one job.
const EXPIRED: &str = "with j as (
      insert into tenure.job (id, created_at, run_at, tenant, queue, kind, payload)
      values ('01900000-0000-7000-8000-000000000001', now(), now(), 1, 1, 'noop', '{}') returning id
    )
    insert into tenure.lease (queue, worker, claimed_at, renewed_at, expires_at, jobs, attempts, losses)
    select 1, 1, now(), now(), now() - interval '1 s', array[id], '{1}', '{0}' from j";

#[tokio::test]
async fn snapshot_of_reclaim() {
    inside("reclaim", EXPIRED, "select from tenure.reclaim(1, 10)").await;
}

#[tokio::test]
async fn snapshot_of_release_unknown() {
    inside("release_unknown", EXPIRED, "select from tenure.release_unknown(1, '{}', 9)").await;
}

#[tokio::test]
async fn snapshot_of_enqueue() {
    let call = "select from tenure.enqueue_rows(array[tenure.new_id()], '{default}', '{default}', '{noop}', array['{}'::jsonb], '{2}', null, null, '{f}', '{5}', '{8}',
        null, null, '{1}', null, '{noop}', '{key}', null)";
    inside("enqueue_rows", "select", call).await;
}

#[tokio::test]
async fn snapshot_of_complete_in() {
    inside("complete_in", EXPIRED, "select from tenure.complete_in(1, 1, '01900000-0000-7000-8000-000000000001')")
        .await;
}

#[tokio::test]
async fn snapshot_of_fold_rollups() {
    let sealed = "insert into tenure.journal (at, event, lease, jobs) values (now(), 1, 1, '{}');
        insert into tenure.seal (no, era, before, floor, snapshot, after, upto, sealed_at, rows, prev, hash)
          values (1, 1, '1:1:', 0, pg_current_snapshot(), 0, 1, now(), 1, sha256('a'), sha256('b'))";
    inside("fold_rollups", sealed, "select from tenure.fold_rollups(100, '{1000}', null)").await;
}

#[tokio::test]
async fn snapshot_of_prune() {
    let ended = "with j as (
          insert into tenure.job (id, created_at, run_at, tenant, queue, kind, payload)
          values ('01900000-0000-7000-8000-000000000001', now(), now(), 1, 1, 'noop', '{}') returning id
        )
        insert into tenure.attempt (job, lease, ended_at, attempt, how, final) select id, 1, now(), 1, 1, true from j";
    inside("prune", ended, "select from tenure.prune(now(), false, 100)").await;
}

/// Runs a call and compares the plans of all statements inside.
async fn inside(name: &str, before: &str, call: &str) {
    let database = Database::new().await;
    let session = Session::open(&database, SHORT).await;
    session.run(before).await;
    session.run(TELL).await;
    session.take_notices();
    session.run(call).await;
    let told = session.take_notices();
    let plans: Vec<String> = told.iter().filter_map(|notice| plan(notice)).collect();
    assert!(plans.len() > 1, "{name} told nothing: {told:?}");
    let text = plans.join("\n\n");
    compare(&session, name, &text).await;
    assert_no_seq_scan(name, &text);
}

/// The plan in a notice, without costs; `None` for expressions, whose plan is a bare `Result`.
fn plan(notice: &str) -> Option<String> {
    let (_, plan) = notice.split_once("\nQuery Text: ").or_else(|| notice.split_once("plan:\n"))?;
    let plan = plan
        .split_once("  (cost=")
        .map(|(before, _)| before.rfind('\n').map_or(0, |at| at + 1))
        .map(|at| &plan[at..])?;
    let lines = plan.lines().map(|line| line.split_once("  (cost=").map_or(line, |(shape, _)| shape));
    let text = lines.collect::<Vec<_>>().join("\n");
    (text != "Result").then_some(text)
}
