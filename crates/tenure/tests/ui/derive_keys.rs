//! Keys are known, given once, and stand above the type.

use serde::{Deserialize, Serialize};
use tenure::Job;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "keys", max_attempt = 5, queue = "a", queue = "b", timeout)]
struct Keys {
    #[job(priority = "low")]
    order: u64,
}

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "comma" queue = "mail")]
struct Comma;

#[derive(Serialize, Deserialize, Job)]
#[job = "invoice.send"]
struct Equals;

fn main() {}
