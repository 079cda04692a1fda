//! A handler's first argument is its job, and only a job can be enqueued.

use tenure::{Client, Ctx, Fail, SqliteStore, Worker};

struct SendInvoice {
    order: u64,
}

async fn send(job: SendInvoice, _ctx: Ctx) -> Result<(), Fail> {
    println!("{}", job.order);
    Ok(())
}

async fn nothing() -> Result<(), Fail> {
    Ok(())
}

async fn run(store: SqliteStore, client: Client) {
    let _worker = Worker::builder(&store).handle(send);
    let _worker = Worker::builder(&store).handle(nothing);
    let _stored = client.enqueue(SendInvoice { order: 42 }).await;
}

fn main() {}
