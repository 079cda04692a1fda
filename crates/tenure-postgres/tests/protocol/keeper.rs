//! A separate store: connections of its own, on a runtime of its own.

use std::time::Duration;

use tenure_postgres::{PgOptions, PgStore};
use tenure_store::AdminStore;
use tenure_store::operate::PruneJobs;
use tokio::runtime::Builder;

use crate::database::Database;
use crate::scene::{Scene, number, run, soon, text, until};

/// The only connection for long verbs is taken and stuck. Red when the separate store shares it.
#[tokio::test]
async fn a_separate_store_answers_while_the_other_is_stuck() {
    let scene = Scene::with(PgOptions { connections_max: 1, ..PgOptions::default() }).await;
    let worker = scene.worker("w").await;
    let separate = scene.store.separate().await.expect("separate");
    let (look, holder) = (scene.client().await, scene.client().await);
    run(&holder, "begin; lock table tenure.attempt in access exclusive mode").await;
    let store = scene.store.clone();
    let prune = PruneJobs { older_than: Duration::ZERO, dead_too: false, limit: 1 };
    let stuck = tokio::spawn(async move { store.prune_jobs(prune).await });
    let waits = "from pg_stat_activity where datname = current_database() and application_name = 'tenure' and wait_event_type = 'Lock'";
    until(&look, "it waits", &format!("select exists (select {waits})")).await;
    let workers = soon("a list", separate.list_workers(1)).await.expect("list workers");
    assert_eq!(workers[0].id, worker);
    assert!(!stuck.is_finished(), "the other still waits");
    run(&holder, "rollback").await;
    assert_eq!(soon("the stuck one", stuck).await.expect("no panic").expect("prune"), 0);
}

/// Its connections say what they are for, also when the URL gives a name. They are few.
#[tokio::test]
async fn the_connections_of_a_separate_store_are_named() {
    let database = Database::new().await;
    let store = PgStore::connect(&format!("{}?application_name=app", database.url), PgOptions::default()).await;
    let store = store.expect("connect");
    let separate = store.separate().await.expect("separate");
    let now = async || separate.now().await.expect("now");
    tokio::join!(now(), now(), now(), now(), now(), now());
    let look = crate::scene::connect(&database.url).await;
    let names = "select string_agg(distinct application_name, ' ' order by application_name) from pg_stat_activity
        where datname = current_database() and application_name <> ''";
    assert_eq!(text(&look, names).await, "app tenure-keeper");
    let keepers = "select count(*) from pg_stat_activity where application_name = 'tenure-keeper' and datname = current_database()";
    assert!((1..=2).contains(&number(&look, keepers).await));
}

/// The store's own runtime stands still: nothing that was spawned there moves, its connections answer nobody. Red when
/// anything of the separate store lives there.
#[test]
fn a_separate_store_needs_nothing_of_the_runtime_it_came_from() {
    let runtime = || Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (still, other) = (runtime(), runtime());
    let (database, store) = still.block_on(async {
        let database = Database::new().await;
        let store = database.store(PgOptions::default()).await;
        store.now().await.expect("now");
        (database, store)
    });
    other.block_on(async {
        let separate = store.separate().await.expect("separate");
        let before = soon("now", separate.now()).await.expect("now");
        assert!(soon("now", separate.now()).await.expect("now") > before, "the server's clock moves");
        soon("a list", separate.list_queues()).await.expect("list queues");
    });
    drop((store, other, still, database));
}
