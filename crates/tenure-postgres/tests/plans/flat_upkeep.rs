//! Dropping leases and pruning cost what they drop and prune, beside any number of attempts.

use std::time::Duration;

use tenure_postgres::{PgOptions, statement};
use tenure_store::AdminStore;
use tenure_store::operate::PruneJobs;

use crate::database::Database;
use crate::explain::Cost;
use crate::session::{LONG, SHORT, Session};

/// Attempts of other jobs.
const ATTEMPTS: u32 = 100_000;
/// Jobs under the lease.
const HELD: u64 = 100;

/// Jobs of one moment with one final attempt each; `id` is the beginning of their ids.
fn ended(count: u32, at: &str, how: u8) -> String {
    format!(
        "with i as materialized (
           select (left(tenure.id_at({at})::text, 24) || lpad(to_hex(n), 12, '0'))::uuid as id from generate_series(1, {count}) n
         ), j as (
           insert into tenure.job (id, created_at, run_at, tenant, queue, kind, payload) select id, {at}, {at}, 1, 1, 'noop', '{{}}' from i
         )
         insert into tenure.attempt (job, lease, ended_at, attempt, how, final) select id, 1, {at}, 1, {how}, true from i"
    )
}

async fn filled(at: &str) -> Database {
    let database = Database::new().await;
    database.sql("alter table tenure.job set unlogged; alter table tenure.attempt set (autovacuum_enabled = off); alter table tenure.attempt set unlogged");
    database.sql(&ended(ATTEMPTS, at, 4));
    database
}

#[tokio::test]
async fn flat_drops_of_leases_beside_many_attempts() {
    let database = filled("now()").await;
    database.sql(&format!(
        "insert into tenure.lease (queue, worker, claimed_at, renewed_at, expires_at, jobs, attempts, losses)
         select 1, 1, now(), now(), now(), array_agg(tenure.new_id()), array_agg(1), array_agg(0) from generate_series(1, {HELD});
         insert into tenure.attempt (job, lease, ended_at, attempt, how, final)
         select unnest(jobs), no, now(), 1, 1, true from tenure.lease"
    ));
    for statistics in ["select", "analyze"] {
        database.sql(statistics);
        for settings in [SHORT, LONG, "set enable_nestloop = off"] {
            let session = Session::open(&database, settings).await;
            session.prepare(statement::DROP_LEASES).await;
            for _ in 0..6 {
                session.run("begin; execute drop_leases(1, array[1]); rollback").await;
            }
            let cost = Cost::of(&session, "drop_leases(1, array[1])").await;
            println!("{statistics} {settings}: {cost:?}");
            assert_eq!(cost.answered, 1, "{settings}: {cost:?}");
            assert!(cost.visited <= HELD + 20, "{statistics} {settings}: {cost:?}");
        }
    }
}

/// Index entries of attempts that one prune reads, and how many jobs it deletes. Taken back.
async fn prune(session: &Session, limit: u32) -> (u64, u64) {
    let read = "select pg_stat_get_xact_tuples_returned('tenure.attempt_pkey'::regclass) + pg_stat_get_xact_tuples_returned('tenure.attempt'::regclass)";
    let answers = session
        .ask(&format!(
            "begin; {read}; select tenure.prune(now() - interval '2 days', false, {limit}); {read}; rollback"
        ))
        .await;
    let number =
        |answer: usize| answers[answer][0][0].as_deref().and_then(|text| text.parse::<u64>().ok()).expect("a number");
    (number(3) - number(1), number(2))
}

/// Red when the attempts that are old enough are looked for among all.
#[tokio::test]
async fn flat_prunes_beside_many_young_attempts() {
    let database = filled("now()").await;
    database.sql(&ended(10, "(now() - interval '10 days')", 1));
    for statistics in ["select", "analyze"] {
        database.sql(statistics);
        for settings in [LONG, "set plan_cache_mode = force_generic_plan", "set plan_cache_mode = force_custom_plan"] {
            let session = Session::open(&database, settings).await;
            let (read, gone) = prune(&session, 1_000).await;
            println!("{statistics} {settings}: {read} entries read, {gone} jobs gone");
            assert_eq!(gone, 10, "{statistics} {settings}");
            assert!(read <= 100, "{statistics} {settings}: {read} entries read");
        }
    }
}

/// Dead letters stay, however old they are. Each call looks at a bounded number of them, and the next one goes on there.
#[tokio::test]
async fn flat_prunes_beside_many_old_dead_letters() {
    let database = filled("(now() - interval '20 days')").await;
    database.sql(&ended(10, "(now() - interval '10 days')", 1));
    let session = Session::open(&database, LONG).await;
    let mut gone = 0;
    for call in 0..ATTEMPTS / 10_000 + 1 {
        let (read, _) = prune(&session, 1_000).await;
        assert!(read <= 11_000, "call {call}: {read} entries read");
        gone += session
            .value("select tenure.prune(now() - interval '2 days', false, 1000)")
            .await
            .parse::<u32>()
            .expect("a number");
    }
    assert_eq!(gone, 10);
    assert_eq!(session.value("select lease from tenure.prune_mark").await, "0", "the walk begins anew");
}

/// One call of the store goes on behind the dead letters that stay. Red when it ends after the first window: pruning then
/// rests for a minute at each of them.
#[tokio::test]
async fn one_call_prunes_behind_many_old_dead_letters() {
    let database = filled("(now() - interval '20 days')").await;
    database.sql(&ended(10, "(now() - interval '10 days')", 1));
    let store = database.store(PgOptions::default()).await;
    let request = PruneJobs { older_than: Duration::from_secs(2 * 86_400), dead_too: false, limit: 1_000 };
    assert_eq!(store.prune_jobs(request).await.expect("prune"), 10);
}

/// Attempts that are not old enough are not walked over. Red when the walk goes up to ids of a day later.
#[tokio::test]
async fn flat_prunes_beside_many_attempts_of_the_last_day_of_retention() {
    let database = filled("(now() - interval '47 hours')").await;
    database.sql(&ended(10, "(now() - interval '10 days')", 1));
    let session = Session::open(&database, LONG).await;
    let (read, gone) = prune(&session, 1_000).await;
    assert!(gone == 10 && read <= 100, "{gone} jobs gone, {read} entries read");
}

/// Red when two pruners walk at the same time.
#[tokio::test]
async fn one_session_prunes_at_a_time() {
    let database = Database::new().await;
    database.sql(&ended(10, "(now() - interval '10 days')", 1));
    let (first, second) = (Session::open(&database, LONG).await, Session::open(&database, LONG).await);
    let prune = "select tenure.prune(now() - interval '2 days', false, 4)";
    first.run("begin").await;
    assert_eq!(first.value(prune).await, "4");
    assert_eq!(second.value(prune).await, "0", "another one is at it");
    first.run("commit").await;
    assert_eq!(second.value(prune).await, "4");
    assert_eq!(second.value(prune).await, "2");
}
