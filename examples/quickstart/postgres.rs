//! An order and its invoice, on Postgres: `DATABASE_URL=postgres://… cargo run` in a crate with `tenure`, `tokio` (with
//! `macros` and `rt-multi-thread`) and `serde` (with `derive`). A test does just that: crates/tenure/tests/it/quickstart.rs.

use serde::{Deserialize, Serialize};
use tenure::deadpool_postgres::{Manager, Pool};
use tenure::tokio_postgres::NoTls;
use tenure::{Attempt, Client, Completed, Fail, Job, PgOptions, PgStore, State, Worker};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "invoice.send", queue = "mail", max_attempts = 5, timeout = "1m")]
struct SendInvoice {
    order: i64,
}

async fn send(job: SendInvoice, State(pool): State<Pool>, attempt: Attempt) -> Result<Completed, Fail> {
    // The slow part first, while no transaction is open: talk to the mail server here. Any error by `?` is tried again.
    let mut connection = pool.get().await?;
    let tx = connection.transaction().await?;
    tx.execute("insert into sent (invoice) values ($1)", &[&job.order]).await?;
    let completed = attempt.complete_in(&tx).await?; // refused once the lease is lost, and the row is rolled back
    tx.commit().await?; // the row and the end of the job, or neither
    Ok(completed)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::var("DATABASE_URL")?;
    let pool = Pool::builder(Manager::new(url.parse()?, NoTls)).build()?;
    let store = PgStore::connect(&url, PgOptions::default()).await?;
    tenure::migrate(&store).await?;

    let mut connection = pool.get().await?;
    let tx = connection.transaction().await?;
    tx.batch_execute("create table if not exists orders (id bigserial, total int)").await?;
    tx.batch_execute("create table if not exists sent (invoice bigint)").await?;
    let order = tx.query_one("insert into orders (total) values (1999) returning id", &[]).await?.get(0);
    Client::new(&store).enqueue(SendInvoice { order }).unique(format!("invoice:{order}")).within(&tx).await?;
    tx.commit().await?; // the order and its job, or neither

    let worker = Worker::builder(&store).state(pool).handle(send).build()?;
    let summary = worker.run_until_idle().await?; // a service calls `worker.run()`, which ends with SIGTERM
    println!("sent: {}", summary.succeeded);
    Ok(())
}
