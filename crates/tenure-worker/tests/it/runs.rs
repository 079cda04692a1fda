//! Runs: pages that commit with their rows, and the one job that waits for all of them.

use serde::{Deserialize, Serialize};
use tenure_core::{How, RunId, RunState, State as JobState};
use tenure_sqlite::{SqliteStore, Transaction};
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::run::{OperatePartition, PartitionAct};
use tenure_store::{AdminStore, JobStore, RunStore};
use tenure_worker::{Client, Completed, Fail, Job, Page, State, Worker};

/// Rows `from..to` of a source, thirty a page.
#[derive(Serialize, Deserialize)]
struct Stones {
    from: u64,
    to: u64,
}
impl Job for Stones {
    const KIND: &'static str = "stones";
}

#[derive(Serialize, Deserialize)]
struct Publish;
impl Job for Publish {
    const KIND: &'static str = "publish";
}

const LIMIT: u32 = 30;

async fn stores() -> (SqliteStore, Client) {
    let store = SqliteStore::in_memory(tenure_sqlite::SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    let tables = |tx: &Transaction<'_, '_>| {
        let sql = "create table stone (id integer not null); create table published (stones integer not null)";
        tx.connection().execute_batch(sql).map_err(tenure_store::StoreError::unavailable)
    };
    store.transaction(tables).await.unwrap();
    let client = Client::new(&store);
    (store, client)
}

/// The rows of a page, which are there as soon as their offset has moved.
fn page_of(job: &Stones, page: &Page) -> Vec<u64> {
    (job.from + page.offset()..job.to).take(page.limit() as usize).collect()
}

fn store_page(tx: &Transaction<'_, '_>, page: &Page, stones: &[u64]) -> Result<Completed, Fail> {
    for stone in stones {
        tx.connection().execute("insert into stone (id) values (?1)", [i64::try_from(*stone).unwrap()])?;
    }
    page.advance(tx, stones.len() as u64)
}

async fn ingest(job: Stones, State(store): State<SqliteStore>, page: Page) -> Result<Completed, Fail> {
    let stones = page_of(&job, &page);
    store.transaction(move |tx| store_page(tx, &page, &stones)).await
}

async fn publish(_: Publish, State(store): State<SqliteStore>) -> Result<(), Fail> {
    let sql = "insert into published (stones) select count(*) from stone";
    store.transaction(move |tx| Ok::<_, Fail>(tx.connection().execute(sql, [])?)).await?;
    Ok(())
}

fn worker(store: &SqliteStore) -> Worker {
    Worker::builder(store).queue("default", 4).state(store.clone()).handle(ingest).handle(publish).build().unwrap()
}

async fn numbers(store: &SqliteStore, sql: &'static str) -> Vec<i64> {
    let read = move |tx: &Transaction<'_, '_>| {
        let mut statement = tx.connection().prepare(sql).map_err(tenure_store::StoreError::unavailable)?;
        let rows = statement.query_map([], |row| row.get(0)).map_err(tenure_store::StoreError::unavailable)?;
        rows.collect::<Result<_, _>>().map_err(tenure_store::StoreError::unavailable)
    };
    store.transaction(read).await.unwrap()
}

async fn state(client: &Client, run: RunId) -> RunState {
    client.show_run(run).await.unwrap().run.state
}

#[tokio::test]
async fn a_catalogue_is_stored_page_by_page_and_published_once() {
    let (store, client) = stores().await;
    let run = client
        .new_run()
        .source("catalogue")
        .partition("a", client.enqueue(Stones { from: 0, to: 95 }), LIMIT)
        .expected(95)
        .partition("b", client.enqueue(Stones { from: 95, to: 155 }), LIMIT)
        .partition("none", client.enqueue(Stones { from: 155, to: 155 }), LIMIT)
        .consolidate(client.enqueue(Publish))
        .await
        .unwrap();
    let summary = worker(&store).run_until_idle().await.unwrap();
    assert_eq!(numbers(&store, "select id from stone order by id").await, (0..155).collect::<Vec<_>>());
    assert_eq!(numbers(&store, "select stones from published").await, [155], "once, and not before all were there");
    let record = client.show_run(run).await.unwrap();
    assert_eq!((record.run.state, record.run.done, record.rows), (RunState::Succeeded, 3, 155));
    // Four pages, three (the last of them empty), one; and the publication.
    assert_eq!(summary.succeeded, 4 + 3 + 1 + 1);
    let offsets: Vec<u64> =
        client.partitions_of(run).await.unwrap().iter().map(|partition| partition.next_offset).collect();
    assert_eq!(offsets, [95, 60, 0]);
    assert!(store.find_violations(10).await.unwrap().is_empty());
}

#[tokio::test]
async fn rows_that_are_rolled_back_move_nothing() {
    let (store, client) = stores().await;
    let flaky = |job: Stones, State(store): State<SqliteStore>, page: Page, ctx: tenure_worker::Ctx| async move {
        let (stones, first) = (page_of(&job, &page), ctx.attempt() == 1);
        store
            .transaction(move |tx| match store_page(tx, &page, &stones) {
                Ok(_) if first => Err(Fail::transient("the disk is full").retry_in(std::time::Duration::ZERO)),
                answer => answer,
            })
            .await
    };
    let run = client.new_run().partition("a", client.enqueue(Stones { from: 0, to: 40 }), LIMIT).await.unwrap();
    let worker = Worker::builder(&store).queue("default", 1).state(store.clone()).handle(flaky).build().unwrap();
    let summary = worker.run_until_idle().await.unwrap();
    assert_eq!((summary.succeeded, summary.failed), (2, 2), "each page failed once");
    assert_eq!(numbers(&store, "select id from stone order by id").await, (0..40).collect::<Vec<_>>());
    assert_eq!(state(&client, run).await, RunState::Succeeded);
}

#[tokio::test]
async fn a_page_that_is_repeated_does_nothing_and_says_so() {
    let (store, client) = stores().await;
    let first = client.enqueue(Stones { from: 0, to: 70 });
    let run = client.new_run().partition("a", first, LIMIT).await.unwrap();
    // The first page is given up, and its partition begins again with another job.
    let old = client.partitions_of(run).await.unwrap()[0].job;
    let again = tenure_core::JobId::from_parts(store.now().await.unwrap(), [7; 10]);
    let act = PartitionAct::Reset { offset: 0, job: again };
    let reset =
        OperatePartition { sight: Sight::All, run, partition: "a".parse().unwrap(), act, word: Word::default() };
    store.operate_partition(reset).await.unwrap();
    client.requeue(old).await.unwrap();
    worker(&store).run_until_idle().await.unwrap();
    assert_eq!(numbers(&store, "select id from stone order by id").await, (0..70).collect::<Vec<_>>());
    let record = client.show(old).await.unwrap();
    let last = record.attempts.last().unwrap();
    let result = last.result.as_ref().unwrap().as_str().replace(' ', "");
    assert_eq!((record.summary.state, last.how), (JobState::Succeeded, How::Succeeded));
    assert!(result.starts_with(r#"{"skipped":"offset_mismatch","expected":"#), "{result}");
    assert_eq!(state(&client, run).await, RunState::Succeeded);
}

#[tokio::test]
async fn a_handler_that_says_nothing_of_its_page_fails_the_partition() {
    let (store, client) = stores().await;
    let silent = |_: Stones| async {};
    let run = client
        .new_run()
        .partition("a", client.enqueue(Stones { from: 0, to: 40 }), LIMIT)
        .consolidate(client.enqueue(Publish))
        .await
        .unwrap();
    let worker = Worker::builder(&store).queue("default", 1).handle(silent).build().unwrap();
    worker.run_until_idle().await.unwrap();
    let (record, partitions) = (client.show_run(run).await.unwrap(), client.partitions_of(run).await.unwrap());
    assert_eq!((record.run.state, partitions[0].state), (RunState::Failed, RunState::Failed));
    assert!(partitions[0].last_error.as_ref().unwrap().as_str().contains("without advance or finish"));
    assert_eq!(client.show(record.consolidate.unwrap()).await.unwrap().summary.state, JobState::Canceled);
}

#[tokio::test]
async fn a_job_that_is_no_page_is_told_so() {
    let (store, client) = stores().await;
    let job = client.enqueue(Stones { from: 0, to: 1 }).await.unwrap().job();
    worker(&store).run_until_idle().await.unwrap();
    let record = store.show_job(&Sight::All, job).await.unwrap();
    assert_eq!(record.summary.state, JobState::Failed);
    assert!(record.summary.error.unwrap().as_str().contains("is no page of a run"));
}

#[tokio::test]
async fn a_run_of_items_grows_and_is_sealed() {
    let (store, client) = stores().await;
    let run = client.new_run().open().owner("ana").item(client.enqueue(Publish)).await.unwrap();
    let added = client.add_to_run(run).items(client.enqueue_many([Publish, Publish])).await.unwrap();
    assert_eq!((added.members, added.found), (2, 0));
    worker(&store).run_until_idle().await.unwrap();
    assert_eq!(state(&client, run).await, RunState::Running);
    client.seal_run(run).await.unwrap();
    assert!(client.add_to_run(run).item(client.enqueue(Publish)).await.is_err(), "it is sealed");
    worker(&store).run_until_idle().await.unwrap();
    assert_eq!(state(&client, run).await, RunState::Succeeded);
}

/// A whole process: its duty counts, and what it opens is run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_process_counts_by_itself() {
    let (store, client) = stores().await;
    let done = std::sync::Arc::new(tokio::sync::Notify::new());
    let publish = {
        let done = std::sync::Arc::clone(&done);
        move |_: Publish| {
            let done = std::sync::Arc::clone(&done);
            async move { done.notify_one() }
        }
    };
    let worker = Worker::builder(&store)
        .queue("default", 2)
        .state(store.clone())
        .handle(ingest)
        .handle(publish)
        .build()
        .unwrap();
    client
        .new_run()
        .partition("a", client.enqueue(Stones { from: 0, to: 100 }), LIMIT)
        .partition("b", client.enqueue(Stones { from: 100, to: 200 }), LIMIT)
        .consolidate(client.enqueue(Publish))
        .await
        .unwrap();
    worker.run_until(done.notified()).await.unwrap();
    assert_eq!(numbers(&store, "select id from stone order by id").await, (0..200).collect::<Vec<_>>());
}
