//! Jobs that match, page by page.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use tenure_core::Scope;
use tenure_core::name::{KindName, QueueName, TenantName};
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
    /// 1 to 200, 50 where nothing is said
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// The `next` of the page before
    cursor: Option<String>,
}

/// List jobs, newest first
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
        limit: limit + 1,
    };
    let jobs = app.store.list_jobs(&filter).await?;
    ok(&Page::cut("jobs", jobs, limit, |job| job.id.to_string(), |job| JobLine::from(job)))
}
