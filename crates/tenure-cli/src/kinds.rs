//! What `tenure worker` can do by itself, one file a kind: to try things out, and to call things over HTTP.

mod fail;
mod http;
mod noop;
mod sleep;

use tenure_worker::Builder;

use crate::failure::{Failure, exit};

/// Every kind, with its payload as people write it.
pub(crate) const KINDS: &[(&str, &str)] =
    &[("noop", noop::PAYLOAD), ("sleep", sleep::PAYLOAD), ("fail", fail::PAYLOAD), ("http", http::PAYLOAD)];

/// A worker that handles all of them.
pub(crate) fn add(worker: Builder) -> Result<Builder, Failure> {
    let http = http::client()
        .map_err(|error| Failure::new("http", exit::REFUSED, "no HTTP client can be made").caused_by(&error))?;
    Ok(worker.handle(noop::noop).handle(sleep::sleep).handle(fail::fail).state(http).handle(http::http).state(()))
}
