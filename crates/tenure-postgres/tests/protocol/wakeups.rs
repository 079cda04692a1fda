//! Wake-ups: a notification is sent when somebody waits for it, and only then; a lost listener is said, not slept over.

use tenure_core::{NewJob, QueueName};
use tenure_postgres::{PgOptions, PgStore, tx};
use tenure_store::{JobStore, StoreError, WakeStore};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Client, NoTls};

use crate::scene::{Scene, number, run, soon, until};

const LISTENERS: &str =
    "from pg_stat_activity where datname = current_database() and query = 'listen tenure' and state = 'idle'";

/// A waiter that hears whatever is said from now on.
async fn wait(store: &PgStore, look: &Client) -> JoinHandle<Result<(), StoreError>> {
    let store = store.clone();
    let waiting = tokio::spawn(async move { store.wait_for_work(&[QueueName::default()]).await });
    until(look, "it listens", &format!("select exists (select {LISTENERS})")).await;
    waiting
}

async fn kill_listeners(look: &Client) {
    let killed = number(look, &format!("select count(pg_terminate_backend(pid)) {LISTENERS}")).await;
    assert!(killed > 0);
    until(look, "it is gone", &format!("select not exists (select {LISTENERS})")).await;
}

/// A raw connection that hears what is said on our channel.
struct Ear {
    heard: mpsc::UnboundedReceiver<String>,
    /// Keeps the connection open.
    _client: Client,
}

impl Ear {
    async fn on(scene: &Scene) -> Self {
        let (client, mut connection) = tokio_postgres::connect(&scene.database.url, NoTls).await.expect("connect");
        let (say, heard) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(Ok(message)) = std::future::poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(said) = message {
                    say.send(said.payload().to_owned()).expect("the test listens");
                }
            }
        });
        client.batch_execute("listen tenure").await.expect("listen");
        Self { heard, _client: client }
    }

    async fn next(&mut self) -> String {
        soon("a notification", self.heard.recv()).await.expect("the connection lives")
    }
}

/// Red when nobody notifies, or the waiter does not listen before it says that it is idle.
#[tokio::test]
async fn an_enqueue_by_another_process_wakes_an_idle_worker() {
    let scene = Scene::new().await;
    let look = scene.client().await;
    let producer = scene.other_store(PgOptions::default()).await;
    let waiting = wait(&scene.store, &look).await;
    scene.store.push_idle(&QueueName::default()).await.expect("push idle");
    producer.enqueue_jobs(vec![scene.new_job()]).await.expect("enqueue");
    soon("the wake-up", waiting).await.expect("no panic").expect("woken");
}

#[tokio::test]
async fn an_enqueue_by_plain_sql_wakes_an_idle_worker() {
    let scene = Scene::new().await;
    let look = scene.client().await;
    for sql in ["select * from tenure.enqueue('noop')", r#"select * from tenure.enqueue_many('[{"kind": "noop"}]')"#] {
        let waiting = wait(&scene.store, &look).await;
        scene.store.push_idle(&QueueName::default()).await.expect("push idle");
        run(&look, sql).await;
        soon(sql, waiting).await.expect("no panic").expect("woken");
    }
}

/// Notifications serialise commits, so none is sent for nobody. Red when an enqueue notifies regardless.
#[tokio::test]
async fn nothing_is_said_while_nobody_is_idle() {
    let scene = Scene::new().await;
    let producer = scene.client().await;
    let mut ear = Ear::on(&scene).await;
    scene.enqueue().await;
    tx::enqueue_within(&producer, &[scene.new_job()]).await.expect("enqueue");
    run(&producer, "select * from tenure.enqueue('noop'); notify tenure, 'marker'").await;
    assert_eq!(ear.next().await, "marker", "it is the first thing said");

    // And one that is idle hears of its own queue only.
    scene.store.push_idle(&QueueName::default()).await.expect("push idle");
    run(
        &producer,
        "select * from tenure.enqueue('noop', queue => 'other');
         select * from tenure.enqueue('noop'); notify tenure, 'marker'",
    )
    .await;
    assert_eq!((ear.next().await, ear.next().await), ("default".to_owned(), "marker".to_owned()));
}

