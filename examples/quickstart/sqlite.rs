//! An order and its invoice, in one embedded file: `cargo run` in a crate with `tenure`, `tokio` (with `macros` and
//! `rt-multi-thread`) and `serde` (with `derive`). A test does just that: crates/tenure/tests/it/quickstart.rs.

use serde::{Deserialize, Serialize};
use tenure::{Attempt, Client, Completed, Fail, Job, SqliteOptions, SqliteStore, State, Worker};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "invoice.send", queue = "mail", max_attempts = 5, timeout = "1m")]
struct SendInvoice {
    order: i64,
}

async fn send(job: SendInvoice, State(store): State<SqliteStore>, attempt: Attempt) -> Result<Completed, Fail> {
    // The slow part first, while no transaction is open: talk to the mail server here. Any error by `?` is tried again.
    store
        .transaction(move |tx| {
            tx.connection().execute("insert into sent (invoice) values (?1)", [job.order])?;
            attempt.complete_in(tx) // refused once the lease is lost, and the row is rolled back
        })
        .await // the row and the end of the job, or neither
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let store = SqliteStore::open("quickstart.db", SqliteOptions::default())?;
    tenure::migrate(&store).await?;

    let client = Client::new(&store);
    store
        .transaction(move |tx| -> Result<(), BoxError> {
            let db = tx.connection();
            db.execute_batch("create table if not exists orders (id integer primary key, total integer)")?;
            db.execute_batch("create table if not exists sent (invoice integer)")?;
            db.execute("insert into orders (total) values (1999)", [])?;
            let order = db.last_insert_rowid();
            client.enqueue(SendInvoice { order }).unique(format!("invoice:{order}")).within(tx)?;
            Ok(())
        })
        .await?; // the order and its job, or neither

    let worker = Worker::builder(&store).state(store.clone()).handle(send).build()?;
    let summary = worker.run_until_idle().await?; // a service calls `worker.run()`, which ends with SIGTERM
    println!("sent: {}", summary.succeeded);
    Ok(())
}
