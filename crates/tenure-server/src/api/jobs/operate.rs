//! What operators do to one job: cancel, requeue, open, hasten.

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tenure_store::operate::{CancelJob, Canceled, HastenJob, OpenJob, RequeueJob};
use utoipa::ToSchema;

use crate::api::{Reason, ok};
use crate::app::App;
use crate::body::Json;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::query::Segments;
use crate::right::Operate;

/// How to cancel.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CancelBody {
    /// End a running job at once instead of asking its worker
    #[serde(default)]
    force: bool,
    /// Why, in a person's words: it goes into the journal
    #[serde(default)]
    #[schema(max_length = 500)]
    reason: Option<String>,
}

/// What a cancel did.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CanceledAnswer {
    id: String,
    /// now; requested of its worker; or before
    canceled: &'static str,
}

/// Cancel a job
///
/// One that waits is canceled at once; the worker of a running one is asked, or fenced with `force`.
#[utoipa::path(post, path = "/v1/jobs/{id}/cancel", tag = "jobs", params(("id" = uuid::Uuid, Path)), request_body = CancelBody,
    security(("key" = ["operate"])), responses((status = 200, body = CanceledAnswer)))]
pub(super) async fn cancel_job(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operate, CancelBody>,
) -> Result<Response, Problem> {
    let (sight, job, word) = (caller.sight(None)?, path.get("id")?, caller.word(body.reason)?);
    let canceled = match app.store.cancel_job(CancelJob { sight, job, force: body.force, word }).await? {
        Canceled::Now => "now",
        Canceled::Requested => "requested",
        Canceled::Before => "before",
    };
    ok(&CanceledAnswer { id: job.to_string(), canceled })
}

/// Where a job stands now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StateAnswer {
    id: String,
    state: &'static str,
}

/// Revive a failed, dead or canceled job
///
/// Attempts and losses start again; the fence does not.
#[utoipa::path(post, path = "/v1/jobs/{id}/requeue", tag = "jobs", params(("id" = uuid::Uuid, Path)), request_body = Reason,
    security(("key" = ["operate"])), responses((status = 200, body = StateAnswer)))]
pub(super) async fn requeue_job(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operate, Reason>,
) -> Result<Response, Problem> {
    let (sight, job, word) = (caller.sight(None)?, path.get("id")?, caller.word(body.reason)?);
    app.store.requeue_job(RequeueJob { sight, job, word }).await?;
    app.publish([job]);
    ok(&StateAnswer { id: job.to_string(), state: "queued" })
}

/// Make a waiting job due now
#[utoipa::path(post, path = "/v1/jobs/{id}/open", tag = "jobs", params(("id" = uuid::Uuid, Path)), request_body = Reason,
    security(("key" = ["operate"])), responses((status = 200, body = StateAnswer)))]
pub(super) async fn open_job(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operate, Reason>,
) -> Result<Response, Problem> {
    let (sight, job, word) = (caller.sight(None)?, path.get("id")?, caller.word(body.reason)?);
    app.store.open_job(OpenJob { sight, job, word }).await?;
    app.publish([job]);
    ok(&StateAnswer { id: job.to_string(), state: "queued" })
}

/// Whether a job was made due.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HastenedAnswer {
    id: String,
    /// False: it was due already
    hastened: bool,
}

/// Run a job as soon as a worker is free
///
/// One that is delayed or waits for its next try is due now; one that waits is opened. One that runs or has ended is refused.
#[utoipa::path(post, path = "/v1/jobs/{id}/run", tag = "jobs", params(("id" = uuid::Uuid, Path)), request_body = Reason,
    security(("key" = ["operate"])), responses((status = 200, body = HastenedAnswer)))]
pub(super) async fn hasten_job(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operate, Reason>,
) -> Result<Response, Problem> {
    let (sight, job, word) = (caller.sight(None)?, path.get("id")?, caller.word(body.reason)?);
    let hastened = app.store.hasten_job(HastenJob { sight, job, word }).await?;
    app.publish([job]);
    ok(&HastenedAnswer { id: job.to_string(), hastened })
}
