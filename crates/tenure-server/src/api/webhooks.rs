//! Webhook endpoints: who is told what. What came of it is in `deliveries`.

mod deliveries;

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tenure_core::name::TenantName;
use tenure_core::{EndpointId, Events, Invalid, Scope};
use tenure_store::record::Sight;
use tenure_store::webhook::{ChangeEndpoint, ENDPOINTS_MAX, EndpointFilter, OperateEndpoint};
use tenure_webhooks::endpoints::OVERLAP;
use tenure_webhooks::{Prefix, Secret, Wish};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::parse;
use super::{Reason, answer, ok};
use crate::app::App;
use crate::body::{Json, at_most};
use crate::caller::Caller;
use crate::cursor::{self, Page};
use crate::problem::Problem;
use crate::query::{Query, Segments};
use crate::right::Admin;
use crate::wire::webhook::{EndpointDocument, EndpointLine};

/// Most words of an event filter.
const EVENTS_MAX: usize = 30;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_endpoints, create_endpoint))
        .routes(routes!(show_endpoint, change_endpoint, remove_endpoint))
        .routes(routes!(rotate_endpoint))
        .routes(routes!(ping_endpoint))
        .merge(deliveries::routes())
}

/// Which endpoints to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListEndpoints {
    /// Only this tenant's; operators only
    tenant: Option<String>,
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// List webhook endpoints by id; secrets are nowhere
#[utoipa::path(get, path = "/v1/webhooks", tag = "webhooks", params(ListEndpoints), security(("key" = ["admin"])),
    responses((status = 200, body = Page<EndpointLine>)))]
async fn list_endpoints(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<ListEndpoints>,
) -> Result<Response, Problem> {
    caller.need(Scope::Admin)?;
    let limit = cursor::limit(asked.limit)?;
    let filter = EndpointFilter {
        sight: caller.sight(parse::<TenantName>(asked.tenant.as_deref())?)?,
        after: cursor::read("webhooks", asked.cursor.as_deref())?,
        limit: limit + 1,
    };
    let endpoints = app.store.list_endpoints(&filter).await?;
    ok(&Page::cut("webhooks", endpoints, limit, |to| to.id.to_string(), |to| EndpointLine::from(to)))
}

/// A new endpoint.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct EndpointBody {
    /// Where to; left out: wherever a job's `callback_url` says. A tenant has one of those
    #[schema(max_length = 2000, example = "https://example.com/hook")]
    url: Option<String>,
    /// What it is told, such as job.succeeded, run.* or *; how jobs ended where nothing is said
    #[serde(default, deserialize_with = "at_most::<_, _, EVENTS_MAX>")]
    #[schema(max_items = 30, value_type = Vec<String>)]
    events: Vec<String>,
    /// How its own headers begin; X-Tenure- where nothing is said
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9-]{1,38}-$", example = "X-Acme-")]
    header_prefix: Option<String>,
    /// A secret that the receiver has already, as whsec_ and base64; a new one is made otherwise
    #[schema(max_length = 100)]
    secret: Option<String>,
    /// Whose jobs; only operators say so
    tenant: Option<String>,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// Make a webhook endpoint; its secret is in the answer, once
#[utoipa::path(post, path = "/v1/webhooks", tag = "webhooks", request_body = EndpointBody, security(("key" = ["admin"])),
    responses((status = 201, body = EndpointDocument)))]
async fn create_endpoint(
    State(app): State<App>,
    caller: Caller,
    Json(body, _held): Json<Admin, EndpointBody>,
) -> Result<Response, Problem> {
    let wish = Wish {
        tenant: caller.acts_for(parse::<TenantName>(body.tenant.as_deref())?)?,
        url: body.url,
        events: if body.events.is_empty() { Events::default() } else { Events::new(&body.events)? },
        prefix: parse::<Prefix>(body.header_prefix.as_deref())?.unwrap_or_default(),
        secret: parse::<Secret>(body.secret.as_deref())?,
        word: caller.word(body.reason)?,
    };
    let (record, secret) = app.options.webhooks.create(&*app.store, wish).await?;
    answer(StatusCode::CREATED, &EndpointDocument::new(&record, &secret))
}

/// One webhook endpoint
#[utoipa::path(get, path = "/v1/webhooks/{endpoint}", tag = "webhooks", params(("endpoint" = uuid::Uuid, Path)),
    security(("key" = ["admin"])), responses((status = 200, body = EndpointLine)))]
async fn show_endpoint(State(app): State<App>, caller: Caller, path: Segments) -> Result<Response, Problem> {
    caller.need(Scope::Admin)?;
    let endpoint = app.store.show_endpoint(&caller.sight(None)?, path.get("endpoint")?).await?;
    ok(&EndpointLine::from(&endpoint))
}

