//! [`Traced`]: a worker on a thread of its own, whose every step is heard and told apart from those of other workers.

use std::future::Future;
use std::io;
use std::thread::JoinHandle;

use kit::BoxError;
use tenure::{Summary, Worker};
use tokio::sync::oneshot;
use tracing_subscriber::layer::SubscriberExt;

use crate::trace::{Ear, Steps};

/// A worker that runs until it is told to stop, or dropped.
pub struct Traced {
    steps: Steps,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Result<Summary, BoxError>>>,
}

impl Traced {
    /// Starts what `make` makes, on the runtime it will run on: a database that is opened there has its connections there.
    /// An error of `make` is told by [`stop`](Self::stop).
    pub fn start<F>(make: impl FnOnce() -> F + Send + 'static) -> io::Result<Self>
    where
        F: Future<Output = Result<Worker, BoxError>>,
    {
        let steps = Steps::default();
        let ear = Ear::keeping(&steps);
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("traced-worker".into()).spawn(move || {
            // All its tasks run on this thread, so nobody else's steps are heard here.
            let _until_it_ends = tracing::subscriber::set_default(tracing_subscriber::registry().with(ear));
            runtime.block_on(async {
                let worker = make().await?;
                let told = async {
                    // Told, or whoever could tell is gone.
                    let _told_or_gone = stopped.await;
                };
                Ok(worker.run_until(told).await?)
            })
        })?;
        Ok(Self { steps, stop: Some(stop), thread: Some(thread) })
    }

    /// What was heard of it.
    pub fn steps(&self) -> &Steps {
        &self.steps
    }

    /// Tells it to stop, and waits until it has.
    pub async fn stop(mut self) -> Result<Summary, BoxError> {
        drop(self.stop.take());
        let Some(thread) = self.thread.take() else { return Err("it was stopped before".into()) };
        let joined = tokio::task::spawn_blocking(move || thread.join()).await?;
        joined.map_err(|_| "the worker's thread panicked")?
    }
}
