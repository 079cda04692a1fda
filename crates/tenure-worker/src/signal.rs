//! The signals that stop a worker: the first drains, the second ends the process at once.

use std::future::Future;
use std::io;

/// The exit code of a process that was told twice, as shells report a Ctrl-C.
const TOLD_TWICE: i32 = 130;

/// Listens from now on. The future is over at the first SIGTERM or SIGINT; a second one ends the process at once, also
/// while it starts or drains.
pub fn first_then_exit_on_second() -> io::Result<impl Future<Output = ()> + Send> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let mut signals = Signals::new()?;
    // On a thread of its own: handlers that block the runtime must not keep a process that was told twice.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("tenure-signal".into()).spawn(move || {
        runtime.block_on(async move {
            let name = signals.next().await;
            tracing::info!("{name}: no more claims, running jobs may finish; once more ends the process at once");
            // Nobody waits when the worker has ended by itself.
            let _ = tell.send(());
            let name = signals.next().await;
            tracing::warn!("{name} again: ended at once");
            std::process::exit(TOLD_TWICE);
        });
    })?;
    Ok(async move {
        let _ = told.await;
    })
}

#[cfg(unix)]
struct Signals {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { term: signal(SignalKind::terminate())?, int: signal(SignalKind::interrupt())? })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> &'static str {
        match tokio::signal::ctrl_c().await {
            Ok(()) => "Ctrl-C",
            Err(_) => std::future::pending().await,
        }
    }
}
