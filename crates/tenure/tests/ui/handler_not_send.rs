//! What a handler holds across an `.await` may move to another thread.

use std::rc::Rc;

use serde::{Deserialize, Serialize};
use tenure::{Ctx, Fail, Job, SqliteStore, Worker};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "invoice.send")]
struct SendInvoice;

async fn send(_job: SendInvoice, ctx: Ctx) -> Result<(), Fail> {
    let shared = Rc::new(5);
    ctx.stopped().await;
    println!("{shared}");
    Ok(())
}

fn run(store: SqliteStore) {
    let _worker = Worker::builder(&store).handle(send);
}

fn main() {}
