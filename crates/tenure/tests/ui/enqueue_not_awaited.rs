//! An enqueue that is neither awaited nor put into a transaction stores nothing.

#![deny(unused_must_use)]

use serde::{Deserialize, Serialize};
use tenure::{Client, Job};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "invoice.send")]
struct SendInvoice;

async fn place_order(client: Client) {
    client.enqueue(SendInvoice);
    client.enqueue_many([SendInvoice, SendInvoice]);
}

fn main() {}
