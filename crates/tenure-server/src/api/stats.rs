//! Figures: what waits, and how attempts ended lately.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use tenure_core::Scope;
use tenure_core::name::QueueName;
use tenure_store::record::EndingCount;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::parse;
use super::ok;
use crate::app::App;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::query::Query;
use crate::wire::stats::{Counted, StatsDocument};

/// How far to look back where nothing is said.
const WITHIN: Duration = Duration::from_secs(3_600);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show_stats))
}

/// What to count.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct StatsOf {
    /// How far to look back, such as 24h; 1h where nothing is said, at most 7d
    #[param(pattern = "^[0-9]{1,6}(s|m|h|d)$")]
    within: Option<String>,
    /// Only this queue
    queue: Option<String>,
}

/// Count what waits, and how attempts ended lately
#[utoipa::path(get, path = "/v1/stats", tag = "stats", params(StatsOf), security(("key" = ["read"])),
    responses((status = 200, body = StatsDocument)))]
async fn show_stats(State(app): State<App>, caller: Caller, Query(asked): Query<StatsOf>) -> Result<Response, Problem> {
    caller.need_operator(Scope::Read)?;
    let within = asked.within.map_or(Ok(WITHIN), |text| tenure_core::duration::parse("within", &text))?;
    EndingCount::check_within(within)?;
    let wanted: Option<QueueName> = parse(asked.queue.as_deref())?;
    let is_wanted = |queue: &QueueName| wanted.as_ref().is_none_or(|wanted| wanted == queue);
    let mut queues = app.store.list_queues().await?;
    queues.retain(|queue| is_wanted(&queue.name));
    let counted = Counted::new(app.store.count_endings(within).await?, |count| is_wanted(&count.queue));
    ok(&StatsDocument::new(within, &queues, &counted))
}
