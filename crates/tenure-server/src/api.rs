//! The API `/v1`: one file per resource. Adding a call is one function there and one line in its `routes`.

mod audit;
mod document;
mod figures;
mod gates;
mod health;
mod jobs;
mod keys;
mod leases;
mod metrics;
mod operations;
mod problems;
mod queues;
mod runs;
mod schedules;
mod stats;
mod tenants;
mod usage;
mod webhooks;
mod workers;

use axum::body::Bytes;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::metrics::measure;
use crate::problem::{METHOD_NOT_ALLOWED, NOT_FOUND, Problem};

pub(crate) use webhooks::has_callbacks;

/// Every route with its handler.
pub(crate) fn router(app: &App, pages: Option<Router>) -> Router {
    let (router, document) = routes().split_for_parts();
    let document = Bytes::from(document::complete(document));
    let serve = routing::get(move || {
        let document = document.clone();
        async move { ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], document).into_response() }
    });
    let calls = router
        .route("/v1/openapi.json", serve)
        .method_not_allowed_fallback(|| async {
            Problem::new(METHOD_NOT_ALLOWED, "the path does not take this method")
        })
        .with_state(app.clone());
    let calls = match pages {
        Some(pages) => {
            let _first = app.calls.set(calls.clone().fallback(no_such_path));
            calls.route("/v1/{*path}", routing::any(no_such_path)).fallback_service(pages)
        }
        None => calls.fallback(no_such_path),
    };
    calls
        .layer(middleware::from_fn(refuse_idempotency_key))
        .layer(middleware::from_fn(add_headers))
        .layer(middleware::from_fn_with_state(app.clone(), measure))
}

async fn no_such_path() -> Problem {
    Problem::new(NOT_FOUND, "there is no such path; GET /v1/openapi.json lists them all")
}

/// The OpenAPI document that the code adds up to, as it is served and checked in.
pub fn openapi() -> String {
    document::complete(routes().split_for_parts().1)
}

fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(document::about())
        .merge(jobs::routes())
        .merge(operations::routes())
        .merge(queues::routes())
        .merge(gates::routes())
        .merge(runs::routes())
        .merge(schedules::routes())
        .merge(workers::routes())
        .merge(leases::routes())
        .merge(stats::routes())
        .merge(metrics::routes())
        .merge(figures::routes())
        .merge(usage::routes())
        .merge(audit::routes())
        .merge(tenants::routes())
        .merge(keys::routes())
        .merge(webhooks::routes())
        .merge(health::routes())
        .merge(problems::routes())
}

/// The header that names a request, so that a repeat is the same request.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Refuses the header `Idempotency-Key` wherever a repeat would be a second request: one call alone keeps it.
async fn refuse_idempotency_key(request: Request, next: Next) -> Response {
    let takes_it = request.method() == Method::POST && request.uri().path() == "/v1/jobs";
    let changes = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if changes
        && !takes_it
        && request.uri().path().starts_with("/v1/")
        && request.headers().contains_key(IDEMPOTENCY_KEY)
    {
        let detail = "Idempotency-Key is taken by POST /v1/jobs alone: in POST /v1/jobs/batch each job has an \
            `idempotency_key`, a run has an `id`, and other calls have none";
        return Problem::invalid("Idempotency-Key", detail).into_response();
    }
    next.run(request).await
}

/// Answers are for the one who asked, now, and are what they say they are.
async fn add_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// An answer in JSON.
pub(crate) fn answer(status: StatusCode, document: &impl Serialize) -> Result<Response, Problem> {
    let text = serde_json::to_string(document).map_err(|error| Problem::internal("an answer is no JSON", &error))?;
    Ok((status, [(CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response())
}

/// The usual answer: 200 with a document.
pub(crate) fn ok(document: &impl Serialize) -> Result<Response, Problem> {
    answer(StatusCode::OK, document)
}

/// Why, in a person's words: it goes into the journal.
#[derive(Debug, Default, serde::Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reason {
    /// Why, in a person's words: it goes into the journal.
    #[serde(default)]
    #[schema(max_length = 500)]
    pub(crate) reason: Option<String>,
}