/// What becomes of an endpoint; what is left out stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ChangeBody {
    #[schema(max_length = 2000)]
    url: Option<String>,
    #[serde(default, deserialize_with = "at_most::<_, _, EVENTS_MAX>")]
    #[schema(max_items = 30, value_type = Vec<String>)]
    events: Vec<String>,
    #[schema(pattern = "^[A-Za-z][A-Za-z0-9-]{1,38}-$")]
    header_prefix: Option<String>,
    /// Whether it gets anything
    enabled: Option<bool>,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// Change a webhook endpoint, disable or enable it
///
/// What was not delivered while it was disabled is not made up for.
#[utoipa::path(patch, path = "/v1/webhooks/{endpoint}", tag = "webhooks", params(("endpoint" = uuid::Uuid, Path)),
    request_body = ChangeBody, security(("key" = ["admin"])), responses((status = 200, body = EndpointLine)))]
async fn change_endpoint(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Admin, ChangeBody>,
) -> Result<Response, Problem> {
    let refused = |refused: tenure_webhooks::Refused| Problem::invalid("url", refused.to_string());
    body.url.as_deref().map_or(Ok(()), |url| app.options.webhooks.check_url(url)).map_err(refused)?;
    let change = ChangeEndpoint {
        url: body.url,
        events: if body.events.is_empty() { None } else { Some(Events::new(&body.events)?) },
        prefix: parse::<Prefix>(body.header_prefix.as_deref())?.map(|prefix| prefix.to_string()),
        enabled: body.enabled,
        ..ChangeEndpoint::new(caller.sight(None)?, path.get("endpoint")?, caller.word(body.reason)?)
    };
    ok(&EndpointLine::from(&app.store.change_endpoint(change).await?))
}

/// Remove a webhook endpoint and its deliveries
#[utoipa::path(delete, path = "/v1/webhooks/{endpoint}", tag = "webhooks", params(("endpoint" = uuid::Uuid, Path)),
    security(("key" = ["admin"])), responses((status = 204)))]
async fn remove_endpoint(State(app): State<App>, caller: Caller, path: Segments) -> Result<Response, Problem> {
    caller.need(Scope::Admin)?;
    app.store.remove_endpoint(operation(&caller, &path, None)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// How another secret takes the place of the one before.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RotateSecretBody {
    /// How long both sign; a day where nothing is said
    #[schema(maximum = 2592000000_u64)]
    overlap_ms: Option<u64>,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// Give a webhook endpoint another secret; it is in the answer, once
#[utoipa::path(post, path = "/v1/webhooks/{endpoint}/rotate", tag = "webhooks", params(("endpoint" = uuid::Uuid, Path)),
    request_body = RotateSecretBody, security(("key" = ["admin"])), responses((status = 200, body = EndpointDocument)))]
async fn rotate_endpoint(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Admin, RotateSecretBody>,
) -> Result<Response, Problem> {
    let (sight, id): (_, EndpointId) = (caller.sight(None)?, path.get("endpoint")?);
    let overlap = body.overlap_ms.map_or(OVERLAP, Duration::from_millis);
    let word = caller.word(body.reason)?;
    let (record, secret) = app.options.webhooks.rotate(&*app.store, sight, id, overlap, word).await?;
    ok(&EndpointDocument::new(&record, &secret))
}

/// Send a webhook endpoint the event webhook.pinged, whatever it listens for
#[utoipa::path(post, path = "/v1/webhooks/{endpoint}/ping", tag = "webhooks", params(("endpoint" = uuid::Uuid, Path)),
    request_body = Reason, security(("key" = ["admin"])), responses((status = 202)))]
async fn ping_endpoint(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Admin, Reason>,
) -> Result<Response, Problem> {
    app.store.ping_endpoint(operation(&caller, &path, body.reason)?).await?;
    Ok(StatusCode::ACCEPTED.into_response())
}

fn operation(caller: &Caller, path: &Segments, reason: Option<String>) -> Result<OperateEndpoint, Problem> {
    let (sight, endpoint, word) = (caller.sight(None)?, path.get("endpoint")?, caller.word(reason)?);
    Ok(OperateEndpoint { sight, endpoint, word })
}

/// Refuses a callback that would never be called, or that nobody would sign.
pub(super) async fn check_callback(app: &App, tenant: &TenantName, url: &str) -> Result<(), Problem> {
    let refused = |refused: tenure_webhooks::Refused| Problem::invalid("callback_url", refused.to_string());
    app.options.webhooks.check_url(url).map_err(refused)?;
    if app.signs_callbacks(tenant).await? {
        return Ok(());
    }
    let limit = "no endpoint signs callbacks: make one with `POST /v1/webhooks` and no url, and see that it is enabled";
    Err(Invalid::new("callback_url", url, limit).into())
}

/// Whether a tenant has an endpoint for callbacks.
pub(crate) async fn has_callbacks(app: &App, tenant: &TenantName) -> Result<bool, Problem> {
    let filter = EndpointFilter { sight: Sight::Tenant(tenant.clone()), after: None, limit: ENDPOINTS_MAX };
    let endpoints = app.store.list_endpoints(&filter).await?;
    Ok(endpoints.iter().any(|endpoint| endpoint.url.is_none() && endpoint.disabled.is_none()))
}
