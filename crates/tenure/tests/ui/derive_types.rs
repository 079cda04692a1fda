//! What cannot be a job is told why.

use serde::{Deserialize, Serialize};
use tenure::Job;

#[derive(Serialize, Deserialize, Job)]
struct SendInvoice {
    order: u64,
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "generic")]
struct Generic<T> {
    item: T,
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "borrowed")]
struct Borrowed<'a> {
    name: &'a str,
}

#[derive(Job)]
#[job(kind = "union")]
union Union {
    number: u64,
}

fn main() {}
