//! Spans: `tenure.enqueue` where jobs are stored, `tenure.attempt` where one is tried.
//!
//! They are spans of `tracing`, so that every line a handler logs carries its job's id. With the feature `otel`, and a layer
//! of `tracing-opentelemetry` in the program's subscriber, they are one trace: a job keeps the W3C `traceparent` of the span
//! that stored it, and every attempt, in whatever process, is a child of that. A `traceparent` that is none is ignored.

use tenure_core::{NewJob, Traceparent};
use tracing::Span;
use tracing::field::Empty;

use crate::ctx::Ctx;

/// A span `tenure.enqueue` for these jobs; those that belong to no trace yet belong to its own from now on.
///
/// The span is a child of the caller's where one is given, else of the current one. Where nobody records traces, jobs
/// carry the caller's on.
pub fn enqueue_span<'j>(jobs: impl IntoIterator<Item = &'j mut NewJob>, caller: Option<Traceparent>) -> Span {
    let mut jobs: Vec<&mut NewJob> = jobs.into_iter().collect();
    let span = match &caller {
        None => tracing::info_span!(
            "tenure.enqueue",
            otel.kind = "producer",
            jobs = jobs.len(),
            job.id = Empty,
            job.kind = Empty,
            queue = Empty
        ),
        Some(_) => {
            tracing::info_span!(parent: None, "tenure.enqueue", otel.kind = "producer", jobs = jobs.len(), job.id = Empty, job.kind = Empty, queue = Empty)
        }
    };
    if let [job] = &jobs[..] {
        span.record("job.id", tracing::field::display(job.id));
        span.record("job.kind", job.kind.as_str());
        span.record("queue", job.queue.as_str());
    }
    if let Some(caller) = caller {
        otel::set_parent(&span, caller);
    }
    if let Some(trace) = otel::traceparent(&span).or(caller).map(|trace| trace.to_string()) {
        jobs.iter_mut().filter(|job| job.trace.is_none()).for_each(|job| job.trace = Some(trace.clone()));
    }
    span
}

/// The span of an attempt: whatever is logged inside carries these fields, so it is there at every level of the log.
pub(crate) fn attempt_span(ctx: &Ctx) -> Span {
    let span = tracing::error_span!(
        parent: None,
        "tenure.attempt",
        otel.kind = "consumer",
        job.id = %ctx.job_id(),
        job.kind = %ctx.kind(),
        queue = %ctx.queue(),
        attempt = ctx.attempt(),
        lease.no = ctx.fence().0,
        outcome = Empty,
        error.type = Empty,
        otel.status_code = Empty,
    );
    if let Some(trace) = ctx.trace().and_then(Traceparent::parse) {
        otel::set_parent(&span, trace);
    }
    span
}

/// The trace context of the current span, for a call to somebody else; `None` where nobody records traces.
pub fn current() -> Option<Traceparent> {
    otel::traceparent(&Span::current())
}

#[cfg(feature = "otel")]
mod otel {
    use opentelemetry::trace::{SpanContext, TraceContextExt, TraceFlags, TraceState};
    use opentelemetry::{Context, SpanId, TraceId};
    use tenure_core::Traceparent;
    use tracing::Span;
    use tracing_opentelemetry::OpenTelemetrySpanExt;

    pub(super) fn set_parent(span: &Span, parent: Traceparent) {
        let Traceparent { trace_id, span_id, flags } = parent;
        let (trace_id, span_id) = (TraceId::from_bytes(trace_id), SpanId::from_bytes(span_id));
        let parent = SpanContext::new(trace_id, span_id, TraceFlags::new(flags), true, TraceState::NONE);
        // Without a layer that records traces there is nothing to be a child of.
        let _nobody_records = span.set_parent(Context::new().with_remote_span_context(parent));
    }

    pub(super) fn traceparent(span: &Span) -> Option<Traceparent> {
        let of_span = span.context();
        // A program may keep its traces without `tracing`.
        let context = if of_span.span().span_context().is_valid() { of_span } else { Context::current() };
        let span = context.span();
        let context = span.span_context();
        context.is_valid().then(|| Traceparent {
            trace_id: context.trace_id().to_bytes(),
            span_id: context.span_id().to_bytes(),
            flags: context.trace_flags().to_u8(),
        })
    }
}

#[cfg(not(feature = "otel"))]
mod otel {
    use tenure_core::Traceparent;
    use tracing::Span;

    pub(super) const fn set_parent(_: &Span, _: Traceparent) {}

    pub(super) const fn traceparent(_: &Span) -> Option<Traceparent> {
        None
    }
}
