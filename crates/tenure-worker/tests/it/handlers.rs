//! What a handler answers is what becomes of its job.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::AdminStore;
use tenure_worker::{Client, Ctx, Fail, Job, State, Worker};

#[derive(Serialize, Deserialize)]
struct Ping {
    n: u32,
}
impl Job for Ping {
    const KIND: &'static str = "ping";
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_runs_what_was_enqueued() {
    let store = SqliteStore::in_memory(SqliteOptions::default()).unwrap();
    store.migrate().await.unwrap();
    let client = Client::new(&store);
    client.enqueue_many((0..1_000).map(|n| Ping { n })).await.unwrap();
    let sum = Arc::new(AtomicU32::new(0));
    let done = Arc::new(tokio::sync::Notify::new());
    async fn ping(
        job: Ping,
        State((sum, done)): State<(Arc<AtomicU32>, Arc<tokio::sync::Notify>)>,
        ctx: Ctx,
    ) -> Result<(), Fail> {
        assert_eq!(ctx.attempt(), 1);
        if sum.fetch_add(job.n, Ordering::SeqCst) + job.n == 499_500 {
            done.notify_one();
        }
        Ok(())
    }
    let worker = Worker::builder(&store)
        .state((Arc::clone(&sum), Arc::clone(&done)))
        .queue("default", 50)
        .handle(ping)
        .grace(Duration::from_secs(5))
        .build()
        .unwrap();
    // As programs run it beside other things: the whole future must be able to change threads.
    let running = tokio::spawn(worker.run_until(async move { done.notified().await }));
    let summary = running.await.unwrap().unwrap();
    assert_eq!((summary.claimed, summary.succeeded, summary.refused), (1_000, 1_000, 0));
}
