//! Operations: one act on many jobs, in the background; and dead letters by what killed them.

use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tenure_core::name::{KindName, QueueName, TenantName};
use tenure_core::{Invalid, JobId, Scope};
use tenure_store::operate::CancelJob;
use tenure_store::operation::{Act, NewOperation, OperationFilter};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::parse;
use super::{Reason, answer, ok};
use crate::app::App;
use crate::body::Json;
use crate::caller::Caller;
use crate::cursor::{self, Page};
use crate::dead::{Grouped, group};
use crate::problem::Problem;
use crate::query::{Query, Segments};
use crate::right::Operate;
use crate::wire::operation::{GroupLine, OperationLine};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_dead))
        .routes(routes!(list_operations, create_operation))
        .routes(routes!(show_operation))
        .routes(routes!(cancel_operation))
}

/// Which dead letters.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListDead {
    queue: Option<String>,
    kind: Option<String>,
    /// Only this tenant's; operators only
    tenant: Option<String>,
}

/// Dead letters by what killed them.
#[derive(Debug, Serialize, ToSchema)]
struct DeadAnswer {
    /// The largest first
    groups: Vec<GroupLine>,
    /// How many dead letters were looked at, the newest first
    looked_at: u64,
    /// Whether those were all
    complete: bool,
}

/// Dead letters by kind and error, of the newest 10,000
///
/// The same error is the same code, or the same message without numbers, uuids and quoted parts. `GET /v1/jobs?state=dead`
/// lists them one by one.
#[utoipa::path(get, path = "/v1/dead", tag = "jobs", params(ListDead), security(("key" = ["read"])),
    responses((status = 200, body = DeadAnswer)))]
async fn list_dead(State(app): State<App>, caller: Caller, Query(asked): Query<ListDead>) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let sight = caller.sight(parse::<TenantName>(asked.tenant.as_deref())?)?;
    let (queue, kind) = (parse::<QueueName>(asked.queue.as_deref())?, parse::<KindName>(asked.kind.as_deref())?);
    let Grouped { groups, looked_at, complete } = group(&*app.store, sight, queue, kind).await?;
    let groups = groups.iter().map(GroupLine::from).collect();
    ok(&DeadAnswer { groups, looked_at, complete })
}

/// An act on many jobs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct OperationBody {
    /// requeue, cancel or cancel_by_force
    #[schema(pattern = "^(requeue|cancel|cancel_by_force)$")]
    act: String,
    /// Only jobs in this state: failed, dead or canceled to requeue, waiting, queued, retryable or running to cancel
    #[schema(pattern = "^(waiting|queued|retryable|running|failed|dead|canceled)$")]
    state: String,
    #[schema(pattern = "^[A-Za-z0-9._:/-]{1,100}$")]
    queue: Option<String>,
    #[schema(pattern = "^[A-Za-z0-9._:/-]{1,100}$")]
    kind: Option<String>,
    /// Only dead letters of this group, as `GET /v1/dead` names it
    #[schema(pattern = "^[0-9a-f]{8}$")]
    group: Option<String>,
    /// What it is called; the act and the state where nothing is said
    #[schema(min_length = 1, max_length = 500)]
    name: Option<String>,
    /// Whose jobs; only operators say so, everybody's where they do not
    tenant: Option<String>,
    /// Why, in a person's words: it goes into the journal, once for each job
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// Begin an operation: one act on many jobs, in the background
///
/// Only jobs that are there now are meant. It goes on by itself, whatever becomes of this server.
#[utoipa::path(post, path = "/v1/operations", tag = "jobs", request_body = OperationBody, security(("key" = ["operate"])),
    responses((status = 202, body = OperationLine)))]
async fn create_operation(
    State(app): State<App>,
    caller: Caller,
    Json(body, _held): Json<Operate, OperationBody>,
) -> Result<Response, Problem> {
    let tenant = match (&caller.tenant, parse::<TenantName>(body.tenant.as_deref())?) {
        (None, asked) => asked,
        (Some(_), asked) => Some(caller.acts_for(asked)?),
    };
    let acts = || Invalid::new("act", &body.act, "it is requeue, cancel or cancel_by_force");
    let group = body.group.as_deref().map(crate::dead::parse_key).transpose();
    let request = NewOperation {
        id: app.new_id()?,
        tenant,
        name: body.name.unwrap_or_else(|| format!("{} {}", body.act, body.state)),
        act: Act::parse(&body.act).ok_or_else(acts)?,
        state: super::jobs::parse_state(&body.state)?,
        queue: parse::<QueueName>(body.queue.as_deref())?,
        kind: parse::<KindName>(body.kind.as_deref())?,
        group: group.map_err(|why| Problem::invalid("group", why))?,
        word: caller.word(body.reason)?,
    };
    let operation = app.store.create_operation(request).await?;
    let mut response = answer(StatusCode::ACCEPTED, &OperationLine::from(&operation))?;
    if let Ok(place) = HeaderValue::try_from(format!("/v1/operations/{}", operation.id)) {
        response.headers_mut().insert(LOCATION, place);
    }
    Ok(response)
}

/// Which operations to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListOperations {
    /// Only this tenant's; operators only
    tenant: Option<String>,
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// List operations, newest first
#[utoipa::path(get, path = "/v1/operations", tag = "jobs", params(ListOperations), security(("key" = ["read"])),
    responses((status = 200, body = Page<OperationLine>)))]
async fn list_operations(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<ListOperations>,
) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let limit = cursor::limit(asked.limit)?;
    let filter = OperationFilter {
        sight: caller.sight(parse::<TenantName>(asked.tenant.as_deref())?)?,
        before: cursor::read("operations", asked.cursor.as_deref())?,
        limit: limit + 1,
    };
    let operations = app.store.list_operations(&filter).await?;
    ok(&Page::cut("operations", operations, limit, |it| it.id.to_string(), |it| OperationLine::from(it)))
}

/// One operation and how far it is
#[utoipa::path(get, path = "/v1/operations/{id}", tag = "jobs", params(("id" = uuid::Uuid, Path)),
    security(("key" = ["read"])), responses((status = 200, body = OperationLine)))]
async fn show_operation(State(app): State<App>, caller: Caller, path: Segments) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    ok(&OperationLine::from(&app.store.show_operation(&caller.sight(None)?, path.get("id")?).await?))
}

/// Stop an operation; what it has done stays
#[utoipa::path(post, path = "/v1/operations/{id}/cancel", tag = "jobs", params(("id" = uuid::Uuid, Path)),
    request_body = Reason, security(("key" = ["operate"])), responses((status = 200, body = OperationLine)))]
async fn cancel_operation(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operate, Reason>,
) -> Result<Response, Problem> {
    let (sight, job): (_, JobId) = (caller.sight(None)?, path.get("id")?);
    let operation = app.store.show_operation(&sight, job).await?;
    let word = caller.word(body.reason)?;
    app.store.cancel_job(CancelJob { sight, job, force: false, word }).await?;
    ok(&OperationLine::from(&operation))
}
