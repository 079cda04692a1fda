//! Schedules: what asks for a job again and again.

use std::time::Duration;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use tenure_core::apply::SPARE_LOSSES;
use tenure_core::cron::Timing;
use tenure_core::name::{ScheduleName, TenantName};
use tenure_core::{Invalid, Json as Document, Priority, Rules, Scope};
use tenure_store::schedule::{PauseSchedule, RemoveSchedule, ScheduleFilter, SetSchedule, Template};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::{check_gate, check_queue, parse};
use super::{Reason, ok};
use crate::app::App;
use crate::body::Json;
use crate::caller::Caller;
use crate::cursor::{self, Page};
use crate::problem::Problem;
use crate::query::{Query, Segments};
use crate::right::{Both, Enqueue, Operate};
use crate::wire::schedule::ScheduleLine;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_schedules))
        .routes(routes!(show_schedule, set_schedule, remove_schedule))
        .routes(routes!(pause_schedule))
        .routes(routes!(resume_schedule))
}

/// Which schedules to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListSchedules {
    /// Only this tenant's; operators only
    tenant: Option<String>,
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// Whose schedule.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Whose {
    /// Whose; only operators say so
    tenant: Option<String>,
}

/// List schedules, by tenant and name
#[utoipa::path(get, path = "/v1/schedules", tag = "schedules", params(ListSchedules), security(("key" = ["read"])),
    responses((status = 200, body = Page<ScheduleLine>)))]
async fn list_schedules(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<ListSchedules>,
) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let limit = cursor::limit(asked.limit)?;
    let after = cursor::read::<Place>("schedules", asked.cursor.as_deref())?;
    let filter = ScheduleFilter {
        sight: caller.sight(parse::<TenantName>(asked.tenant.as_deref())?)?,
        after: after.map(|Place(tenant, name)| (tenant, name)),
        limit: limit + 1,
    };
    let schedules = app.store.list_schedules(&filter).await?;
    let place = |schedule: &tenure_store::schedule::ScheduleRecord| format!("{} {}", schedule.tenant, schedule.name);
    ok(&Page::cut("schedules", schedules, limit, place, |schedule| ScheduleLine::new(schedule, &[])))
}

/// A tenant and a schedule, as a cursor has them.
struct Place(TenantName, ScheduleName);

impl std::str::FromStr for Place {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (tenant, name) = text.split_once(' ').unwrap_or_default();
        Ok(Self(tenant.parse()?, name.parse()?))
    }
}

/// One schedule with its last fires
#[utoipa::path(get, path = "/v1/schedules/{schedule}", tag = "schedules", params(("schedule" = String, Path), Whose),
    security(("key" = ["read"])), responses((status = 200, body = ScheduleLine)))]
async fn show_schedule(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Query(whose): Query<Whose>,
) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let tenant = caller.acts_for(parse(whose.tenant.as_deref())?)?;
    shown(&app, &tenant, &path.get("schedule")?).await
}

/// When it fires, and what each fire asks for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleBody {
    /// Five fields, such as `0 3 * * *`, or @daily
    #[schema(max_length = 500)]
    cron: String,
    /// Whose clock it goes by, such as Europe/Berlin; UTC where nothing is said
    zone: Option<String>,
    /// What becomes of missed fires: skip or once
    #[schema(pattern = "^(skip|once)$")]
    missed: Option<String>,
    /// A fire is missed after this
    #[schema(maximum = 31536000000_u64)]
    grace_ms: Option<u64>,
    /// What its jobs ask for; picks the handler
    #[schema(pattern = "^[A-Za-z0-9._:/-]{1,100}$")]
    kind: String,
    /// For their handler
    #[schema(value_type = Option<serde_json::Value>)]
    payload: Option<Box<RawValue>>,
    #[schema(pattern = "^[A-Za-z0-9._:/-]{1,100}$")]
    queue: Option<String>,
    #[schema(minimum = 0, maximum = 3)]
    priority: Option<u8>,
    #[schema(pattern = "^[A-Za-z0-9._:/-]{1,100}$")]
    gate: Option<String>,
    #[schema(minimum = 1, maximum = 1000)]
    max_attempts: Option<u16>,
    backoff: Option<String>,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// Make a schedule or change it
///
/// Its fires store jobs of the caller's choice, so the key needs the scopes `operate` and `enqueue`.
#[utoipa::path(put, path = "/v1/schedules/{schedule}", tag = "schedules", params(("schedule" = String, Path), Whose),
    request_body = ScheduleBody, security(("key" = ["operate", "enqueue"])), responses((status = 200, body = ScheduleLine)))]
