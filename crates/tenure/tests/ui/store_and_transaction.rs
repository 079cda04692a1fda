//! A store is opened first, and a transaction is begun first.

use serde::{Deserialize, Serialize};
use tenure::deadpool_postgres::Pool;
use tenure::{Client, Job};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "invoice.send")]
struct SendInvoice;

async fn place_order(pool: Pool) {
    let client = Client::new("postgres://localhost/app");
    let _stored = client.enqueue(SendInvoice).within(&pool);
}

fn main() {}