/// Red when the notification is sent outside of the transaction: the worker would look before the job is there.
#[tokio::test]
async fn an_enqueue_within_a_transaction_wakes_at_its_commit() {
    let scene = Scene::new().await;
    let (user, other) = (scene.client().await, scene.client().await);
    let mut ear = Ear::on(&scene).await;
    scene.store.push_idle(&QueueName::default()).await.expect("push idle");
    run(&user, "begin").await;
    tx::enqueue_within(&user, &[scene.new_job()]).await.expect("enqueue");
    run(&other, "notify tenure, 'marker'").await;
    assert_eq!(ear.next().await, "marker");
    run(&user, "commit").await;
    assert_eq!(ear.next().await, "default");

    run(&user, "begin").await;
    tx::enqueue_within(&user, &[scene.new_job()]).await.expect("enqueue");
    run(&user, "rollback; notify tenure, 'marker'").await;
    assert_eq!(ear.next().await, "marker", "a rolled-back enqueue says nothing");
}

/// A worker goes idle on a queue that an open transaction has brought as well. Red when only the enqueue looks for idle
/// workers: it found no queue.
#[tokio::test]
async fn a_transaction_that_brings_a_queue_wakes_workers_that_went_idle_there_since() {
    let scene = Scene::new().await;
    let user = scene.client().await;
    let mut ear = Ear::on(&scene).await;
    let job = || NewJob { queue: "mail".parse().expect("a queue"), ..scene.new_job() };
    run(&user, "begin").await;
    tx::enqueue_within(&user, &[job()]).await.expect("enqueue");
    scene.store.enqueue_jobs(vec![job()]).await.expect("enqueue");
    scene.store.push_idle(&job().queue).await.expect("push idle");
    run(&user, "commit").await;
    assert_eq!(ear.next().await, "mail");
}

/// Red when a lost connection is slept over: the waiter would never hear of anything again.
#[tokio::test]
async fn a_killed_listener_is_an_error_and_the_next_wait_works() {
    let scene = Scene::new().await;
    let look = scene.client().await;
    let waiting = wait(&scene.store, &look).await;
    kill_listeners(&look).await;
    let lost = soon("the loss", waiting).await.expect("no panic");
    assert!(lost.as_ref().is_err_and(StoreError::is_passing), "{lost:?}");
    hear_again(&scene, &look).await;
}

/// The same while nobody waits. Red when the store keeps a listener that is dead: the next waiter would hang.
#[tokio::test]
async fn a_listener_killed_while_nobody_waits_does_not_make_the_next_wait_hang() {
    let scene = Scene::new().await;
    let look = scene.client().await;
    let waiting = wait(&scene.store, &look).await;
    run(&look, "notify tenure, 'default'").await;
    soon("the wake-up", waiting).await.expect("no panic").expect("woken");
    kill_listeners(&look).await;
    hear_again(&scene, &look).await;
}

/// Waits as a worker does, again after an error, until it was woken.
async fn hear_again(scene: &Scene, look: &Client) {
    let store = scene.store.clone();
    let woken = tokio::spawn(async move {
        let mut errors = 0;
        while store.wait_for_work(&[QueueName::default()]).await.is_err() {
            errors += 1;
            assert!(errors < 3, "an error is said once");
        }
    });
    until(look, "it listens again", &format!("select exists (select {LISTENERS})")).await;
    scene.store.push_idle(&QueueName::default()).await.expect("push idle");
    scene.enqueue().await;
    soon("the wake-up", woken).await.expect("woken");
}

/// Red when the listening connection keeps itself alive: a process that opens stores would collect them.
#[tokio::test]
async fn a_dropped_store_stops_listening() {
    let scene = Scene::new().await;
    let look = scene.client().await;
    let store = scene.other_store(PgOptions::default()).await;
    let waiting = wait(&store, &look).await;
    waiting.abort();
    drop((store, waiting.await));
    until(&look, "nobody listens", &format!("select not exists (select {LISTENERS})")).await;
}

/// Several waiters share one connection.
#[tokio::test]
async fn waiters_of_one_store_share_a_listener() {
    let scene = Scene::new().await;
    let look = scene.client().await;
    let waiters = [wait(&scene.store, &look).await, wait(&scene.store, &look).await, wait(&scene.store, &look).await];
    assert_eq!(number(&look, &format!("select count(*) {LISTENERS}")).await, 1);
    // All of them are woken; one that subscribed a moment too late for the first word hears a later one.
    for waiting in waiters {
        while !waiting.is_finished() {
            run(&look, "notify tenure, 'default'").await;
        }
        waiting.await.expect("no panic").expect("woken");
    }
}