async fn set_schedule(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Query(whose): Query<Whose>,
    Json(body, _held): Json<Both<Operate, Enqueue>, ScheduleBody>,
) -> Result<Response, Problem> {
    let tenant = caller.acts_for(parse(whose.tenant.as_deref())?)?;
    let name: ScheduleName = path.get("schedule")?;
    let (timing, template) = (timing(&body)?, template(&body)?);
    check_queue(&app, &caller, &template.queue).await?;
    check_gate(&app, &caller, template.gate.as_ref()).await?;
    let word = caller.word(body.reason)?;
    let request = SetSchedule { tenant: tenant.clone(), name: name.clone(), timing, template, word };
    request.check()?;
    app.store.set_schedule(request).await?;
    shown(&app, &tenant, &name).await
}

fn timing(body: &ScheduleBody) -> Result<Timing, Invalid> {
    let mut timing = Timing::new(body.cron.parse()?);
    if let Some(zone) = &body.zone {
        timing.zone = zone.parse()?;
    }
    if let Some(missed) = &body.missed {
        timing.missed = missed.parse()?;
    }
    timing.grace = body.grace_ms.map_or(timing.grace, Duration::from_millis);
    Ok(timing)
}

fn template(body: &ScheduleBody) -> Result<Template, Invalid> {
    let payload = body.payload.as_ref().map_or("{}", |payload| payload.get());
    let mut template = Template::new(body.kind.parse()?, Document::parse("payload", payload)?);
    if let Some(queue) = &body.queue {
        template.queue = queue.parse()?;
    }
    if let Some(priority) = body.priority {
        template.priority = Priority::new(priority.into())?;
    }
    template.gate = body.gate.as_deref().map(str::parse).transpose()?;
    let max_attempts = body.max_attempts.unwrap_or(template.rules.max_attempts);
    let backoff = body.backoff.as_deref().map(str::parse).transpose()?;
    template.rules = Rules {
        max_attempts,
        max_losses: max_attempts.saturating_add(SPARE_LOSSES),
        backoff: backoff.unwrap_or(template.rules.backoff),
    };
    Ok(template)
}

/// Remove a schedule; the jobs it asked for stay
#[utoipa::path(delete, path = "/v1/schedules/{schedule}", tag = "schedules", params(("schedule" = String, Path), Whose),
    security(("key" = ["operate"])), responses((status = 204)))]
async fn remove_schedule(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Query(whose): Query<Whose>,
) -> Result<Response, Problem> {
    caller.need(Scope::Operate)?;
    let tenant = caller.acts_for(parse(whose.tenant.as_deref())?)?;
    let word = caller.word(None)?;
    app.store.remove_schedule(RemoveSchedule { tenant, name: path.get("schedule")?, word }).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Let a schedule fire nothing
#[utoipa::path(post, path = "/v1/schedules/{schedule}/pause", tag = "schedules", params(("schedule" = String, Path), Whose),
    request_body = Reason, security(("key" = ["operate"])), responses((status = 200, body = ScheduleLine)))]
async fn pause_schedule(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Query(whose): Query<Whose>,
    Json(body, _held): Json<Operate, Reason>,
) -> Result<Response, Problem> {
    switch(&app, &caller, &path, whose, body, true).await
}

/// Let a schedule go on from now
#[utoipa::path(post, path = "/v1/schedules/{schedule}/resume", tag = "schedules", params(("schedule" = String, Path), Whose),
    request_body = Reason, security(("key" = ["operate"])), responses((status = 200, body = ScheduleLine)))]
async fn resume_schedule(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Query(whose): Query<Whose>,
    Json(body, _held): Json<Operate, Reason>,
) -> Result<Response, Problem> {
    switch(&app, &caller, &path, whose, body, false).await
}

async fn switch(
    app: &App,
    caller: &Caller,
    path: &Segments,
    whose: Whose,
    body: Reason,
    paused: bool,
) -> Result<Response, Problem> {
    let tenant = caller.acts_for(parse(whose.tenant.as_deref())?)?;
    let (name, word): (ScheduleName, _) = (path.get("schedule")?, caller.word(body.reason)?);
    app.store.pause_schedule(PauseSchedule { tenant: tenant.clone(), name: name.clone(), paused, word }).await?;
    shown(app, &tenant, &name).await
}

async fn shown(app: &App, tenant: &TenantName, name: &ScheduleName) -> Result<Response, Problem> {
    let (record, fires) = app.store.show_schedule(tenant, name).await?;
    ok(&ScheduleLine::new(&record, &fires))
}
