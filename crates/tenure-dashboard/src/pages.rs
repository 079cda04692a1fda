//! Every page: one file each. Adding one is a file, a template, and a line here and in the menu.

mod audit;
mod dead;
mod gates;
mod job;
mod jobs;
mod keys;
mod operations;
mod overview;
mod queues;
mod run;
mod runs;
mod schedules;
pub(crate) mod secret;
mod tenants;
mod webhooks;
mod workers;

use axum::response::Response;
use axum::routing::{get, post};
use axum::{Router, middleware};
use tenure_server::problem::{NOT_FOUND, Problem};

use crate::desk::Desk;
use crate::frame::Trouble;
use crate::{act, assets, guard, live, person, search};

/// What a page answers.
type Shown = Result<Response, Trouble>;

pub(crate) fn router(desk: Desk) -> Router {
    Router::new()
        .route("/", get(overview::show))
        .route("/queues", get(queues::show))
        .route("/jobs", get(jobs::show))
        .route("/jobs/bulk", get(jobs::confirm))
        .route("/jobs/{id}", get(job::show))
        .route("/dead", get(dead::show))
        .route("/operations", get(operations::list))
        .route("/operations/{id}", get(operations::show))
        .route("/runs", get(runs::show))
        .route("/runs/{id}", get(run::show))
        .route("/gates", get(gates::list))
        .route("/gates/{*name}", get(gates::show))
        .route("/schedules", get(schedules::list))
        .route("/schedules/{tenant}/{*name}", get(schedules::show))
        .route("/workers", get(workers::show))
        .route("/webhooks", get(webhooks::list))
        .route("/webhooks/{id}", get(webhooks::show))
        .route("/deliveries/{id}", get(webhooks::delivery))
        .route("/audit", get(audit::show))
        .route("/tenants", get(tenants::show))
        .route("/keys", get(keys::show))
        .route("/search", get(search::show))
        .route("/live", get(live::listen))
        .route("/do", post(act::act))
        .route("/sign-in", get(person::show).post(person::enter))
        .route("/sign-out", post(person::leave))
        .route("/assets/{name}", get(assets::serve))
        .fallback(|| async { Trouble(Problem::new(NOT_FOUND, "there is no such page")) })
        .layer(middleware::from_fn(guard::watch))
        .with_state(desk)
}
