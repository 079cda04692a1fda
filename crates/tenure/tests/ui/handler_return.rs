//! A handler answers in one vocabulary.

use serde::{Deserialize, Serialize};
use tenure::{Fail, Job, SqliteStore, Worker};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "invoice.send")]
struct SendInvoice;

async fn number(_job: SendInvoice) -> u64 {
    42
}

async fn bare_result(_job: SendInvoice) -> Result<u64, Fail> {
    Ok(42)
}

async fn no_error(_job: SendInvoice) -> Result<(), String> {
    Ok(())
}

fn not_async(_job: SendInvoice) -> Result<(), Fail> {
    Ok(())
}

fn run(store: SqliteStore) {
    let _worker = Worker::builder(&store).handle(number);
    let _worker = Worker::builder(&store).handle(bare_result);
    let _worker = Worker::builder(&store).handle(no_error);
    let _worker = Worker::builder(&store).handle(not_async);
}

fn main() {}
