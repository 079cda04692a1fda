//! A transaction pooler between the store and the server: found where it must not be, and left as it was where it may be.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_contract::fixture::success;
use tenure_core::QueueName;
use tenure_postgres::{Mode, PgOptions, PgStore};
use tenure_store::lease::RenewLeases;
use tenure_store::record::JobFilter;
use tenure_store::{AdminStore, JobStore, JournalStore, LeaseStore, StoreError, WakeStore};
use tokio_postgres::Client;

use crate::database::Database;
use crate::scene::{Scene, connect, number, run, soon, text, until};

/// More than the store opens at once, and fewer than the pooler may open.
const SESSIONS: usize = 12;

fn pooled() -> PgOptions {
    PgOptions { mode: Mode::Pooled, ..PgOptions::default() }
}

async fn refusal(url: &str, mode: Mode) -> String {
    match soon("connect", PgStore::connect(url, PgOptions { mode, ..PgOptions::default() })).await {
        Err(StoreError::Invalid(invalid)) => invalid.to_string(),
        Err(error) => panic!("{mode:?}: {error:?}"),
        Ok(_) => panic!("{mode:?} was opened behind a transaction pooler"),
    }
}

/// Each session that the pooler has in this database, in a transaction of another program.
async fn sessions(database: &Database) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        let (client, connection) =
            tokio_postgres::connect(&database.pooled_url(), tokio_postgres::NoTls).await.expect("connect");
        tokio::spawn(connection);
        client.batch_execute("begin").await.expect("begin");
        clients.push(client);
    }
    clients
}

/// Every setting of a session, its role, its prepared statements and the channels it listens to.
async fn state(client: &Client) -> BTreeMap<String, String> {
    // Simple queries: what is asked leaves no prepared statement behind. The name of an application is left out: PgBouncer
    // hands it on by itself, to clients that have none.
    const LOOK: &str = "
        select name, setting from pg_settings where name <> 'application_name'
        union all select 'the role', current_user
        union all select 'prepared statement ' || name, statement from pg_prepared_statements
        union all select 'channel ' || c, '' from pg_listening_channels() c
        union all select 'advisory lock', objid::text from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()";
    // Its settings are listed once it is loaded.
    client.batch_execute("load 'plpgsql'").await.expect("load");
    let messages = client.simple_query(LOOK).await.expect("look");
    let rows = messages.iter().filter_map(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => Some(row),
        _ => None,
    });
    rows.map(|row| (row.get(0).unwrap_or_default().to_owned(), row.get(1).unwrap_or_default().to_owned())).collect()
}

/// What other programs find on the pooler's sessions is what a new session of the server has.
async fn assert_sessions_are_clean(database: &Database) {
    let fresh = connect(&database.url).await;
    run(&fresh, "reset all; begin").await;
    let expected = state(&fresh).await;
    for client in sessions(database).await {
        let found = state(&client).await;
        let changed: Vec<_> = found.iter().filter(|(name, value)| expected.get(*name) != Some(*value)).collect();
        assert!(changed.is_empty(), "another program finds {changed:?}");
        assert_eq!(found.len(), expected.len());
        client.batch_execute("commit").await.expect("commit");
    }
}

/// Red without the check, and when settings are sent before it.
#[tokio::test]
async fn a_transaction_pooler_is_refused_and_nothing_is_left_on_its_sessions() {
    let database = Database::new().await;
    // The pooler has several sessions, all idle.
    for client in sessions(&database).await {
        client.batch_execute("commit").await.expect("commit");
    }
    for mode in [Mode::Direct, Mode::PollOnly] {
        for _ in 0..5 {
            let said = refusal(&database.pooled_url(), mode).await;
            assert!(said.contains("transaction pooler") && said.contains("pooler = \"transaction\""), "{said}");
        }
    }
    assert_sessions_are_clean(&database).await;
}

/// Other programs take and give back sessions meanwhile.
#[tokio::test]
async fn a_busy_transaction_pooler_is_refused_as_well() {
    let database = Database::new().await;
    let mut others = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let client = connect(&database.pooled_url()).await;
        others.spawn(async move {
            loop {
                client.simple_query("select 1").await.expect("select");
            }
        });
    }
    for _ in 0..10 {
        refusal(&database.pooled_url(), Mode::Direct).await;
    }
    others.shutdown().await;
}

