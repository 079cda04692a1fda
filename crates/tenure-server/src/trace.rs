//! The trace of a request: jobs that belong to none belong to the caller's.

use axum::http::HeaderMap;
use tenure_core::{NewJob, Traceparent};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_worker::trace::enqueue_span;
use tracing::{Instrument, Span};

use crate::app::App;

/// The header of W3C trace context. One that is none is ignored.
const TRACEPARENT: &str = "traceparent";

/// Stores jobs, and says so where somebody is to be told.
pub(crate) async fn enqueue(
    app: &App,
    mut jobs: Vec<NewJob>,
    headers: &HeaderMap,
) -> Result<Vec<Enqueued>, StoreError> {
    let span = span_of(headers, &mut jobs);
    let stored = app.store.enqueue_jobs(jobs).instrument(span).await?;
    app.publish(stored.iter().filter_map(Enqueued::created));
    Ok(stored)
}

/// The span of a request that stores these jobs.
pub(crate) fn span_of<'j>(headers: &HeaderMap, jobs: impl IntoIterator<Item = &'j mut NewJob>) -> Span {
    let caller = headers.get(TRACEPARENT).and_then(|value| value.to_str().ok()).and_then(Traceparent::parse);
    enqueue_span(jobs, caller)
}
