//! New runs: created with their first members, added to, sealed.

use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tenure_core::name::TenantName;
use tenure_core::{JobId, NewJob, RunId};
use tenure_store::record::Sight;
use tenure_store::run::{AddToRun, Members, NewPartition, NewRun, RunCreated, SealRun};
use tracing::Instrument;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::super::jobs::{BATCH_MAX, NewJobBody, check_job_for, parse};
use super::super::{answer, ok};
use crate::app::App;
use crate::body::{Json, at_most};
use crate::caller::Caller;
use crate::problem::Problem;
use crate::query::Segments;
use crate::right::Enqueue;
use crate::trace::span_of;
use crate::wire::run::RunLine;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(create_run)).routes(routes!(add_to_run)).routes(routes!(seal_run))
}

/// A stream of pages.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct PartitionBody {
    /// Its name inside the run
    #[schema(pattern = "^[A-Za-z0-9._:/-]{1,100}$")]
    name: String,
    /// The job of its first page; those of later pages are made after it
    #[schema(value_type = NewJobBody)]
    job: Box<RawValue>,
    /// Where its first page begins
    #[serde(default)]
    #[schema(maximum = 9007199254740991_u64)]
    offset: u64,
    /// Rows of a full page
    #[schema(minimum = 1, maximum = 1000000)]
    limit: u32,
    /// How many rows there will be, if somebody knows; only shown
    #[schema(maximum = 9007199254740991_u64)]
    expected: Option<u64>,
}

/// A new run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RunBody {
    /// A uuid of version 7, of now: a repeated request is the same run
    #[schema(format = Uuid)]
    id: Option<String>,
    /// Whose it is; only operators say so
    tenant: Option<String>,
    /// Who asked for it
    #[schema(min_length = 1, max_length = 500)]
    owner: Option<String>,
    /// What it is fed from
    #[schema(min_length = 1, max_length = 500)]
    source: Option<String>,
    /// Jobs of their own, at most 1,000 at once
    #[serde(default, deserialize_with = "at_most::<_, _, BATCH_MAX>")]
    #[schema(value_type = Vec<NewJobBody>, max_items = 1000)]
    items: Vec<Box<RawValue>>,
    /// Streams of pages
    #[serde(default, deserialize_with = "at_most::<_, _, BATCH_MAX>")]
    #[schema(max_items = 1000)]
    partitions: Vec<PartitionBody>,
    /// Whether these are all of them; true where nothing is said
    sealed: Option<bool>,
    /// The job that runs when all of them are done
    #[schema(value_type = Option<NewJobBody>)]
    consolidate: Option<Box<RawValue>>,
    /// Whether the first member too many that is missing ends the others
    #[serde(default)]
    fail_fast: bool,
    /// How many members may be missing in a run that ends well
    #[serde(default)]
    tolerated: u32,
    /// After this it has failed, and what is left of it is canceled
    #[schema(minimum = 1, maximum = 31536000000_u64)]
    deadline_ms: Option<u64>,
}

/// Create a run with its first members, all or none
///
/// 201 when it is new; 200 when a run of this id was there: then nothing was changed.
#[utoipa::path(post, path = "/v1/runs", tag = "runs", request_body = RunBody, security(("key" = ["enqueue"])),
    responses((status = 201, body = RunLine), (status = 200, body = RunLine)))]
async fn create_run(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Json(body, _held): Json<Enqueue, RunBody>,
) -> Result<Response, Problem> {
    let tenant = caller.acts_for(parse::<TenantName>(body.tenant.as_deref())?)?;
    let id = match body.id {
        Some(id) => id.parse()?,
        None => RunId::from_uuid(*app.new_id()?.as_uuid()),
    };
    let members = members(&app, &caller, &tenant, &body.items, &body.partitions).await?;
    let jobs = first_jobs(&members);
    let mut request = NewRun {
        tenant: tenant.clone(),
        owner: body.owner,
        source: body.source,
        members,
        sealed: body.sealed.unwrap_or(true),
        consolidate: last(&app, &caller, &tenant, body.consolidate.as_deref()).await?,
        fail_fast: body.fail_fast,
        tolerated: body.tolerated,
        deadline: body.deadline_ms.map(Duration::from_millis),
        ..NewRun::new(id)
    };
    let members = &mut request.members;
    let pages = members.partitions.iter_mut().map(|partition| &mut partition.job);
    let span = span_of(&headers, members.items.iter_mut().chain(pages).chain(&mut request.consolidate));
    let status = match app.store.create_run(request).instrument(span).await? {
        RunCreated::Now => {
            app.publish(jobs);
            StatusCode::CREATED
        }
        RunCreated::Before => StatusCode::OK,
    };
    answer(status, &RunLine::from(&app.store.show_run(&Sight::Tenant(tenant), id).await?))
}

