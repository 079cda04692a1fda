//! What happened to one job.

use axum::extract::State;
use axum::response::Response;
use tenure_core::Scope;

use crate::api::ok;
use crate::app::App;
use crate::caller::Caller;
use crate::cursor::Page;
use crate::problem::Problem;
use crate::query::Segments;
use crate::wire::journal::JournalLine;

/// What happened to a job, oldest first
///
/// At most the newest 1,000 entries of the journal. A tenant is not told which worker or operator wrote them, and why.
#[utoipa::path(get, path = "/v1/jobs/{id}/journal", tag = "jobs", params(("id" = uuid::Uuid, Path)), security(("key" = ["read"])),
    responses((status = 200, body = Page<JournalLine>)))]
pub(super) async fn list_job_rows(State(app): State<App>, caller: Caller, path: Segments) -> Result<Response, Problem> {
    caller.need(Scope::Read)?;
    let rows = app.store.list_job_rows(&caller.sight(None)?, path.get("id")?).await?;
    ok(&Page::whole(rows.iter().map(JournalLine::from).collect()))
}
