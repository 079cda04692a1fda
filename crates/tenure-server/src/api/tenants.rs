//! Tenants: made and limited by operators.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
use tenure_core::Scope;
use tenure_core::name::TenantName;
use tenure_store::access::{SetTenant, TenantFilter};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::queues::quota;
use super::{answer, ok};
use crate::app::App;
use crate::body::Json;
use crate::caller::Caller;
use crate::cursor::{self, Page};
use crate::problem::Problem;
use crate::query::{Query, Segments};
use crate::right::{Admin, Operators};
use crate::wire::access::TenantLine;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_tenants)).routes(routes!(show_tenant, set_tenant))
}

/// Which tenants to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListTenants {
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// List tenants by name
#[utoipa::path(get, path = "/v1/tenants", tag = "tenants", params(ListTenants), security(("key" = ["admin"])),
    responses((status = 200, body = Page<TenantLine>)))]
async fn list_tenants(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<ListTenants>,
) -> Result<Response, Problem> {
    caller.need_operator(Scope::Admin)?;
    let limit = cursor::limit(asked.limit)?;
    let after = cursor::read::<TenantName>("tenants", asked.cursor.as_deref())?;
    let tenants = app.store.list_tenants(&TenantFilter { after, limit: limit + 1 }).await?;
    ok(&Page::cut("tenants", tenants, limit, |tenant| tenant.name.to_string(), |tenant| TenantLine::from(tenant)))
}

/// One tenant
#[utoipa::path(get, path = "/v1/tenants/{tenant}", tag = "tenants", params(("tenant" = String, Path)),
    security(("key" = ["admin"])), responses((status = 200, body = TenantLine)))]
async fn show_tenant(State(app): State<App>, caller: Caller, path: Segments) -> Result<Response, Problem> {
    caller.need_operator(Scope::Admin)?;
    ok(&TenantLine::from(&app.store.show_tenant(&path.get("tenant")?).await?))
}

/// What to change; the rest stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct TenantBody {
    /// Pending jobs it may have in each fair queue, instead of the queue's quota: 1 to 100,000; 0: as the queue says
    #[schema(minimum = 0, maximum = 100000)]
    quota: Option<u32>,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// Make a tenant or change it
#[utoipa::path(put, path = "/v1/tenants/{tenant}", tag = "tenants", params(("tenant" = String, Path)),
    request_body = TenantBody, security(("key" = ["admin"])),
    responses((status = 201, body = TenantLine), (status = 200, body = TenantLine)))]
async fn set_tenant(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operators<Admin>, TenantBody>,
) -> Result<Response, Problem> {
    let (tenant, word): (TenantName, _) = (path.get("tenant")?, caller.word(body.reason)?);
    let request = SetTenant { tenant: tenant.clone(), quota: body.quota.map(quota), word };
    let is_new = app.store.set_tenant(request).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    answer(status, &TenantLine::from(&app.store.show_tenant(&tenant).await?))
}
