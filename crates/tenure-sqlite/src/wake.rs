//! Waiting for work. Level-triggered: who waits looks for itself, so that no wake-up can be missed.
//!
//! A commit of this process that put a job into a line rings a bell. Other processes ring nothing here, and a
//! scheduled job becomes due without any commit; on a file both are met by looking again every 50 ms.

use std::pin::pin;
use std::time::Duration;

use tenure_core::Line;
use tenure_core::gate::Admit;
use tenure_core::name::QueueName;
use tenure_store::StoreError;
use tenure_store::lines::Lines;

use crate::engine::Engine;
use crate::fault::Result;
use crate::tx::Tx;
use crate::{gate, lines, queue};

/// How often a waiter on a file looks for other processes' work.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Lines of a queue that a waiter looks at.
const LINES_MAX: usize = 100;

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

/// Whether a claim of one of these queues would find something. Of a queue with very many lines only the first are
/// looked at; the others are found by the next poll.
pub(crate) fn has_due(tx: &Tx<'_>, book: &Lines, queues: &[QueueName]) -> Result<bool> {
    for name in queues {
        let Some((queue, _, lined)) = queue::find_open(tx, name)? else { continue };
        let most = if lined { LINES_MAX } else { 1 };
        for line in lines::find_due(tx, queue, None, most)?.0 {
            if may_pass(tx, &line)? {
                // The claim that follows is to ask it, whatever an earlier one has found there.
                book.opened(name, &line);
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether the gate of a line is open. One that was never passed is.
fn may_pass(tx: &Tx<'_>, line: &Line) -> Result<bool> {
    let Some(gate) = line.gate().and_then(|gate| gate.parse().ok()) else { return Ok(true) };
    let Some(open) = gate::look(tx, &gate)? else { return Ok(true) };
    Ok(matches!(open.gate.admit(&open.rule, tx.now), Admit::Open(_)))
}
