//! Figures over time: what charts show.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use tenure_core::name::{KindName, QueueName, TenantName};
use tenure_core::{Invalid, Scope};
use tenure_store::operate::BATCH_MAX;
use tenure_store::rollup::{By, RollupFilter, Step};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::parse;
use super::ok;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::Page;
use crate::problem::Problem;
use crate::query::Query;
use crate::wire::figures::FiguresLine;

/// How far to look back where nothing is said.
const WITHIN: Duration = Duration::from_secs(3_600);
/// How far one may look back.
const WITHIN_MAX: Duration = Duration::from_secs(7 * 86_400);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_figures))
}

/// What to sum.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct FiguresOf {
    /// How far to look back, such as 24h; 1h where nothing is said, at most 7d
    #[param(pattern = "^[0-9]{1,6}(s|m|h|d)$")]
    within: Option<String>,
    /// What a line is about; time where nothing is said
    #[param(pattern = "^(time|queue|kind|tenant)$")]
    by: Option<String>,
    /// Only this queue
    queue: Option<String>,
    /// Only this kind
    kind: Option<String>,
    /// Only this tenant's; operators only
    tenant: Option<String>,
}

/// How many attempts began, how they ended, and how long they ran and waited
///
/// By time there is a line for each minute up to 2h, each quarter of an hour up to 2d, and each two hours above, the oldest
/// first; one in which nothing happened has none. By queue, kind or tenant the busiest is first. What happened is counted
/// about two seconds later, and the first step is counted whole.
#[utoipa::path(get, path = "/v1/figures", tag = "stats", params(FiguresOf), security(("key" = ["read"])),
    responses((status = 200, body = Page<FiguresLine>)))]
async fn list_figures(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<FiguresOf>,
) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let text = asked.within.as_deref();
    let within = text.map_or(Ok(WITHIN), |text| tenure_core::duration::parse("within", text))?;
    if within.is_zero() || within > WITHIN_MAX {
        return Err(Invalid::new("within", text.unwrap_or_default(), "it is more than nothing and at most 7d").into());
    }
    let now = app.store.now().await?;
    let filter = RollupFilter {
        sight: caller.sight(parse::<TenantName>(asked.tenant.as_deref())?)?,
        step: Step::of_span(within),
        since: now.minus(within),
        until: now.plus(Duration::from_micros(1)),
        queue: parse::<QueueName>(asked.queue.as_deref())?,
        kind: parse::<KindName>(asked.kind.as_deref())?,
        by: asked.by.as_deref().map_or(Ok(By::Time), by)?,
        limit: BATCH_MAX,
    };
    let lines = app.store.list_rollups(&filter).await?;
    ok(&Page::whole(lines.iter().map(FiguresLine::from).collect()))
}

fn by(text: &str) -> Result<By, Invalid> {
    match text {
        "time" => Ok(By::Time),
        "queue" => Ok(By::Queue),
        "kind" => Ok(By::Kind),
        "tenant" => Ok(By::Tenant),
        _ => Err(Invalid::new("by", text, "it is time, queue, kind or tenant")),
    }
}
