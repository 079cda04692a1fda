//! [`Running`]: a worker in a task of its own; [`until`]: waiting for a fact.

use std::future::Future;
use std::io;
use std::time::Duration;

use tenure::{Summary, Worker};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::BoxError;

/// How often a fact is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long somebody waits for a fact before they say that it does not come.
const PATIENCE: Duration = Duration::from_secs(120);

/// A worker that runs until it is stopped; dropped, it is told to stop and not waited for.
#[derive(Debug)]
pub struct Running {
    // Dropped: the worker hears it.
    stop: oneshot::Sender<()>,
    ran: JoinHandle<io::Result<Summary>>,
}

impl Running {
    /// Starts it.
    pub fn start(worker: Worker) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let ran = tokio::spawn(worker.run_until(async {
            let _told_or_gone = stopped.await;
        }));
        Self { stop, ran }
    }

    /// Stops it as SIGTERM would, and answers what it did.
    pub async fn stop(self) -> Result<Summary, BoxError> {
        drop(self.stop);
        Ok(self.ran.await??)
    }
}

/// Waits until `look` finds something. An error of `look`, or a fact that does not come in two minutes, is an error that
/// names `what`.
pub async fn until<T, F>(what: &str, mut look: impl FnMut() -> F) -> Result<T, BoxError>
where
    F: Future<Output = Result<Option<T>, BoxError>>,
{
    let found = async {
        loop {
            if let Some(found) = look().await? {
                return Ok(found);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    let in_vain = |_| format!("in vain: {what} did not come in {} seconds", PATIENCE.as_secs());
    tokio::time::timeout(PATIENCE, found).await.map_err(in_vain)?
}
