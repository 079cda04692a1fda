//! One HTTP client and the small runtime that it runs on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tenure_core::Invalid;
use tokio::runtime::{Handle, Runtime};

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends requests. Clones share everything.
#[derive(Clone, Debug)]
pub(crate) struct Post {
    runtime: Arc<Runtime>,
    pub(crate) client: reqwest::Client,
}

/// Whether somebody did not answer: told once, until they do.
#[derive(Debug)]
pub(crate) struct Silence {
    who: &'static str,
    is_told: AtomicBool,
}

impl Post {
    pub(crate) fn start() -> Result<Self, Invalid> {
        // Whoever was first has chosen the same.
        let _first = rustls::crypto::ring::default_provider().install_default();
        let refused = |what: &'static str, error: &dyn ToString| Invalid::new("telemetry", what, error.to_string());
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tenure-telemetry")
            .enable_all()
            .build()
            .map_err(|error| refused("a thread", &error))?;
        let name = concat!("tenure/", env!("CARGO_PKG_VERSION"));
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).user_agent(name);
        let client = client.timeout(TIMEOUT).build().map_err(|error| refused("a client", &error))?;
        Ok(Self { runtime: Arc::new(runtime), client })
    }

    pub(crate) fn runtime(&self) -> &Handle {
        self.runtime.handle()
    }

    /// Ends the runtime, unless somebody else still has it.
    pub(crate) fn close(self) {
        if let Ok(runtime) = Arc::try_unwrap(self.runtime) {
            runtime.shutdown_background();
        }
    }
}

impl Silence {
    pub(crate) const fn of(who: &'static str) -> Self {
        Self { who, is_told: AtomicBool::new(false) }
    }

    /// They did not take it.
    pub(crate) fn failed(&self, why: &str) {
        if !self.is_told.swap(true, Ordering::Relaxed) {
            tracing::warn!(why, "{} cannot be reached: what it does not get is dropped, and jobs go on", self.who);
        }
    }

    /// They took it.
    pub(crate) fn over(&self) {
        if self.is_told.swap(false, Ordering::Relaxed) {
            tracing::info!("{} is reached again", self.who);
        }
    }
}
