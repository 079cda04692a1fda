//! Connections: what is lost is said as passing, what hangs is given up, and nothing is left open behind it.

use std::future::Future;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use tenure_contract::fixture::{cancel, success};
use tenure_contract::pgbouncer;
use tenure_core::{How, LeaseNo, QueueName, WorkerId};
use tenure_postgres::{Mode, PgOptions, PgStore};
use tenure_store::lease::{ClaimJobs, Ended, RenewLeases};
use tenure_store::operate::{PruneJobs, SetQueue};
use tenure_store::record::JobFilter;
use tenure_store::{AdminStore, JobStore, JournalStore, LeaseStore, StoreError};
use tokio::net::TcpListener;
use tokio_postgres::Client;

use crate::scene::{Scene, number, run, soon, text, until};

const OURS: &str = "from pg_stat_activity where datname = current_database() and application_name = 'tenure'";

/// The modes that can be tried here.
fn modes() -> Vec<Mode> {
    let pooler = std::env::var_os(pgbouncer::URL_VARIABLE).map(|_| Mode::Pooled);
    [Mode::Direct].into_iter().chain(pooler).collect()
}

async fn register(store: &PgStore) -> Result<WorkerId, StoreError> {
    soon("register", store.register_worker(&"w".parse().expect("a name"))).await
}

/// Asks until the store answers; every error before is a passing one. Answers how many there were.
async fn errors_until_it_answers(store: &PgStore) -> usize {
    for errors in 0..20 {
        match register(store).await {
            Ok(_) => return errors,
            Err(error) => assert!(error.is_passing(), "{error:?}"),
        }
    }
    panic!("it never recovers");
}

async fn assert_nothing_is_left_open(look: &Client) {
    assert_nothing_is_left_open_but(look, 0).await;
}

async fn assert_nothing_is_left_open_but(look: &Client, known: u32) {
    let idle = "select count(*) from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'";
    until(look, "no transaction is left open", &format!("select ({idle}) = {known}")).await;
}

/// SQLSTATE 57P01. Red when a dead connection goes back into the pool, or its error counts as a final one.
#[tokio::test]
async fn a_store_whose_backends_were_all_terminated_recovers() {
    let scene = Scene::new().await;
    let look = scene.client().await;
    for _ in 0..3 {
        let warm = async |_: u32| register(&scene.store).await.expect("register");
        tokio::join!(warm(1), warm(2), warm(3));
        let killed = number(&look, &format!("select count(pg_terminate_backend(pid)) {OURS}")).await;
        assert!(killed >= 3, "{killed}");
        assert!(errors_until_it_answers(&scene.store).await <= 4, "each dead connection is met once");
    }
    scene.assert_sound().await;
}

/// A backend is killed in the middle of a statement.
#[tokio::test]
async fn a_statement_whose_backend_was_terminated_is_passing() {
    for mode in modes() {
        let scene = Scene::with(PgOptions { mode, ..PgOptions::default() }).await;
        let (look, holder) = (scene.client().await, scene.client().await);
        run(&holder, "begin; select from tenure.queue for update").await;
        let store = scene.store.clone();
        let setting = tokio::spawn(async move { store.set_queue(slower()).await });
        let waits = format!("{OURS} and wait_event_type = 'Lock'");
        until(&look, "it waits", &format!("select exists (select {waits})")).await;
        assert_eq!(number(&look, &format!("select count(pg_terminate_backend(pid)) {waits}")).await, 1);
        let lost = soon("the answer", setting).await.expect("no panic");
        assert!(lost.as_ref().is_err_and(StoreError::is_passing), "{mode:?}: {lost:?}");
        run(&holder, "rollback").await;
        errors_until_it_answers(&scene.store).await;
    }
}

fn slower() -> SetQueue {
    SetQueue::new(QueueName::default(), Duration::from_secs(90))
}

