//! Queues: they belong to all tenants, so they are the operators'.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use tenure_core::Scope;
use tenure_core::name::QueueName;
use tenure_store::StoreError;
use tenure_store::operate::{BATCH_MAX, LEASE_TTL_DEFAULT, PauseQueue, Quota, SetQueue};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Reason, ok};
use crate::app::App;
use crate::body::Json;
use crate::caller::Caller;
use crate::cursor::Page;
use crate::problem::Problem;
use crate::query::Segments;
use crate::right::{Operate, Operators};
use crate::wire::worker::ServedQueueLine;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_queues))
        .routes(routes!(show_queue, set_queue))
        .routes(routes!(pause_queue))
        .routes(routes!(resume_queue))
}

/// List queues and what is in them
#[utoipa::path(get, path = "/v1/queues", tag = "queues", security(("key" = ["read"])),
    responses((status = 200, body = Page<ServedQueueLine>)))]
async fn list_queues(State(app): State<App>, caller: Caller) -> Result<Response, Problem> {
    caller.need_operator(Scope::Read)?;
    let queues = app.store.list_queues().await?;
    let (workers, now) = (app.store.list_workers(BATCH_MAX).await?, app.store.now().await?);
    ok(&Page::whole(queues.iter().map(|queue| ServedQueueLine::new(queue, &workers, now)).collect()))
}

/// One queue
#[utoipa::path(get, path = "/v1/queues/{queue}", tag = "queues", params(("queue" = String, Path)),
    security(("key" = ["read"])), responses((status = 200, body = ServedQueueLine)))]
async fn show_queue(State(app): State<App>, caller: Caller, path: Segments) -> Result<Response, Problem> {
    caller.need_operator(Scope::Read)?;
    shown(&app, &path.get("queue")?).await
}

/// What to change; the rest stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct QueueBody {
    /// How long a silent worker keeps its jobs: 1,000 to 86,400,000
    #[schema(minimum = 1000, maximum = 86400000)]
    lease_ttl_ms: Option<u64>,
    /// Serve tenants in turn, each from a line of its own
    fair: Option<bool>,
    /// Refuse an enqueue when so many jobs are pending: 1 to 100,000; 0 for no quota
    #[schema(minimum = 0, maximum = 100000)]
    quota: Option<u32>,
}

/// Make a queue or change its settings
#[utoipa::path(put, path = "/v1/queues/{queue}", tag = "queues", params(("queue" = String, Path)), request_body = QueueBody,
    security(("key" = ["operate"])), responses((status = 200, body = ServedQueueLine)))]
async fn set_queue(
    State(app): State<App>,
    path: Segments,
    Json(body, _held): Json<Operators<Operate>, QueueBody>,
) -> Result<Response, Problem> {
    let queue: QueueName = path.get("queue")?;
    let known = app.store.list_queues().await?.into_iter().find(|known| known.name == queue);
    let ttl = body.lease_ttl_ms.map(Duration::from_millis);
    let ttl = ttl.or(known.map(|known| known.lease_ttl)).unwrap_or(LEASE_TTL_DEFAULT);
    let quota = body.quota.map(quota);
    let request = SetQueue { fair: body.fair, quota, ..SetQueue::new(queue.clone(), ttl) };
    request.check()?;
    app.store.set_queue(request).await?;
    shown(&app, &queue).await
}

/// Stop handing out jobs of a queue; running ones go on
#[utoipa::path(post, path = "/v1/queues/{queue}/pause", tag = "queues", params(("queue" = String, Path)),
    request_body = Reason, security(("key" = ["operate"])), responses((status = 200, body = ServedQueueLine)))]
async fn pause_queue(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operators<Operate>, Reason>,
) -> Result<Response, Problem> {
    switch(&app, &caller, &path, body, true).await
}

/// Hand out jobs of a queue again
#[utoipa::path(post, path = "/v1/queues/{queue}/resume", tag = "queues", params(("queue" = String, Path)),
    request_body = Reason, security(("key" = ["operate"])), responses((status = 200, body = ServedQueueLine)))]
async fn resume_queue(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operators<Operate>, Reason>,
) -> Result<Response, Problem> {
    switch(&app, &caller, &path, body, false).await
}

async fn switch(app: &App, caller: &Caller, path: &Segments, body: Reason, paused: bool) -> Result<Response, Problem> {
    let queue: QueueName = path.get("queue")?;
    let word = caller.word(body.reason)?;
    app.store.pause_queue(PauseQueue { queue: queue.clone(), paused, word }).await?;
    shown(app, &queue).await
}

async fn shown(app: &App, queue: &QueueName) -> Result<Response, Problem> {
    let found = app.store.list_queues().await?.into_iter().find(|known| known.name == *queue);
    let found = found.ok_or_else(|| StoreError::NotFound(format!("queue {queue}")))?;
    let (workers, now) = (app.store.list_workers(BATCH_MAX).await?, app.store.now().await?);
    ok(&ServedQueueLine::new(&found, &workers, now))
}

/// Zero is none.
pub(super) fn quota(asked: u32) -> Quota {
    match asked {
        0 => Quota::Unlimited,
        quota => Quota::Pending(quota),
    }
}
