//! `fail`: ends as its payload says, to see what becomes of it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure_worker::{Ctx, Fail, Job};

pub(super) const PAYLOAD: &str =
    r#"{"how": "transient" | "permanent" | "dead" | "snooze" | "canceled" | "panic", "message": "…", "until": 3}"#;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FailJob {
    #[serde(default)]
    how: How,
    #[serde(default)]
    message: Option<String>,
    /// The attempt that succeeds; none unless said.
    #[serde(default)]
    until: Option<u16>,
}

#[derive(Serialize, Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum How {
    #[default]
    Transient,
    Permanent,
    Dead,
    Snooze,
    Canceled,
    Panic,
}

impl Job for FailJob {
    const KIND: &'static str = "fail";
}

pub(super) async fn fail(job: FailJob, ctx: Ctx) -> Result<(), Fail> {
    if job.until.is_some_and(|until| ctx.attempt() >= until) {
        return Ok(());
    }
    let message = job.message.as_deref().unwrap_or("failed as asked");
    Err(match job.how {
        How::Transient => Fail::transient(message),
        How::Permanent => Fail::permanent(message),
        How::Dead => Fail::dead(message),
        How::Snooze => Fail::snooze(Duration::from_secs(1)),
        How::Canceled => Fail::canceled(),
        // What a bug of a handler looks like from outside.
        How::Panic => panic!("{message}"),
    })
}