/// Two sessions of the server itself are never taken for one: every store of a test suite would be refused.
#[tokio::test]
async fn a_server_itself_is_not_taken_for_a_pooler() {
    let database = Database::new().await;
    for mode in [Mode::Direct, Mode::PollOnly] {
        for _ in 0..10 {
            database.store(PgOptions { mode, ..PgOptions::default() }).await;
        }
    }
}

/// Every kind of verb: short, hasty, long, of several statements, the user's own. Red when one sets something for its session.
#[tokio::test]
async fn a_pooled_store_leaves_nothing_on_a_session() {
    let scene = Scene::with(pooled()).await;
    let store = &scene.store;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 4).await;
    store.renew_leases(RenewLeases { worker, leases: vec![lease] }).await.expect("renew");
    scene.end_all(worker, lease, &jobs, &success()).await;
    store.enqueue_jobs((0..1_000).map(|_| scene.new_job()).collect()).await.expect("enqueue many");
    scene.claim_batch(worker, 2).await;
    scene.advance(Duration::from_secs(61));
    store.reclaim_jobs(None, 10).await.expect("reclaim");
    store.list_jobs(&JobFilter::default()).await.expect("list");
    store.migrate().await.expect("migrate");
    store.list_migrations().await.expect("list migrations");
    while store.seal_journal().await.expect("seal").is_some() {}
    let mut own = store.own().await.expect("a connection");
    own.query("select 1 as one", &[]).await.expect("a query");
    let tx = own.begin().await.expect("begin");
    tx.enqueue(&[scene.new_job()]).await.expect("enqueue");
    tx.commit().await.expect("commit");
    drop(own);
    assert_sessions_are_clean(&scene.database).await;
    scene.assert_sound().await;
}

/// A transaction of several statements has a limit of its own on the server, too: the pooler does not stop a statement whose
/// client has gone.
#[tokio::test]
async fn a_transaction_behind_a_pooler_has_a_time_limit_on_the_server() {
    let scene = Scene::with(PgOptions { long_deadline: Duration::from_secs(20), ..pooled() }).await;
    let mut own = scene.store.own().await.expect("a connection");
    let tx = own.begin().await.expect("begin");
    let found = tx.query("select current_setting('statement_timeout') as at_most", &[]).await.expect("a query");
    assert_eq!(found[0].get::<String>("at_most").expect("a text"), "18s");
}

/// Behind a pooler workers are woken where the server itself is named. Red when the listener goes through the pooler, or
/// when the enqueue does not notify.
#[tokio::test]
async fn a_direct_url_wakes_workers_behind_a_pooler() {
    let database = Database::new().await;
    let options = PgOptions { direct_url: Some(database.url.clone()), ..pooled() };
    let (worker, producer) = (database.store(options.clone()).await, database.store(options).await);
    let look = connect(&database.url).await;
    let waiter = worker.clone();
    let waiting = tokio::spawn(async move { waiter.wait_for_work(&[QueueName::default()]).await });
    let listens =
        "exists (select from pg_stat_activity where datname = current_database() and query = 'listen tenure')";
    until(&look, "it listens", &format!("select {listens}")).await;
    worker.push_idle(&QueueName::default()).await.expect("push idle");
    let job = tenure_core::JobId::from_parts(worker.now().await.expect("the time"), [7; 10]);
    let kind = "noop".parse().expect("a kind");
    let job = tenure_core::NewJob::new(job, kind, tenure_core::Json::null());
    producer.enqueue_jobs(vec![job]).await.expect("enqueue");
    soon("the wake-up", waiting).await.expect("no panic").expect("woken");
    assert_eq!(number(&look, "select count(*) from tenure.job").await, 1);
    assert_eq!(text(&look, "select count(*) from pg_listening_channels()").await, "0");
}

/// A listener behind the pooler would hear nothing, and its session would listen for other programs.
#[tokio::test]
async fn a_direct_url_that_leads_to_the_pooler_is_refused() {
    let database = Database::new().await;
    let options = PgOptions { direct_url: Some(database.pooled_url()), ..pooled() };
    let store = database.store(options).await;
    let refused = soon("the refusal", store.wait_for_work(&[QueueName::default()])).await.expect_err("a pooler");
    let said = refused.to_string();
    assert!(said.starts_with("direct database ") && said.contains("transaction pooler"), "{said}");
    assert_sessions_are_clean(&database).await;
}
