//! What `tenure worker` can do by itself, one file a kind: to try things out, and to call things over HTTP.

mod fail;
mod http;
mod noop;
mod sleep;

use tenure_webhooks::Guard;
use tenure_worker::Builder;

use crate::failure::Failure;

/// Every kind, with its payload as people write it.
pub(crate) const KINDS: &[(&str, &str)] =
    &[("noop", noop::PAYLOAD), ("sleep", sleep::PAYLOAD), ("fail", fail::PAYLOAD), (HTTP, http::PAYLOAD)];
/// The kind that is off unless hosts are listed.
pub(crate) const HTTP: &str = "http";

/// A worker that handles all of them; `http` only with a guard. Without one, jobs of that kind stay for other workers.
pub(crate) fn add(worker: Builder, http: Option<Guard>) -> Result<Builder, Failure> {
    let worker = worker.handle(noop::noop).handle(sleep::sleep).handle(fail::fail);
    Ok(match http {
        Some(guard) => worker.state(http::sender(guard)?).handle(http::http).state(()),
        None => worker,
    })
}
