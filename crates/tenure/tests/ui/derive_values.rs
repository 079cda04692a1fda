//! Every value is checked while compiling, and every mistake is shown at its literal.

use serde::{Deserialize, Serialize};
use tenure::Job;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "invoice send", queue = "mail!", priority = "urgent", max_attempts = 0, max_losses = 2000)]
struct WrongNames;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = "times", backoff = "exponential 1m by failures", timeout = "5 minutes")]
struct WrongTimes;

#[derive(Serialize, Deserialize, Job)]
#[job(kind = KIND, queue = 5, max_attempts = "5", timeout = 300, crate = tenure)]
struct WrongTypes;

fn main() {}
