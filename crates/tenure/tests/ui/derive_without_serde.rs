//! The payload is the type's JSON, so serde must be able to write and to read it.

use tenure::Job;

#[derive(Job)]
#[job(kind = "invoice.send")]
struct SendInvoice {
    order: u64,
}

fn main() {}
