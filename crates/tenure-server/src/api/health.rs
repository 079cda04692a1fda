//! Health: whether the process lives, and whether it can do what it is for.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{answer, ok};
use crate::app::App;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(live)).routes(routes!(ready))
}

/// How it does.
#[derive(Debug, Serialize, ToSchema)]
struct Health {
    /// ok or unavailable
    status: &'static str,
    /// Each thing it needs
    checks: Vec<Check>,
}

/// One thing that is needed.
#[derive(Debug, Serialize, ToSchema)]
struct Check {
    name: &'static str,
    /// ok or unavailable
    status: &'static str,
}

/// Whether the process answers at all: restart it when it does not
#[utoipa::path(get, path = "/v1/health/live", tag = "health", security(()), responses((status = 200, body = Health)))]
async fn live() -> Result<Response, Problem> {
    ok(&Health { status: "ok", checks: Vec::new() })
}

/// Whether it can do what it is for: send it no requests while it cannot
#[utoipa::path(get, path = "/v1/health/ready", tag = "health", security(()),
    responses((status = 200, body = Health), (status = 503, body = Health)))]
async fn ready(State(app): State<App>) -> Result<Response, Problem> {
    let stopping = *app.stopping.borrow();
    let checks = match stopping {
        true => vec![Check { name: "server", status: "unavailable" }],
        false => {
            let status = if app.is_store_there().await { "ok" } else { "unavailable" };
            vec![Check { name: "store", status }]
        }
    };
    match checks.iter().all(|check| check.status == "ok") {
        true => ok(&Health { status: "ok", checks }),
        false => answer(StatusCode::SERVICE_UNAVAILABLE, &Health { status: "unavailable", checks }),
    }
}
