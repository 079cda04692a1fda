//! The signals that stop a worker: the first drains, a later one ends the process at once.

use std::future::Future;
use std::io;
use std::time::{Duration, Instant};

/// The exit code of a process that was told twice, as shells report a Ctrl-C.
const TOLD_TWICE: i32 = 130;

/// Signals within this time of the first count as one request: `timeout` signals the process and then its group, and some
/// process managers do the same.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    /// Finish running jobs, then end.
    Drain,
    /// Nothing new: the signal repeats the first one.
    Repeat,
    /// End at once.
    Exit,
}

/// When the first signal came, by the monotonic clock.
#[derive(Debug, Default)]
struct Signaled(Option<Instant>);

impl Signaled {
    fn at(&mut self, now: Instant) -> Request {
        match self.0 {
            None => {
                self.0 = Some(now);
                Request::Drain
            }
            Some(first) if now.saturating_duration_since(first) <= SAME_REQUEST => Request::Repeat,
            Some(_) => Request::Exit,
        }
    }
}

/// Listens from now on. The future is over at the first SIGTERM or SIGINT; one that comes more than a second later ends
/// the process at once, also while it starts or drains.
pub fn first_then_exit_on_second() -> io::Result<impl Future<Output = ()> + Send> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let mut signals = Signals::new()?;
    // On a thread of its own: handlers that block the runtime must not keep a process that was told twice.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("tenure-signal".into()).spawn(move || {
        runtime.block_on(async move {
            let (mut signaled, mut tell) = (Signaled::default(), Some(tell));
            loop {
                let name = signals.next().await;
                match signaled.at(Instant::now()) {
                    Request::Drain => {
                        tracing::info!(
                            "{name}: no more claims, running jobs may finish; once more, after a second, ends the process at once"
                        );
                        // The receiver is gone when the worker has ended by itself.
                        let _ = tell.take().map(|tell| tell.send(()));
                    }
                    Request::Repeat => tracing::info!("{name} within a second of the first signal: counted as the same request"),
                    Request::Exit => {
                        tracing::warn!("{name} again: ended at once");
                        std::process::exit(TOLD_TWICE);
                    }
                }
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_within_a_second_are_one_request_and_a_later_one_ends_the_process() {
        let first = Instant::now();
        let after = |ms| first + Duration::from_millis(ms);
        let mut signaled = Signaled::default();
        assert_eq!(signaled.at(first), Request::Drain);
        // Measured from the first signal: a process that repeats its signal for ever is heard after a second.
        for (ms, request) in [
            (0, Request::Repeat),
            (1, Request::Repeat),
            (600, Request::Repeat),
            (1_000, Request::Repeat),
            (1_001, Request::Exit),
        ] {
            assert_eq!(signaled.at(after(ms)), request, "{ms} ms");
        }
    }
}
