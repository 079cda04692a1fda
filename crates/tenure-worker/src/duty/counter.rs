//! Counts what jobs said of their runs, and opens a consolidate when all is there. Every worker does so; the store lets
//! one of them count at a time.

use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreError;

use crate::random;
use crate::shared::Shared;

/// Between two looks when nobody here has said anything: others may have.
const EVERY: Duration = Duration::from_secs(1);
/// What is said together is counted together.
const BREATH: Duration = Duration::from_millis(100);

/// Counts again and again, sooner when a job of this process has spoken, and never stops by itself.
pub(crate) async fn run(shared: Arc<Shared>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(random::jitter(EVERY)) => {}
            () = shared.spoken.notified() => tokio::time::sleep(BREATH).await,
        }
        if shared.worker.get().is_none() {
            continue;
        }
        match run_once(&shared).await {
            Ok(_) => {}
            Err(error) if error.is_passing() => shared.trouble.failed("counting runs", &error),
            Err(error) => tracing::error!(error = %error, "counting runs failed"),
        }
    }
}

/// Counts until nothing is left to count; answers whether there was anything.
pub(crate) async fn run_once(shared: &Shared) -> Result<bool, StoreError> {
    let mut any = false;
    loop {
        let folded = shared.store.fold_runs().await?;
        any |= folded.changes > 0;
        for run in &folded.opened {
            tracing::info!(run.id = %run, "all members of a run are done: its consolidate is open");
        }
        if !folded.more {
            return Ok(any);
        }
    }
}
