//! What programs read: the JSON of the API and of the command line's `--json`, one file per noun. Members are added, never
//! renamed.

pub mod access;
pub mod figures;
pub mod gate;
pub mod job;
pub mod journal;
pub mod lease;
pub mod operation;
pub mod run;
pub mod schedule;
pub mod stats;
pub mod usage;
pub mod webhook;
pub mod worker;

use serde_json::value::{RawValue, to_raw_value};
use tenure_core::{Json, Timestamp};

pub(crate) fn date(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

/// Stored JSON goes out as it is: a tree in between would round large numbers.
fn raw(json: Option<&Json>) -> Option<Box<RawValue>> {
    let json = json?;
    // What the store holds was checked on its way in; something else is shown as text rather than hidden.
    RawValue::from_string(json.as_str().to_owned()).or_else(|_| to_raw_value(json.as_str())).ok()
}
