//! What handlers said that they used, summed.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use tenure_core::Scope;
use tenure_core::name::{KindName, TenantName};
use tenure_store::usage::{UsageFilter, UsagePlace};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::parse;
use super::ok;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::{self, Page};
use crate::problem::Problem;
use crate::query::Query;
use crate::wire::usage::UsageLine;

/// How far to look back where nothing is said.
const WITHIN: Duration = Duration::from_secs(30 * 86_400);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(sum_usage))
}

/// What to sum.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct UsageOf {
    /// How far to look back, such as 7d; 30d where nothing is said
    #[param(pattern = "^[0-9]{1,6}(s|m|h|d)$")]
    within: Option<String>,
    kind: Option<String>,
    /// Only this tenant's; operators only
    tenant: Option<String>,
    /// Rows of a page, 1 to 200; 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// What handlers said that they used, by day, tenant, kind and name
///
/// The newest day first, then by tenant, kind and name.
#[utoipa::path(get, path = "/v1/usage", tag = "stats", params(UsageOf), security(("key" = ["read"])),
    responses((status = 200, body = Page<UsageLine>)))]
async fn sum_usage(State(app): State<App>, caller: Caller, Query(asked): Query<UsageOf>) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let limit = cursor::limit(asked.limit)?;
    let within = asked.within.map_or(Ok(WITHIN), |text| tenure_core::duration::parse("within", &text))?;
    let filter = UsageFilter {
        sight: caller.sight(parse::<TenantName>(asked.tenant.as_deref())?)?,
        kind: parse::<KindName>(asked.kind.as_deref())?,
        since: app.store.now().await?.minus(within),
        after: cursor::read::<UsagePlace>("usage", asked.cursor.as_deref())?,
        limit: limit + 1,
    };
    let totals = app.store.sum_usage(&filter).await?;
    ok(&Page::cut("usage", totals, limit, |total| total.place().to_string(), |total| UsageLine::from(total)))
}
