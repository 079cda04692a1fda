//! `noop`: does nothing, whatever its payload.

use serde::{Deserialize, Serialize};
use tenure_worker::Job;

pub(super) const PAYLOAD: &str = "anything";

#[derive(Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Noop(serde_json::Value);

impl Job for Noop {
    const KIND: &'static str = "noop";
}

pub(super) async fn noop(_: Noop) {}
