//! Jobs that match, page by page.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use tenure_core::name::{KindName, QueueName, TenantName};
use tenure_core::{Scope, Timestamp, When};
use tenure_store::record::JobFilter;
use utoipa::IntoParams;

use super::{parse, parse_state};
use crate::api::ok;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::{self, Page};
use crate::problem::Problem;
use crate::query::Query;
use crate::wire::job::JobLine;

/// Which jobs to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListJobs {
    /// waiting, queued, retryable, running, succeeded, failed, dead or canceled
    #[param(pattern = "^(waiting|queued|retryable|running|succeeded|failed|dead|canceled)$")]
    state: Option<String>,
    queue: Option<String>,
    kind: Option<String>,
    /// Only this tenant's; operators only
    tenant: Option<String>,
    /// Running, and not renewed for this long, such as 5m
    #[param(pattern = "^[0-9]{1,9}(ms|s|m|h|d)$")]
    stuck_for: Option<String>,
    /// Only jobs created then or later: a date, or how long ago, such as 1h
    #[param(example = "1h")]
    since: Option<String>,
    /// Only jobs created before: likewise
    #[param(example = "2026-11-15T09:30:00Z")]
    until: Option<String>,
    /// Only jobs whose payload contains this in its JSON, letters a to z in either case
    #[param(min_length = 1, max_length = 500)]
    text: Option<String>,
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// List jobs, newest first
///
/// With `text` a call looks into at most 10,000 jobs: a page may be short or empty and have a `next` all the same.
#[utoipa::path(get, path = "/v1/jobs", tag = "jobs", params(ListJobs), security(("key" = ["read"])),
    responses((status = 200, body = Page<JobLine>)))]
pub(super) async fn list_jobs(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<ListJobs>,
) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let limit = cursor::limit(asked.limit)?;
    let filter = JobFilter {
        sight: caller.sight(parse::<TenantName>(asked.tenant.as_deref())?)?,
        state: asked.state.as_deref().map(parse_state).transpose()?,
        queue: parse::<QueueName>(asked.queue.as_deref())?,
        kind: parse::<KindName>(asked.kind.as_deref())?,
        before: cursor::read("jobs", asked.cursor.as_deref())?,
        stuck_for: asked.stuck_for.map(|text| tenure_core::duration::parse("stuck_for", &text)).transpose()?,
        since: moment(&app, "since", asked.since.as_deref()).await?,
        until: moment(&app, "until", asked.until.as_deref()).await?,
        limit: limit + 1,
        ..JobFilter::default()
    };
    if let Some(text) = asked.text {
        let found = app.store.search_jobs(&JobFilter { limit, ..filter }, &text).await?;
        return ok(&Page::walked("jobs", found.jobs.iter().map(JobLine::from).collect(), found.next));
    }
    let jobs = app.store.list_jobs(&filter).await?;
    ok(&Page::cut("jobs", jobs, limit, |job| job.id.to_string(), |job| JobLine::from(job)))
}

/// A moment in the query, where there is one: by the store's clock where it is said how long ago.
pub(in crate::api) async fn moment(
    app: &App,
    field: &'static str,
    text: Option<&str>,
) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = text else { return Ok(None) };
    Ok(Some(match When::parse(field, text)? {
        When::At(at) => at,
        ago @ When::Ago(_) => ago.at(app.store.now().await?),
    }))
}
