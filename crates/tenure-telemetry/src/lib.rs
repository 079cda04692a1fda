//! What the binary tells others about itself. Nothing happens unless a setting names somebody to tell.
//!
//! Whoever is told may be slow, gone or wrong: queues are bounded, what does not fit is dropped, a failure is logged once,
//! and no job waits. It runs on a runtime of its own, so that handlers that block theirs do not silence it.
//!
//! # Layout
//! - `traces`: spans by OTLP over HTTP (the feature `otel`)
//! - `errors`: jobs that failed for good, for Sentry (the feature `sentry`)
//! - [`scrub`](fn@scrub): texts without what may be somebody's
//! - `post`: one HTTP client and its runtime

#[cfg(feature = "sentry")]
mod errors;
#[cfg(any(feature = "otel", feature = "sentry"))]
mod post;
mod scrub;
#[cfg(feature = "otel")]
mod traces;

use std::sync::Arc;
#[cfg(any(feature = "otel", feature = "sentry"))]
use std::time::Duration;

use tenure_core::Invalid;
use tenure_worker::Observer;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

#[cfg(any(feature = "otel", feature = "sentry"))]
use crate::post::Post;

pub use scrub::{SCRUBBED_BYTES_MAX, scrub};

#[cfg(any(feature = "otel", feature = "sentry"))]
/// How long what is left may take to be sent at the end.
const CLOSE_WAIT: Duration = Duration::from_secs(3);

/// Whom to tell what.
#[derive(Debug, Clone)]
pub struct Options {
    /// The collector of traces: `http://127.0.0.1:4318`. `None`: no traces.
    pub otlp_endpoint: Option<String>,
    /// How this program is called there.
    pub service_name: String,
    /// How many of the traces that begin here are recorded, 0 to 1; others go on as they began.
    pub sample_ratio: f64,
    /// Where Sentry is: `https://KEY@sentry.example/1`. `None`: it is told nothing.
    pub sentry_dsn: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { otlp_endpoint: None, service_name: "tenure".to_owned(), sample_ratio: 1.0, sentry_dsn: None }
    }
}

/// What is under way. [`close`](Telemetry::close) sends the rest.
pub struct Telemetry {
    #[cfg(feature = "otel")]
    traces: Option<traces::Traces>,
    #[cfg(feature = "sentry")]
    errors: Option<Arc<errors::Errors>>,
    #[cfg(any(feature = "otel", feature = "sentry"))]
    post: Option<Post>,
}

impl Telemetry {
    /// Begins, outside of any runtime. Refuses an endpoint that is no URL, and one that this build cannot use.
    pub fn start(options: &Options) -> Result<Self, Invalid> {
        let built_without = |field, wanted: &Option<String>, what| match wanted {
            Some(_) => Err(Invalid::new(field, "given", format!("this binary was built without {what}"))),
            None => Ok(()),
        };
        if cfg!(not(feature = "otel")) {
            built_without("otlp_endpoint", &options.otlp_endpoint, "traces (the feature otel)")?;
        }
        if cfg!(not(feature = "sentry")) {
            built_without("sentry_dsn", &options.sentry_dsn, "Sentry (the feature sentry)")?;
        }
        #[cfg(any(feature = "otel", feature = "sentry"))]
        let post = match options.otlp_endpoint.is_some() || options.sentry_dsn.is_some() {
            true => Some(Post::start()?),
            false => None,
        };
        Ok(Self {
            #[cfg(feature = "otel")]
            traces: match (&options.otlp_endpoint, &post) {
                (Some(endpoint), Some(post)) => Some(traces::Traces::start(endpoint, options, post.clone())?),
                _ => None,
            },
            #[cfg(feature = "sentry")]
            errors: match (&options.sentry_dsn, &post) {
                (Some(dsn), Some(post)) => Some(errors::Errors::start(dsn, post)?),
                _ => None,
            },
            #[cfg(any(feature = "otel", feature = "sentry"))]
            post,
        })
    }

    /// The layer that records spans whose names begin with `tenure.`, if traces are wanted.
    pub fn layer<S>(&self) -> Option<Box<dyn Layer<S> + Send + Sync>>
    where
        S: tracing::Subscriber + for<'s> LookupSpan<'s> + Send + Sync,
    {
        #[cfg(feature = "otel")]
        return self.traces.as_ref().map(traces::Traces::layer);
        #[cfg(not(feature = "otel"))]
        None
    }

    /// Whom workers tell how attempts end, if somebody wants to hear it.
    pub fn observer(&self) -> Option<Arc<dyn Observer>> {
        #[cfg(feature = "sentry")]
        return self.errors.clone().map(|errors| errors as Arc<dyn Observer>);
        #[cfg(not(feature = "sentry"))]
        None
    }

    /// Sends what is left, for a few seconds at most. Not inside a runtime.
    pub fn close(self) {
        #[cfg(feature = "otel")]
        if let Some(traces) = self.traces {
            traces.close(CLOSE_WAIT);
        }
        #[cfg(feature = "sentry")]
        if let Some(errors) = self.errors {
            errors.close(CLOSE_WAIT);
        }
        #[cfg(any(feature = "otel", feature = "sentry"))]
        if let Some(post) = self.post {
            post.close();
        }
    }
}
