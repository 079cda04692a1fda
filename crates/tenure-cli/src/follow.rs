//! Commands that go on until somebody stops them.

use std::time::{Duration, Instant};

use tenure_store::StoreError;

use crate::failure::{Failure, exit};

/// A store that answers nothing for so long is given up: by then somebody should look.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Pause before a store that did not answer is asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// Listens for Ctrl-C (and for the signal of `kill`) from the first moment on, so that none is missed between waits.
pub(crate) struct Follow {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup: Option<tokio::signal::unix::Signal>,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
}

impl Follow {
    pub(crate) fn begin() -> Result<Self, Failure> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let interrupt = signal(SignalKind::interrupt()).map_err(|error| deaf(&error))?;
            let terminate = signal(SignalKind::terminate()).map_err(|error| deaf(&error))?;
            Ok(Self { interrupt, terminate, hangup: None })
        }
        #[cfg(windows)]
        {
            Ok(Self { interrupt: tokio::signal::windows::ctrl_c().map_err(|error| deaf(&error))? })
        }
    }

    /// Also when the terminal goes away: for a command that has something to clean up. Others just end then, and go on
    /// under `nohup`.
    pub(crate) fn with_hangup(mut self) -> Result<Self, Failure> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            self.hangup = Some(signal(SignalKind::hangup()).map_err(|error| deaf(&error))?);
        }
        Ok(self)
    }

    /// Waits; answers whether to go on.
    pub(crate) async fn pause(&mut self, pause: Duration) -> bool {
        self.unless_stopped(tokio::time::sleep(pause)).await.is_some()
    }

    /// What the store answers, or `None` when somebody stops the command. A store that is away for a moment (a restart,
    /// a failover) is asked again.
    pub(crate) async fn ask<T>(&mut self, ask: impl AsyncFn() -> Result<T, StoreError>) -> Result<Option<T>, Failure> {
        let begin = Instant::now();
        loop {
            match self.unless_stopped(ask()).await {
                None => return Ok(None),
                Some(Ok(answer)) => return Ok(Some(answer)),
                Some(Err(error)) if error.is_passing() && begin.elapsed() < SILENCE_MAX => {
                    if !self.pause(RETRY_PAUSE).await {
                        return Ok(None);
                    }
                }
                Some(Err(error)) => return Err(error.into()),
            }
        }
    }

    /// What the work answers, or `None` when somebody stops the command before.
    async fn unless_stopped<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            answer = work => Some(answer),
            () = self.stopped() => None,
        }
    }

    /// Waits until somebody stops the command.
    #[cfg(unix)]
    pub(crate) async fn stopped(&mut self) {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => _ = hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            () = hangup => {}
        }
    }

    /// Waits until somebody stops the command.
    #[cfg(windows)]
    pub(crate) async fn stopped(&mut self) {
        self.interrupt.recv().await;
    }
}

fn deaf(error: &std::io::Error) -> Failure {
    Failure::new("signal", exit::STORE, "this process cannot listen for Ctrl-C").caused_by(error)
}
