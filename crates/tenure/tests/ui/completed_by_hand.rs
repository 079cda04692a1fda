//! The proof that a job was completed in a transaction cannot be made up.

use serde::{Deserialize, Serialize};
use tenure::{Completed, Fail, Job};

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "invoice.send")]
struct SendInvoice;

async fn send(_job: SendInvoice) -> Result<Completed, Fail> {
    Ok(Completed(()))
}

fn main() {}
