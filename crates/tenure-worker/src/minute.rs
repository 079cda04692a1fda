//! What was done since the last line about it, in one line: a log that people read has no line for each job.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tenure_core::How;
use tenure_core::name::GateName;

use crate::ctx::Ctx;
use crate::shared::Shared;

/// So often a line is written, when there is something to tell.
const EVERY: Duration = Duration::from_secs(60);
/// Gates whose failures are told.
const TOLD_MAX: usize = 5;
/// Gates whose failures are counted between two lines.
const GATES_MAX: usize = 1_000;

/// What was done since the last line.
#[derive(Default)]
pub(crate) struct Minute(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    claimed: u64,
    succeeded: u64,
    failed: u64,
    /// Of attempts that succeeded or failed, together.
    took: Duration,
    /// Failures by gate, which is what a source or a domain is here.
    failing: HashMap<GateName, u64>,
}

impl Minute {
    pub(crate) fn claimed(&self, jobs: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).claimed += jobs as u64;
    }

    pub(crate) fn ended(&self, ctx: &Ctx, how: How, took: Duration) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match how {
            How::Succeeded => counts.succeeded += 1,
            How::Retry | How::Failed | How::Dead => counts.failed += 1,
            _ => return,
        }
        counts.took += took;
        if let Some(gate) = ctx.gate().name().filter(|_| how != How::Succeeded)
            && (counts.failing.len() < GATES_MAX || counts.failing.contains_key(gate))
        {
            *counts.failing.entry(gate.clone()).or_default() += 1;
        }
    }

    /// Writes the line, if there is something to tell, and begins anew.
    pub(crate) fn tell(&self) {
        let Counts { claimed, succeeded, failed, took, failing } =
            std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let ended = succeeded + failed;
        if claimed + ended == 0 {
            return;
        }
        let mean = u64::try_from(took.as_millis()).unwrap_or(u64::MAX).checked_div(ended).unwrap_or(0);
        let failing = worst(failing);
        tracing::info!(
            batch_claimed_count = claimed,
            success_count = succeeded,
            fail_count = failed,
            job_duration_ms = mean,
            failing,
            "since the last such line"
        );
    }
}

/// The gates that failed most, such as `source:ebay=12 domain:example.org=3`.
fn worst(failing: HashMap<GateName, u64>) -> String {
    let mut failing: Vec<(GateName, u64)> = failing.into_iter().collect();
    failing.sort_by(|(one, few), (other, many)| many.cmp(few).then_with(|| one.as_str().cmp(other.as_str())));
    failing.truncate(TOLD_MAX);
    failing.iter().map(|(gate, count)| format!("{gate}={count}")).collect::<Vec<_>>().join(" ")
}

/// Writes a line a minute, as long as the worker works.
pub(crate) async fn tell_on(shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(EVERY).await;
        shared.minute.tell();
    }
}