/// SQLSTATE 25006: the server was made a standby. Red when that is a final error, or when a connection to a server that
/// no longer takes writes goes back into the pool.
#[tokio::test]
async fn a_read_only_server_is_unavailable_until_it_takes_writes_again() {
    for mode in modes() {
        let scene = Scene::with(PgOptions { mode, ..PgOptions::default() }).await;
        let (look, name) = (scene.client().await, &scene.database.name);
        register(&scene.store).await.expect("register");
        for read_only in [true, false] {
            run(&look, &format!("alter database {name} set default_transaction_read_only = {read_only}")).await;
            run(&look, &format!("select pg_terminate_backend(pid) {OURS}")).await;
            if !read_only {
                errors_until_it_answers(&scene.store).await;
                continue;
            }
            until_said(&scene.store, "read-only").await;
        }
        scene.enqueue().await;
        scene.assert_sound().await;
    }
}

/// Asks until the store gives this reason; every error is a passing one.
async fn until_said(store: &PgStore, reason: &str) {
    for _ in 0..20 {
        let error = register(store).await.expect_err("it takes no writes");
        assert!(error.is_passing(), "{error:?}");
        if reasons(&error).contains(reason) {
            return;
        }
    }
    panic!("nobody says {reason}");
}

/// An error and everything behind it.
fn reasons(error: &StoreError) -> String {
    let mut reasons = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        reasons += &format!(": {error}");
        source = error.source();
    }
    reasons
}

/// Somebody holds a row that a verb needs. Red without a deadline, or when giving up leaves the transaction open.
#[tokio::test]
async fn a_statement_that_hangs_is_given_up_within_the_deadline() {
    for mode in modes() {
        let scene = Scene::with(PgOptions { mode, ..PgOptions::default() }).await;
        let (look, holder) = (scene.client().await, scene.client().await);
        let store = impatient_store(&scene, mode).await;
        errors_until_it_answers(&store).await;
        run(&holder, "begin; select from tenure.queue for update").await;
        let given_up = soon("the answer", store.set_queue(slower())).await.expect_err("somebody has the row");
        let why = reasons(&given_up);
        // Neither is the lock timeout, which is longer: it was the deadline, told by the server or by our own clock.
        assert!(
            given_up.is_passing() && (why.contains("statement timeout") || why.contains("no answer within")),
            "{mode:?}: {why}"
        );
        assert_nothing_is_left_open_but(&look, 1).await;
        run(&holder, "rollback").await;
        assert_nothing_is_left_open(&look).await;
        errors_until_it_answers(&store).await;
        assert_eq!(text(&look, "select lease_ttl_ms from tenure.queue where name = 'default'").await, "60000");
    }
}

/// A store with a deadline of 300 ms, once the machine manages to connect within that.
async fn impatient_store(scene: &Scene, mode: Mode) -> PgStore {
    let options = PgOptions { mode, deadline: Duration::from_millis(300), ..PgOptions::default() };
    let url = if mode == Mode::Pooled { scene.database.pooled_url() } else { scene.database.url.clone() };
    for _ in 0..50 {
        match PgStore::connect(&url, options.clone()).await {
            Ok(store) => return store,
            Err(error) => assert!(error.is_passing(), "{error:?}"),
        }
    }
    panic!("this machine is too slow");
}

/// A server that takes the connection and says nothing. Red without a deadline on connecting.
#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.expect("listen");
    let url = format!("postgres://nobody@{}/nothing", silent.local_addr().expect("an address"));
    let options = PgOptions {
        deadline: Duration::from_millis(200),
        long_deadline: Duration::from_millis(200),
        ..PgOptions::default()
    };
    let given_up = soon("connecting", PgStore::connect(&url, options)).await.err().expect("nobody is there");
    assert!(given_up.is_passing(), "{given_up:?}");
}

/// Polls a future so many times and drops it.
async fn cut_off<F: Future>(polls: usize, future: F) {
    let mut future = pin!(future);
    let mut left = polls;
    std::future::poll_fn(|cx| {
        if left == 0 || future.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        left -= 1;
        Poll::Pending
    })
    .await;
}

