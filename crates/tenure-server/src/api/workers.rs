//! Workers: the registry, orders to them, and those that come over HTTP (docs/WORKER-PROTOCOL.md).

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use tenure_core::name::{QueueName, WorkerName};
use tenure_core::{Credential, Invalid, KeyId, LeaseNo, Scope, WorkerId, worker_loop};
use tenure_store::StoreError;
use tenure_store::access::NewRemote;
use tenure_store::operate::BATCH_MAX;
use tenure_store::worker::{About, Beat, Order, OrderWorker, QUEUES_MAX, Standing, WorkerRecord};
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Reason, answer, ok};
use crate::app::App;
use crate::body::{Json, at_most};
use crate::caller::{Caller, RemoteWorker};
use crate::cursor::Page;
use crate::problem::{FORBIDDEN, Problem};
use crate::query::{Query, Segments};
use crate::right::{Operate, Operators, Work};
use crate::wire::worker::WorkerLine;

/// A worker says so often how it does.
const BEAT_EVERY_MS: u64 = 5_000;
/// The key of workers where nobody needs one.
const NO_KEY: &str = "aaaaaaaaaaaa";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_workers, register_worker))
        .routes(routes!(beat_worker, part_worker))
        .routes(routes!(order_worker))
}

/// Which workers to list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListWorkers {
    /// Also those that stopped or were not seen for 30 s
    all: Option<bool>,
}

/// List workers, last seen first
#[utoipa::path(get, path = "/v1/workers", tag = "workers", params(ListWorkers), security(("key" = ["read"])),
    responses((status = 200, body = Page<WorkerLine>)))]
async fn list_workers(
    State(app): State<App>,
    caller: Caller,
    Query(asked): Query<ListWorkers>,
) -> Result<Response, Problem> {
    caller.need_operator(Scope::Read)?;
    let (workers, now) = (app.store.list_workers(BATCH_MAX).await?, app.store.now().await?);
    let standing = |worker: &WorkerRecord| Standing::of(worker, now);
    let wanted = workers.iter().filter(|worker| asked.all.unwrap_or(false) || standing(worker).is_there());
    ok(&Page::whole(wanted.map(|worker| WorkerLine::new(worker, standing(worker).as_str())).collect()))
}

/// A queue that a worker serves.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Serves {
    #[schema(pattern = "^[A-Za-z0-9._:/-]{1,100}$")]
    queue: String,
    slots: u32,
}

/// A worker process that has just started.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RegisterBody {
    /// As people read it; two starts may share one
    #[schema(pattern = "^[A-Za-z0-9._:/-]{1,100}$")]
    name: Option<String>,
    /// The program's version
    #[schema(min_length = 1, max_length = 500)]
    version: Option<String>,
    /// The machine it runs on
    #[schema(min_length = 1, max_length = 500)]
    host: Option<String>,
    /// Its process id there
    pid: Option<u32>,
    /// The queues it serves, with the slots of each
    #[serde(default, deserialize_with = "at_most::<_, _, QUEUES_MAX>")]
    #[schema(max_items = 100)]
    queues: Vec<Serves>,
}

/// A worker's number and token. The token is shown once.
#[derive(Serialize, ToSchema)]
struct Registered {
    worker: i32,
    name: String,
    /// For the header `Tenure-Worker`
    token: String,
    beat_every_ms: u64,
}

/// Register a start of a worker process
#[utoipa::path(post, path = "/v1/workers", tag = "workers", request_body = RegisterBody, security(("key" = ["worker"])),
    responses((status = 201, body = Registered)))]
async fn register_worker(
    State(app): State<App>,
    caller: Caller,
    Json(body, _held): Json<Operators<Work>, RegisterBody>,
) -> Result<Response, Problem> {
    let mut random = [0; tenure_core::key::TOKEN_RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|error| Problem::internal("no random bits for a token", &error))?;
    let name: WorkerName = match body.name {
        Some(name) => name.parse()?,
        None => format!("remote-{:02x}{:02x}{:02x}", random[0], random[1], random[2]).parse()?,
    };
    let key: KeyId = caller.key.clone().map_or_else(|| NO_KEY.parse(), Ok)?;
    let mut queues = Vec::with_capacity(body.queues.len());
    for serves in body.queues {
        queues.push((serves.queue.parse::<QueueName>()?, serves.slots));
    }
    let about = About {
        version: body.version.unwrap_or_else(|| "unknown".to_owned()),
        host: body.host.unwrap_or_else(|| "unknown".to_owned()),
        pid: body.pid.unwrap_or(0),
        queues,
    };
    // Its number is not known yet; everything else is checked before it is entered.
    let beat =
        |worker| Beat { worker, state: worker_loop::State::Startup, running: 0, reporting: 0, about: about.clone() };
    beat(WorkerId(0)).check()?;
    let token = Credential::token_hash(random);
    let worker = app.store.register_remote(NewRemote { name: name.clone(), key, token }).await?;
    app.store.beat_worker(beat(worker)).await?;
    let token = Credential::new_token(worker, random);
    let registered = Registered {
        worker: worker.0,
        name: name.to_string(),
        token: token.reveal().to_owned(),
        beat_every_ms: BEAT_EVERY_MS,
    };
    answer(StatusCode::CREATED, &registered)
}

