//! `sleep`: takes its time, and stops when it is told to.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_core::duration;
use tenure_worker::{Ctx, Fail, Job};

pub(super) const PAYLOAD: &str = r#"{"for": "2s"}"#;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Sleep {
    /// A duration such as `2s`; a second unless said.
    #[serde(rename = "for", default)]
    time: Option<String>,
}

impl Job for Sleep {
    const KIND: &'static str = "sleep";
}

pub(super) async fn sleep(job: Sleep, ctx: Ctx) -> Result<(), Fail> {
    let time = match &job.time {
        Some(text) => duration::parse("for", text).map_err(Fail::permanent)?,
        None => Duration::from_secs(1),
    };
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        _ = ctx.stopped() => ctx.check(),
    }
}
