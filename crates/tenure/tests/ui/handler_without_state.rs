//! `State<App>` needs a worker with that state.

use serde::{Deserialize, Serialize};
use tenure::{Fail, Job, SqliteStore, State, Worker};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "invoice.send")]
struct SendInvoice;

#[derive(Clone)]
struct App;

async fn send(_job: SendInvoice, State(_app): State<App>) -> Result<(), Fail> {
    Ok(())
}

fn run(store: SqliteStore) {
    let _forgotten = Worker::builder(&store).handle(send);
    let _too_late = Worker::builder(&store).handle(send).state(App);
    let _another = Worker::builder(&store).state(5).handle(send);
}

fn main() {}