/// How a worker does.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct BeatBody {
    /// Where its loop stands
    #[schema(pattern = "^(startup|connecting|recovery|polling|claiming|backoff|idle|error_wait|draining|stopped)$")]
    state: String,
    /// Handlers that run
    #[serde(default)]
    running: u32,
}

/// What a worker is told to do.
#[derive(Debug, Serialize, ToSchema)]
struct OrderAnswer {
    /// work, quiet or stop
    order: &'static str,
}

/// Say how a worker does
#[utoipa::path(put, path = "/v1/workers/{worker}", tag = "workers", params(("worker" = i32, Path)), request_body = BeatBody,
    security(("key" = ["worker"], "worker" = [])), responses((status = 200, body = OrderAnswer)))]
async fn beat_worker(
    State(app): State<App>,
    remote: RemoteWorker,
    path: Segments,
    Json(body, _held): Json<Operators<Work>, BeatBody>,
) -> Result<Response, Problem> {
    itself(&remote, &path)?;
    let refused = || Invalid::new("state", &body.state, "it is a state of the worker loop, such as polling or idle");
    let state = worker_loop::State::parse(&body.state).ok_or_else(refused)?;
    let order = beat(&app, remote.id, state, body.running).await?;
    ok(&OrderAnswer { order: order.as_str() })
}

/// Say goodbye: what is left is given back, uncharged
#[utoipa::path(delete, path = "/v1/workers/{worker}", tag = "workers", params(("worker" = i32, Path)),
    security(("key" = ["worker"], "worker" = [])), responses((status = 204)))]
async fn part_worker(State(app): State<App>, remote: RemoteWorker, path: Segments) -> Result<Response, Problem> {
    itself(&remote, &path)?;
    // First: a claim of its own that still waits must not take anything.
    app.remember_order(remote.id, Order::Stop, Instant::now());
    beat(&app, remote.id, worker_loop::State::Stopped, 0).await?;
    app.store.release_unknown(remote.id, Vec::new(), LeaseNo::MAX).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Tell a worker what to do
///
/// quiet: claim nothing more, finish what is there, stay. stop: finish and go. work: go on.
#[utoipa::path(post, path = "/v1/workers/{worker}/{order}", tag = "workers", request_body = Reason,
    params(("worker" = i32, Path), ("order" = String, Path, description = "work, quiet or stop", pattern = "^(work|quiet|stop)$")),
    security(("key" = ["operate"])), responses((status = 200, body = OrderAnswer)))]
async fn order_worker(
    State(app): State<App>,
    caller: Caller,
    path: Segments,
    Json(body, _held): Json<Operators<Operate>, Reason>,
) -> Result<Response, Problem> {
    let (worker, text): (_, String) = (number(&path)?, path.get("order")?);
    let refused = || Invalid::new("order", &text, "it is work, quiet or stop");
    let order = Order::parse(&text).ok_or_else(refused)?;
    let word = caller.word(body.reason)?;
    app.store.order_worker(OrderWorker { worker, order, word }).await?;
    app.remember_order(worker, order, Instant::now());
    ok(&OrderAnswer { order: order.as_str() })
}

/// Writes down how a worker does; what it is stays as it said when it came.
async fn beat(app: &App, worker: WorkerId, state: worker_loop::State, running: u32) -> Result<Order, Problem> {
    let about = app.store.show_worker(worker).await?.beat.map(|beat| beat.about).unwrap_or_default();
    Ok(app.store.beat_worker(Beat { worker, state, running, reporting: 0, about }).await?)
}

/// A worker speaks for itself alone.
fn itself(remote: &RemoteWorker, path: &Segments) -> Result<(), Problem> {
    match number(path)? == remote.id {
        true => Ok(()),
        false => Err(Problem::new(FORBIDDEN, "the token is another worker's")),
    }
}

fn number(path: &Segments) -> Result<WorkerId, Problem> {
    let number = path.number("worker")?;
    Ok(WorkerId(i32::try_from(number).map_err(|_| StoreError::NotFound(format!("worker {number}")))?))
}