/// More members.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct MembersBody {
    /// Jobs of their own, at most 1,000 at once
    #[serde(default, deserialize_with = "at_most::<_, _, BATCH_MAX>")]
    #[schema(value_type = Vec<NewJobBody>, max_items = 1000)]
    items: Vec<Box<RawValue>>,
    /// Streams of pages
    #[serde(default, deserialize_with = "at_most::<_, _, BATCH_MAX>")]
    #[schema(max_items = 1000)]
    partitions: Vec<PartitionBody>,
}

/// What came.
#[derive(Debug, Serialize, ToSchema)]
struct MembersAnswer {
    /// Members that are new
    members: u64,
    /// Those that were there before, or whose key another job holds: they are not counted
    found: u64,
}

/// Add members to an open run, all or none
#[utoipa::path(post, path = "/v1/runs/{id}/members", tag = "runs", params(("id" = uuid::Uuid, Path)),
    request_body = MembersBody, security(("key" = ["enqueue"])), responses((status = 200, body = MembersAnswer)))]
async fn add_to_run(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    path: Segments,
    Json(body, _held): Json<Enqueue, MembersBody>,
) -> Result<Response, Problem> {
    let (sight, run): (_, RunId) = (caller.sight(None)?, path.get("id")?);
    let tenant = app.store.show_run(&sight, run).await?.tenant;
    let mut members = members(&app, &caller, &tenant, &body.items, &body.partitions).await?;
    let jobs = first_jobs(&members);
    let pages = members.partitions.iter_mut().map(|partition| &mut partition.job);
    let span = span_of(&headers, members.items.iter_mut().chain(pages));
    let added = app.store.add_to_run(AddToRun { sight, run, members }).instrument(span).await?;
    if added.members > 0 {
        // Some may have been there before: a word too many costs a look.
        app.publish(jobs);
    }
    ok(&MembersAnswer { members: added.members, found: added.found })
}

/// What else there is to say.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SealBody {
    /// The job that runs when all members are done
    #[schema(value_type = Option<NewJobBody>)]
    consolidate: Option<Box<RawValue>>,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// Say that an open run has all its members
#[utoipa::path(post, path = "/v1/runs/{id}/seal", tag = "runs", params(("id" = uuid::Uuid, Path)), request_body = SealBody,
    security(("key" = ["enqueue"])), responses((status = 200, body = RunLine)))]
async fn seal_run(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Enqueue, SealBody>,
) -> Result<Response, Problem> {
    let (sight, run): (_, RunId) = (caller.sight(None)?, path.get("id")?);
    let tenant = app.store.show_run(&sight, run).await?.tenant;
    let consolidate = last(&app, &caller, &tenant, body.consolidate.as_deref()).await?;
    let word = caller.word(body.reason)?;
    app.store.seal_run(SealRun { sight: sight.clone(), run, consolidate, word }).await?;
    ok(&RunLine::from(&app.store.show_run(&sight, run).await?))
}

/// The jobs that may be claimed once these members are stored.
fn first_jobs(members: &Members) -> Vec<JobId> {
    let pages = members.partitions.iter().map(|partition| partition.job.id);
    members.items.iter().map(|job| job.id).chain(pages).collect()
}

async fn members(
    app: &App,
    caller: &Caller,
    tenant: &TenantName,
    items: &[Box<RawValue>],
    partitions: &[PartitionBody],
) -> Result<Members, Problem> {
    let mut members = Members::default();
    for (place, text) in items.iter().enumerate() {
        let job = member(app, caller, tenant, text).await;
        members.items.push(job.map_err(|problem| problem.within(&format!("items[{place}]")))?);
    }
    for (place, said) in partitions.iter().enumerate() {
        let at = format!("partitions[{place}]");
        let job =
            member(app, caller, tenant, &said.job).await.map_err(|problem| problem.within(&format!("{at}.job")))?;
        let name = said.name.parse().map_err(|refused: tenure_core::Invalid| Problem::from(refused).within(&at))?;
        let PartitionBody { offset, limit, expected, .. } = *said;
        members.partitions.push(NewPartition { name, job, offset, limit, expected });
    }
    Ok(members)
}

async fn last(
    app: &App,
    caller: &Caller,
    tenant: &TenantName,
    text: Option<&RawValue>,
) -> Result<Option<NewJob>, Problem> {
    match text {
        None => Ok(None),
        Some(text) => {
            member(app, caller, tenant, text).await.map(Some).map_err(|problem| problem.within("consolidate"))
        }
    }
}

/// A job of the run: its tenant is the run's.
async fn member(app: &App, caller: &Caller, tenant: &TenantName, text: &RawValue) -> Result<NewJob, Problem> {
    // Said or not, it is the run's own.
    let mut job = check_job_for(app, caller, text.get(), app.new_id()?, Some(tenant)).await?;
    if job.tenant != *tenant && job.tenant != TenantName::default() {
        return Err(Problem::invalid(
            "tenant",
            format!("tenant `{}` is refused: the run is tenant `{tenant}`'s", job.tenant),
        ));
    }
    job.tenant.clone_from(tenant);
    Ok(job)
}
