//! Figures for Prometheus.

use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use tenure_core::Scope;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::caller::Caller;
use crate::problem::Problem;

/// The format that every Prometheus reads.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show_metrics))
}

/// Show figures for Prometheus
///
/// What the store holds is as of five seconds ago.
#[utoipa::path(get, path = "/metrics", tag = "stats", security(("key" = ["read"])),
    responses((status = 200, content_type = "text/plain", body = String)))]
async fn show_metrics(State(app): State<App>, caller: Caller) -> Result<Response, Problem> {
    caller.need_operator(Scope::Read)?;
    let text = app.metrics.render(&*app.store).await;
    Ok(([(CONTENT_TYPE, HeaderValue::from_static(FORMAT))], text).into_response())
}
