//! Deliveries: the log, and sending again.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tenure_core::name::TenantName;
use tenure_core::{EndpointId, Invalid, JobId, Scope, Timestamp};
use tenure_store::webhook::{DeliveryFilter, DeliveryState};
use tenure_webhooks::resend::{resend_one, resend_range};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::jobs::parse;
use crate::api::{Reason, answer, ok};
use crate::app::App;
use crate::body::Json;
use crate::caller::Caller;
use crate::cursor::{self, Page};
use crate::problem::Problem;
use crate::query::{Query, Segments};
use crate::right::Operate;
use crate::wire::webhook::{DeliveryDocument, DeliveryLine};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_deliveries))
        .routes(routes!(show_delivery))
        .routes(routes!(resend_delivery))
        .routes(routes!(resend_deliveries))
}

/// Which deliveries to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListDeliveries {
    /// Only to this endpoint
    endpoint: Option<String>,
    /// pending, delivered or failed
    #[param(pattern = "^(pending|delivered|failed)$")]
    state: Option<String>,
    /// Only those made then or later
    #[param(format = DateTime)]
    since: Option<String>,
    /// Only those made before
    #[param(format = DateTime)]
    until: Option<String>,
    /// Only this tenant's; operators only
    tenant: Option<String>,
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// List deliveries, newest first
#[utoipa::path(get, path = "/v1/deliveries", tag = "webhooks", params(ListDeliveries), security(("key" = ["read"])),
    responses((status = 200, body = Page<DeliveryLine>)))]
async fn list_deliveries(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<ListDeliveries>,
) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let limit = cursor::limit(asked.limit)?;
    let filter = DeliveryFilter {
        endpoint: parse::<EndpointId>(asked.endpoint.as_deref())?,
        state: asked.state.as_deref().map(parse_state).transpose()?,
        since: moment("since", asked.since.as_deref())?,
        until: moment("until", asked.until.as_deref())?,
        before: cursor::read("deliveries", asked.cursor.as_deref())?,
        ..DeliveryFilter::new(caller.sight(parse::<TenantName>(asked.tenant.as_deref())?)?, limit + 1)
    };
    let deliveries = app.store.list_deliveries(&filter).await?;
    ok(&Page::cut("deliveries", deliveries, limit, |it| it.job.to_string(), |it| DeliveryLine::from(it)))
}

/// One delivery with its body and what came of each try
#[utoipa::path(get, path = "/v1/deliveries/{delivery}", tag = "webhooks", params(("delivery" = uuid::Uuid, Path)),
    security(("key" = ["read"])), responses((status = 200, body = DeliveryDocument)))]
async fn show_delivery(State(app): State<App>, caller: Caller, path: Segments) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let delivery = app.store.show_delivery(&caller.sight(None)?, path.get("delivery")?).await?;
    ok(&DeliveryDocument::from(&delivery))
}

/// Send a delivery again, as a new one with the same event
#[utoipa::path(post, path = "/v1/deliveries/{delivery}/resend", tag = "webhooks", params(("delivery" = uuid::Uuid, Path)),
    request_body = Reason, security(("key" = ["operate"])), responses((status = 201, body = DeliveryLine)))]
async fn resend_delivery(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operate, Reason>,
) -> Result<Response, Problem> {
    let (sight, word) = (caller.sight(None)?, caller.word(body.reason)?);
    let new = resend_one(&*app.store, sight.clone(), path.get("delivery")?, word).await?;
    let delivery = app.store.show_delivery(&sight, new).await?;
    answer(StatusCode::CREATED, &DeliveryLine::from(&delivery.summary))
}

/// Which deliveries of an endpoint are sent again.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResendBody {
    /// Made then or later
    #[schema(format = DateTime)]
    since: Option<String>,
    /// Made before
    #[schema(format = DateTime)]
    until: Option<String>,
    /// Only those before this delivery: the `more_before` of the answer before
    #[schema(format = Uuid)]
    before: Option<String>,
    /// pending, delivered or failed; failed where nothing is said
    #[schema(pattern = "^(pending|delivered|failed)$")]
    state: Option<String>,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// What was sent again.
#[derive(Debug, Serialize, ToSchema)]
struct ResentAnswer {
    resent: u64,
    /// There are more: go on with this `before`.
    more_before: Option<String>,
}

/// Send deliveries of an endpoint again, the newest first, at most 10,000
#[utoipa::path(post, path = "/v1/webhooks/{endpoint}/resend", tag = "webhooks", params(("endpoint" = uuid::Uuid, Path)),
    request_body = ResendBody, security(("key" = ["operate"])), responses((status = 200, body = ResentAnswer)))]
async fn resend_deliveries(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operate, ResendBody>,
) -> Result<Response, Problem> {
    let sight = caller.sight(None)?;
    let endpoint = app.store.show_endpoint(&sight, path.get("endpoint")?).await?;
    let state = body.state.as_deref().map(parse_state).transpose()?;
    let filter = DeliveryFilter {
        endpoint: Some(endpoint.id),
        state: Some(state.unwrap_or(DeliveryState::Failed)),
        since: moment("since", body.since.as_deref())?,
        until: moment("until", body.until.as_deref())?,
        before: parse::<JobId>(body.before.as_deref())?,
        ..DeliveryFilter::new(sight, 1)
    };
    let resent = resend_range(&*app.store, filter, caller.word(body.reason)?).await?;
    ok(&ResentAnswer { resent: resent.count, more_before: resent.more_before.map(|job| job.to_string()) })
}

fn moment(field: &'static str, text: Option<&str>) -> Result<Option<Timestamp>, Invalid> {
    text.map(|text| Timestamp::parse(field, text)).transpose()
}

fn parse_state(word: &str) -> Result<DeliveryState, Problem> {
    let refused = || Invalid::new("state", word, "it is pending, delivered or failed");
    Ok(DeliveryState::parse(word).ok_or_else(refused)?)
}
