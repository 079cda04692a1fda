//! Counts cost what they count, beside all that ended before; and a beat costs one row in place.

use tenure_postgres::statement;

use crate::database::Database;
use crate::explain::Cost;
use crate::session::{LONG, SHORT, Session};

/// Endings, one every three seconds: ten days.
const ENDED: u32 = 300_000;
/// Of these in the last hour.
const LATE: u64 = 1_200;

#[tokio::test]
async fn flat_counts_of_endings_beside_many_older_ones() {
    let database = Database::new().await;
    database.sql("alter table tenure.job set unlogged; alter table tenure.attempt set unlogged");
    database.sql(&format!(
        "with j as (
           insert into tenure.job (id, created_at, run_at, tenant, queue, kind, payload)
           select ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, now(), now(), 1, 1, 'k' || i % 2, '{{}}'
           from generate_series(1, {ENDED}) i
         )
         insert into tenure.attempt (job, lease, started_at, ended_at, worker, attempt, how, final)
         select ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, 0, now(),
           now() - ({ENDED} - i + 0.5) * interval '3 s', 1, 1, 1 + i % 2 * 3, true
         from generate_series(1, {ENDED}) i order by i"
    ));
    // As autovacuum does when a range of pages is full.
    database.sql("analyze; select brin_summarize_new_values('tenure.attempt_ended')");
    let session = Session::open(&database, LONG).await;
    for mode in ["auto", "force_custom_plan"] {
        session.run(&format!("set plan_cache_mode = {mode}; deallocate all")).await;
        session.prepare(statement::COUNT_ENDINGS).await;
        for now in ["null", "now()"] {
            let call = format!("count_endings(3600000, 1000, {now})");
            for _ in 0..6 {
                session.run(&format!("execute {call}")).await;
            }
            let counted = session.ask(&format!("execute {call}")).await.remove(0);
            let counted: Vec<String> =
                counted.into_iter().map(|row| row.into_iter().flatten().collect::<Vec<_>>().join(" ")).collect();
            // The clock moved on a little since they were inserted.
            let count = |line: &String| line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok()).expect("a number");
            assert!(
                counted.len() == 2
                    && counted[0].starts_with("default k0 1 ")
                    && counted[1].starts_with("default k1 4 "),
                "{counted:?}"
            );
            assert!((LATE - 50..=LATE).contains(&counted.iter().map(count).sum()), "{counted:?}");
            let cost = Cost::of(&session, &call).await;
            println!("{mode} {call}: {cost:?}");
            assert!(!cost.has_seq_scan(), "{mode} {call}: {cost:?}");
            // Two ranges of 128 pages at most, and the job of each ending.
            assert!(cost.visited <= 30_000, "{mode} {call}: {cost:?}");
        }
    }
}

/// Red when an index names a column that beats change, or when pages are packed full.
#[tokio::test]
async fn a_beat_is_an_update_in_place() {
    let database = Database::new().await;
    let session = Session::open(&database, SHORT).await;
    session.run("insert into tenure.worker (name) select 'w' || i from generate_series(1, 200) i").await;
    session.prepare(statement::BEAT_WORKER).await;
    let beat = |worker: u32| {
        format!("execute beat_worker({worker}, 'polling', 3, 1, '1.2.3', 'host', 42, '{{default}}', '{{4}}', null);")
    };
    let beats: String = (1..=200).map(beat).collect();
    // The first beat widens the row; from the second one on nothing grows.
    session.run(&beats).await;
    session.run("vacuum full tenure.worker").await;
    // A session of its own: the server counts what a session has not told it yet.
    let session = Session::open(&database, SHORT).await;
    session.prepare(statement::BEAT_WORKER).await;
    let updated = "select pg_stat_get_xact_tuples_updated(c) || ' ' || pg_stat_get_xact_tuples_hot_updated(c) from (select 'tenure.worker'::regclass) t (c)";
    let answers = session.ask(&format!("begin; {beats} {updated}; commit")).await;
    assert_eq!(answers[answers.len() - 2][0][0].as_deref(), Some("200 200"));
}
