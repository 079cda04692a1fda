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
    /// Each thing it uses
    checks: Vec<Check>,
}

/// One thing that is used.
#[derive(Debug, Serialize, ToSchema)]
struct Check {
    /// server, store or broker
    name: &'static str,
    /// ok or unavailable
    status: &'static str,
    /// Whether it is unavailable without this
    required: bool,
}

impl Check {
    const fn new(name: &'static str, is_there: bool, required: bool) -> Self {
        Self { name, status: if is_there { "ok" } else { "unavailable" }, required }
    }

    fn is_missing(&self) -> bool {
        self.required && self.status != "ok"
    }
}

/// Whether the process answers at all: restart it when it does not
#[utoipa::path(get, path = "/v1/health/live", tag = "health", security(()), responses((status = 200, body = Health)))]
async fn live() -> Result<Response, Problem> {
    ok(&Health { status: "ok", checks: Vec::new() })
}

/// Whether it can do what it is for: send it no requests while it cannot
///
/// A broker that is not required may be away: then jobs are found by polling.
#[utoipa::path(get, path = "/v1/health/ready", tag = "health", security(()),
    responses((status = 200, body = Health), (status = 503, body = Health)))]
async fn ready(State(app): State<App>) -> Result<Response, Problem> {
    let is_stopping = *app.stopping.borrow();
    let checks = match is_stopping {
        true => vec![Check::new("server", false, true)],
        false => look(&app).await,
    };
    match checks.iter().any(Check::is_missing) {
        false => ok(&Health { status: "ok", checks }),
        true => answer(StatusCode::SERVICE_UNAVAILABLE, &Health { status: "unavailable", checks }),
    }
}

/// Everything that a server uses.
async fn look(app: &App) -> Vec<Check> {
    let mut checks = vec![Check::new("store", app.is_store_there().await, true)];
    if let Some(waker) = &app.options.waker {
        checks.push(Check::new("broker", waker.is_up(), app.options.waker_required));
    }
    checks
}
