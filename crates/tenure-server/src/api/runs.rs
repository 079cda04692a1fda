//! Runs and their partitions; new ones are in [`create`].

mod create;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tenure_core::name::{PartitionName, TenantName};
use tenure_core::{Invalid, RunId, RunState, Scope};
use tenure_store::run::{CancelRun, OperatePartition, PartitionAct, PartitionFilter, RunFilter};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::jobs::parse;
use super::{Reason, ok};
use crate::app::App;
use crate::body::Json;
use crate::caller::Caller;
use crate::cursor::{self, Page};
use crate::problem::Problem;
use crate::query::{Query, Segments};
use crate::right::Operate;
use crate::wire::run::{PartitionLine, RunLine};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(create::routes())
        .routes(routes!(list_runs))
        .routes(routes!(show_run))
        .routes(routes!(cancel_run))
        .routes(routes!(list_partitions))
        .routes(routes!(resume_partition))
        .routes(routes!(reset_partition))
}

/// Which runs to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListRuns {
    /// Only those that go on
    open: Option<bool>,
    /// queued, running, succeeded, failed or canceled
    #[param(pattern = "^(queued|running|succeeded|failed|canceled)$")]
    state: Option<String>,
    /// Only this tenant's; operators only
    tenant: Option<String>,
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// List runs, newest first
#[utoipa::path(get, path = "/v1/runs", tag = "runs", params(ListRuns), security(("key" = ["read"])),
    responses((status = 200, body = Page<RunLine>)))]
async fn list_runs(State(app): State<App>, caller: Caller, Query(asked): Query<ListRuns>) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let limit = cursor::limit(asked.limit)?;
    let filter = RunFilter {
        sight: caller.sight(parse::<TenantName>(asked.tenant.as_deref())?)?,
        open: asked.open.unwrap_or(false),
        state: asked.state.as_deref().map(parse_state).transpose()?,
        before: cursor::read("runs", asked.cursor.as_deref())?,
        limit: limit + 1,
    };
    let runs = app.store.list_runs(&filter).await?;
    ok(&Page::cut("runs", runs, limit, |run| run.id.to_string(), |run| RunLine::from(run)))
}

/// One run
#[utoipa::path(get, path = "/v1/runs/{id}", tag = "runs", params(("id" = uuid::Uuid, Path)), security(("key" = ["read"])),
    responses((status = 200, body = RunLine)))]
async fn show_run(State(app): State<App>, caller: Caller, path: Segments) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    ok(&RunLine::from(&app.store.show_run(&caller.sight(None)?, path.get("id")?).await?))
}

/// What became of a cancel.
#[derive(Debug, Serialize, ToSchema)]
struct RunCanceled {
    id: String,
    /// now or before
    canceled: &'static str,
    run: RunLine,
}

/// Cancel a run and what is left of it
#[utoipa::path(post, path = "/v1/runs/{id}/cancel", tag = "runs", params(("id" = uuid::Uuid, Path)), request_body = Reason,
    security(("key" = ["operate"])), responses((status = 200, body = RunCanceled)))]
async fn cancel_run(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operate, Reason>,
) -> Result<Response, Problem> {
    let (sight, run): (_, RunId) = (caller.sight(None)?, path.get("id")?);
    let word = caller.word(body.reason)?;
    let canceled = match app.store.cancel_run(CancelRun { sight: sight.clone(), run, word }).await? {
        true => "now",
        false => "before",
    };
    let record = app.store.show_run(&sight, run).await?;
    ok(&RunCanceled { id: run.to_string(), canceled, run: RunLine::from(&record) })
}

/// Which partitions to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListPartitions {
    /// Only of this run
    #[param(format = Uuid)]
    run: Option<String>,
    /// Only those that go on
    active: Option<bool>,
    /// Only those that go on and have not moved for this long, such as 10m
    #[param(pattern = "^[0-9]{1,9}(ms|s|m|h|d)$")]
    stuck_for: Option<String>,
    /// queued, running, succeeded, failed or canceled
    #[param(pattern = "^(queued|running|succeeded|failed|canceled)$")]
    state: Option<String>,
    /// Only this tenant's; operators only
    tenant: Option<String>,
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// List partitions, by run and name
#[utoipa::path(get, path = "/v1/partitions", tag = "runs", params(ListPartitions), security(("key" = ["read"])),
    responses((status = 200, body = Page<PartitionLine>)))]
async fn list_partitions(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<ListPartitions>,
) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let limit = cursor::limit(asked.limit)?;
    let after = cursor::read::<Place>("partitions", asked.cursor.as_deref())?;
    let filter = PartitionFilter {
        sight: caller.sight(parse::<TenantName>(asked.tenant.as_deref())?)?,
        run: parse::<RunId>(asked.run.as_deref())?,
        active: asked.active.unwrap_or(false),
        stuck_for: asked.stuck_for.map(|text| tenure_core::duration::parse("stuck_for", &text)).transpose()?,
        state: asked.state.as_deref().map(parse_state).transpose()?,
        after: after.map(|Place(run, name)| (run, name)),
        limit: limit + 1,
    };
    let partitions = app.store.list_partitions(&filter).await?;
    let place = |partition: &tenure_store::run::PartitionRecord| format!("{} {}", partition.run, partition.name);
    ok(&Page::cut("partitions", partitions, limit, place, |partition| PartitionLine::from(partition)))
}

/// A run and a partition, as a cursor has them.
struct Place(RunId, PartitionName);

impl std::str::FromStr for Place {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let (run, name) = text.split_once(' ').unwrap_or_default();
        Ok(Self(run.parse()?, name.parse()?))
    }
}

/// Let a partition go on where it stopped
#[utoipa::path(post, path = "/v1/runs/{id}/partitions/{partition}/resume", tag = "runs", request_body = Reason,
    params(("id" = uuid::Uuid, Path), ("partition" = String, Path)), security(("key" = ["operate"])),
    responses((status = 200, body = RunLine)))]
async fn resume_partition(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operate, Reason>,
) -> Result<Response, Problem> {
    operate(&app, &caller, &path, PartitionAct::Resume, body.reason).await
}

/// Where to begin again.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResetBody {
    /// The offset of its next page, 0 where nothing is said
    #[serde(default)]
    #[schema(maximum = 9007199254740991_u64)]
    offset: u64,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// Let a partition begin again at an offset
#[utoipa::path(post, path = "/v1/runs/{id}/partitions/{partition}/reset", tag = "runs", request_body = ResetBody,
    params(("id" = uuid::Uuid, Path), ("partition" = String, Path)), security(("key" = ["operate"])),
    responses((status = 200, body = RunLine)))]
async fn reset_partition(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operate, ResetBody>,
) -> Result<Response, Problem> {
    let job = app.new_id()?;
    operate(&app, &caller, &path, PartitionAct::Reset { offset: body.offset, job }, body.reason).await
}

async fn operate(
    app: &App,
    caller: &Caller,
    path: &Segments,
    act: PartitionAct,
    reason: Option<String>,
) -> Result<Response, Problem> {
    let (sight, run): (_, RunId) = (caller.sight(None)?, path.get("id")?);
    let (partition, word) = (path.get("partition")?, caller.word(reason)?);
    app.store.operate_partition(OperatePartition { sight: sight.clone(), run, partition, act, word }).await?;
    ok(&RunLine::from(&app.store.show_run(&sight, run).await?))
}

fn parse_state(word: &str) -> Result<RunState, Problem> {
    let limit = "it is queued, running, succeeded, failed or canceled";
    Ok(RunState::parse(word).ok_or_else(|| Invalid::new("state", word, limit))?)
}
