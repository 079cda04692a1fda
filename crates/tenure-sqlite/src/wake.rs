//! Waiting for work. Level-triggered: who waits looks for itself, so that no wake-up can be missed.
//!
//! A commit of this process that put a job into a line rings a bell. Other processes ring nothing here, and a
//! scheduled job becomes due without any commit; on a file both are met by looking again every 50 ms.

use std::pin::pin;
use std::time::Duration;

use rusqlite::named_params;
use tenure_core::Priority;
use tenure_core::name::QueueName;
use tenure_store::StoreError;

use crate::engine::Engine;
use crate::fault::Result;
use crate::tx::Tx;

const HAS_DUE: &str = include_str!("sql/has_due.sql");

/// How often a waiter on a file looks for other processes' work.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Returns when `is_due` says so.
pub(crate) async fn wait<F>(engine: &Engine, is_due: impl Fn() -> F) -> std::result::Result<(), StoreError>
where
    F: Future<Output = std::result::Result<bool, StoreError>>,
{
    loop {
        // Listen before looking: a commit between the two would otherwise be missed.
        let mut bell = pin!(engine.shared.wake.notified());
        bell.as_mut().enable();
        if is_due().await? {
            return Ok(());
        }
        if engine.is_file() {
            // Either way the next thing is to look again.
            let _ = tokio::time::timeout(LOOK_EVERY, bell).await;
        } else {
            bell.await;
        }
    }
}

/// Whether a claim of one of these queues would find something.
pub(crate) fn has_due(tx: &Tx<'_>, queues: &[QueueName]) -> Result<bool> {
    for queue in queues {
        for priority in Priority::ALL {
            let params = named_params! {
                ":name": queue.as_str(), ":priority": priority.get(), ":now": tx.now.as_micros(),
            };
            if tx.one(HAS_DUE, params, |_| Ok(()))?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
