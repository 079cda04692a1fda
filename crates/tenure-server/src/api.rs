//! The API `/v1`: one file per resource. Adding a call is one function there and one line in its `routes`.

mod audit;
mod gates;
mod health;
mod jobs;
mod keys;
mod leases;
mod problems;
mod queues;
mod runs;
mod schedules;
mod stats;
mod tenants;
mod workers;

use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use serde::Serialize;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Components, Info, License, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

use crate::app::App;
use crate::caller::WORKER_HEADER;
use crate::problem::{METHOD_NOT_ALLOWED, NOT_FOUND, Problem, ProblemBody};

/// Every route with its handler.
pub(crate) fn router(app: App) -> Router {
    let (router, document) = routes().split_for_parts();
    let document = text(&document);
    let serve = routing::get(move || {
        let document = document.clone();
        async move { ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], document).into_response() }
    });
    router
        .route("/v1/openapi.json", serve)
        .fallback(|| async { Problem::new(NOT_FOUND, "there is no such path; GET /v1/openapi.json lists them all") })
        .method_not_allowed_fallback(|| async {
            Problem::new(METHOD_NOT_ALLOWED, "the path does not take this method")
        })
        .layer(middleware::from_fn(add_headers))
        .with_state(app)
}

/// The OpenAPI document that the code adds up to, as it is served and checked in.
pub fn openapi() -> String {
    text(&routes().split_for_parts().1)
}

fn text(document: &OpenApi) -> String {
    document.to_pretty_json().unwrap_or_default() + "\n"
}

fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(about())
        .merge(jobs::routes())
        .merge(queues::routes())
        .merge(gates::routes())
        .merge(runs::routes())
        .merge(schedules::routes())
        .merge(workers::routes())
        .merge(leases::routes())
        .merge(stats::routes())
        .merge(audit::routes())
        .merge(tenants::routes())
        .merge(keys::routes())
        .merge(health::routes())
        .merge(problems::routes())
}

fn about() -> OpenApi {
    let mut info = Info::new("Tenure", env!("CARGO_PKG_VERSION"));
    info.description = Some(
        "Durable jobs on Postgres or on one embedded file: enqueue, see, operate, and work, in any language.".into(),
    );
    info.license = Some(License::new("MIT OR Apache-2.0"));
    let mut components = Components::new();
    let mut key = Http::new(HttpAuthScheme::Bearer);
    key.description = Some("An API key: `tenure keys create`.".into());
    components.add_security_scheme("key", SecurityScheme::Http(key));
    let token = ApiKeyValue::with_description(WORKER_HEADER, "The token that a worker was given when it registered.");
    components.add_security_scheme("worker", SecurityScheme::ApiKey(ApiKey::Header(token)));
    OpenApiBuilder::new().info(info).components(Some(components)).build()
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

/// What every call may answer besides what it is for.
#[derive(utoipa::IntoResponses)]
pub(crate) enum Usual {
    /// The request cannot be read
    #[response(status = 400, content_type = "application/problem+json")]
    #[expect(dead_code, reason = "for the document only")]
    Malformed(#[to_schema] ProblemBody),
    /// There is no good key
    #[response(status = 401, content_type = "application/problem+json")]
    #[expect(dead_code, reason = "for the document only")]
    Unauthorized(#[to_schema] ProblemBody),
    /// The key does not allow this
    #[response(status = 403, content_type = "application/problem+json")]
    #[expect(dead_code, reason = "for the document only")]
    Forbidden(#[to_schema] ProblemBody),
    /// It is not known here
    #[response(status = 404, content_type = "application/problem+json")]
    #[expect(dead_code, reason = "for the document only")]
    NotFound(#[to_schema] ProblemBody),
    /// The body came too slowly
    #[response(status = 408, content_type = "application/problem+json")]
    #[expect(dead_code, reason = "for the document only")]
    Timeout(#[to_schema] ProblemBody),
    /// Its state does not allow this
    #[response(status = 409, content_type = "application/problem+json")]
    #[expect(dead_code, reason = "for the document only")]
    Conflict(#[to_schema] ProblemBody),
    /// The body is too large
    #[response(status = 413, content_type = "application/problem+json")]
    #[expect(dead_code, reason = "for the document only")]
    TooLarge(#[to_schema] ProblemBody),
    /// The body is no JSON
    #[response(status = 415, content_type = "application/problem+json")]
    #[expect(dead_code, reason = "for the document only")]
    UnsupportedMediaType(#[to_schema] ProblemBody),
    /// A value is refused
    #[response(status = 422, content_type = "application/problem+json")]
    #[expect(dead_code, reason = "for the document only")]
    Invalid(#[to_schema] ProblemBody),
    /// The queue is full
    #[response(status = 429, content_type = "application/problem+json")]
    #[expect(dead_code, reason = "for the document only")]
    Full(#[to_schema] ProblemBody),
    /// The store does not answer, or somebody has it just now
    #[response(status = 503, content_type = "application/problem+json")]
    #[expect(dead_code, reason = "for the document only")]
    Unavailable(#[to_schema] ProblemBody),
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
