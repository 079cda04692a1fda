//! What is neither the job nor an extractor cannot be an argument.

use serde::{Deserialize, Serialize};
use tenure::{Fail, Job, SqliteStore, Worker};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "invoice.send")]
struct SendInvoice;

async fn send(_job: SendInvoice, _path: String) -> Result<(), Fail> {
    Ok(())
}

fn run(store: SqliteStore) {
    let _worker = Worker::builder(&store).handle(send);
}

fn main() {}