/// One verb after the other, as long as somebody waits for it.
async fn some_verb(scene: &Scene, worker: WorkerId, round: usize) {
    let store = &scene.store;
    let claim = ClaimJobs::new(worker, QueueName::default(), 3);
    // What it answers is of no interest: whoever asked has gone.
    match round % 8 {
        0 | 1 => drop(store.enqueue_jobs(vec![scene.new_job()]).await),
        2 => drop(store.claim_jobs(claim).await),
        3 => drop(store.seal_journal().await),
        4 => drop(store.list_jobs(&JobFilter::default()).await),
        5 => drop(store.renew_leases(RenewLeases { worker, leases: vec![] }).await),
        6 => drop(store.prune_jobs(PruneJobs { older_than: Duration::ZERO, dead_too: true, limit: 10 }).await),
        _ => drop(store.cancel_job(cancel(scene.new_id(), true)).await),
    }
}

/// Callers lose patience at every point of a call. Red when a cut-off verb leaves its transaction open, or a connection
/// in the pool that answers somebody else's question.
#[tokio::test]
async fn calls_that_are_cut_off_leave_nothing_open() {
    for mode in modes() {
        let scene = Scene::with(PgOptions { mode, connections_max: 3, ..PgOptions::default() }).await;
        let look = scene.client().await;
        let worker = scene.worker("w").await;
        for round in 0..200 {
            let (kind, point) = (round / 2, round / 16);
            if round % 2 == 0 {
                cut_off(point, some_verb(&scene, worker, kind)).await;
            } else {
                let patience = Duration::from_micros(point as u64 * 160);
                let _cut = tokio::time::timeout(patience, some_verb(&scene, worker, kind)).await;
            }
        }
        assert_nothing_is_left_open(&look).await;
        scene.store.release_unknown(worker, vec![], LeaseNo::MAX).await.expect("release");
        let (lease, jobs) = soon("claim", scene.claim_batch(worker, 1)).await;
        assert_eq!(scene.end_all(worker, lease, &jobs, &success()).await, [Ended::Now(How::Succeeded)]);
        let register = async |_: u32| register(&scene.store).await.expect("register");
        tokio::join!(register(1), register(2), register(3), register(4));
        scene.assert_sound().await;
        assert_nothing_is_left_open(&look).await;
    }
}

/// S19: our transactions are READ COMMITTED whatever the database says. A reclaim with one snapshot would look for
/// endings at a time before its locks, a sealer would follow a seal that is no longer the last.
#[tokio::test]
async fn every_transaction_of_ours_is_read_committed() {
    const NOTE: &str = "
        create table seen (place text, isolation text);
        create function note() returns trigger language plpgsql as $$ begin
          insert into seen values (tg_table_name || ' ' || tg_op, current_setting('transaction_isolation'));
          return null;
        end $$;";
    for mode in [vec![Mode::PollOnly], modes()].concat() {
        let scene = Scene::with(PgOptions { mode, ..PgOptions::default() }).await;
        let (look, name) = (scene.client().await, &scene.database.name);
        run(&look, NOTE).await;
        for table in ["worker", "job", "lease", "attempt", "journal", "seal"] {
            run(
                &look,
                &format!(
                    "create trigger note after insert or delete on tenure.{table} for each row execute function note()"
                ),
            )
            .await;
        }
        run(&look, &format!("alter database {name} set default_transaction_isolation = 'serializable'")).await;
        run(&look, &format!("select pg_terminate_backend(pid) {OURS}")).await;
        errors_until_it_answers(&scene.store).await;
        let worker = scene.worker("w").await;
        scene.claim_batch(worker, 2).await;
        scene.advance(Duration::from_secs(61));
        assert_eq!(scene.store.reclaim_jobs(None, 10).await.expect("reclaim").len(), 2);
        scene.assert_sound().await;
        let others = "select string_agg(distinct place || ' is ' || isolation, ', ') from seen where isolation <> 'read committed'";
        assert_eq!(text(&look, &format!("select coalesce(({others}), '')")).await, "", "{mode:?}");
        assert!(number(&look, "select count(distinct place) from seen").await >= 7);
    }
}
