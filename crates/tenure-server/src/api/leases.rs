//! Claims and renewals of workers that come over HTTP: docs/WORKER-PROTOCOL.md. How jobs end is in [`report`].
//!
//! A claim waits on the server, not in the worker: it joins those who [wait](crate::waiters), looks, and waits until it is its turn to
//! look again, the worker's time is over or the server stops.

mod report;

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use tenure_core::name::QueueName;
use tenure_core::{Invalid, LeaseNo, WorkerId};
use tenure_store::StoreError;
use tenure_store::lease::{ClaimJobs, Claimed, EndJob, EndJobs, Ending, LEASE_JOBS_MAX, RenewLeases};
use tenure_store::worker::{Order, QUEUES_MAX};
use tokio::sync::oneshot;
use tokio::time::Instant;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::ok;
use crate::app::App;
use crate::body::{Json, at_most, at_most_maybe};
use crate::caller::RemoteWorker;
use crate::problem::{BUSY, LEASE_LOST, Problem};
use crate::query::Segments;
use crate::right::{Operators, Work};
use crate::waiters::{Seats, Turn};
use crate::wire::lease::LeaseLine;

/// How long a claim waits where nothing is said, and at most.
const WAIT: Duration = Duration::from_secs(20);
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Most leases that a worker holds.
const HOLDING_MAX: usize = 10_000;
/// How long a claim waits before it asks again what its worker is told to do.
const ORDER_EVERY: Duration = Duration::from_secs(1);
/// Tries at a renewal that somebody's lock held up, and the pause between them.
const RENEWALS: u32 = 5;
const RENEWAL_PAUSE: Duration = Duration::from_millis(50);

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(claim_jobs)).routes(routes!(renew_lease)).merge(report::routes())
}

/// What a worker wants.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ClaimBody {
    /// From where, 1 to 100
    #[serde(deserialize_with = "at_most::<_, _, QUEUES_MAX>")]
    #[schema(min_items = 1, max_items = 100)]
    queues: Vec<String>,
    /// At most this many, 1 to 256
    #[schema(minimum = 1, maximum = 256)]
    limit: u32,
    /// How long to wait for work, at most 30,000; 20,000 where nothing is said
    #[schema(maximum = 30000)]
    wait_ms: Option<u64>,
    /// Every lease that the worker holds: what else is leased to it is given back
    #[serde(default, deserialize_with = "at_most_maybe::<_, _, HOLDING_MAX>")]
    #[schema(max_items = 10000)]
    holding: Option<Vec<i64>>,
}

/// What a worker got.
#[derive(Debug, Serialize, ToSchema)]
struct ClaimAnswer {
    /// Null when there is no work: ask again
    lease: Option<LeaseLine>,
    /// How long the server waited before it claimed
    waited_ms: u64,
    /// work, quiet or stop
    order: &'static str,
}

/// Claim jobs, waiting for them if there are none
#[utoipa::path(post, path = "/v1/leases", tag = "worker protocol", request_body = ClaimBody,
    security(("key" = ["worker"], "worker" = [])), responses((status = 200, body = ClaimAnswer)))]
async fn claim_jobs(
    State(app): State<App>,
    remote: RemoteWorker,
    Json(body, _held): Json<Operators<Work>, ClaimBody>,
) -> Result<Response, Problem> {
    let began = Instant::now();
    let mut queues = Vec::with_capacity(body.queues.len());
    for name in &body.queues {
        queues.push(name.parse::<QueueName>()?);
    }
    if queues.is_empty() {
        return Err(Invalid::new("queues", queues.len(), format!("there are 1 to {QUEUES_MAX}")).into());
    }
    if !(1..=LEASE_JOBS_MAX).contains(&body.limit) {
        return Err(Invalid::new("limit", body.limit, format!("a claim takes 1 to {LEASE_JOBS_MAX} jobs")).into());
    }
    let wait = body.wait_ms.map_or(WAIT, Duration::from_millis);
    if wait > WAIT_MAX {
        return Err(Invalid::new("wait_ms", wait.as_millis(), "a claim waits at most 30000").into());
    }
    if let Some(holding) = body.holding {
        // Asked for first: what is claimed after this is not meant.
        let newest = app.store.newest_lease().await?;
        let known = holding.into_iter().map(LeaseNo).collect();
        app.store.release_unknown(remote.id, known, newest).await?;
    }
    let Found { lease, sent, order } = wait_for_lease(&app, remote.id, &queues, body.limit, began + wait).await?;
    let waited_ms = u64::try_from(sent.duration_since(began).as_millis()).unwrap_or(0);
    let lease = lease.map(|(queue, claimed)| LeaseLine::new(&queue, &claimed));
    ok(&ClaimAnswer { lease, waited_ms, order: order.as_str() })
}

/// What a wait came to.
struct Found {
    lease: Option<(QueueName, Claimed)>,
    /// When the look was begun that found it.
    sent: Instant,
    order: Order,
}

/// Looks when it is its turn, until there is something or the time is over. Nobody has a turn who is told not to work.
async fn wait_for_lease(
    app: &App,
    worker: WorkerId,
    queues: &[QueueName],
    limit: u32,
    until: Instant,
) -> Result<Found, Problem> {
    let mut stopping = app.stopping.subscribe();
    let mut seats: Option<Seats> = None;
    let mut turn = None;
    loop {
        let (order, sent) = (app.order(worker).await?, Instant::now());
        if order == Order::Stop || *stopping.borrow() {
            return Ok(Found { lease: None, sent, order });
        }
        let found = match (order, turn.take()) {
            (Order::Work, Some((at, turn))) => look_in_turn(app, worker, &queues[at], limit, turn).await?,
            (Order::Work, None) if seats.is_none() || sent >= until => {
                if sent < until {
                    // On the lists before the look: what comes between the two is somebody's turn.
                    seats = Some(app.waiters.join(queues));
                }
                look(app, worker, queues, limit).await?
            }
            (Order::Work, None) => None,
            _ => {
                seats = None;
                None
            }
        };
        if found.is_some() || sent >= until {
            return Ok(Found { lease: found, sent, order });
        }
        tokio::select! {
            came = turn_of(seats.as_mut()) => turn = Some(came),
            () = tokio::time::sleep_until(until.min(Instant::now() + ORDER_EVERY)) => {}
            _ = stopping.wait_for(|stopping| *stopping) => {}
        }
    }
}

/// The next turn; none comes to those who have not joined.
async fn turn_of(seats: Option<&mut Seats>) -> (usize, Turn) {
    match seats {
        Some(seats) => seats.turn().await,
        None => std::future::pending().await,
    }
}

/// Looks into the queue whose turn it is. A look that fails leaves the turn to the next one.
async fn look_in_turn(
    app: &App,
    worker: WorkerId,
    queue: &QueueName,
    limit: u32,
    turn: Turn,
) -> Result<Option<(QueueName, Claimed)>, Problem> {
    let found = look(app, worker, std::slice::from_ref(queue), limit).await?;
    turn.over(found.is_some());
    Ok(found)
}

/// One look into each queue, beginning with another one each time.
async fn look(
    app: &App,
    worker: WorkerId,
    queues: &[QueueName],
    limit: u32,
) -> Result<Option<(QueueName, Claimed)>, Problem> {
    let turn = app.next_turn();
    let first = usize::try_from(turn).unwrap_or(0) % queues.len().max(1);
    for at in 0..queues.len() {
        let queue = &queues[(first + at) % queues.len()];
        let request = ClaimJobs::turn(worker, queue.clone(), limit, turn / queues.len() as u64);
        if let Some(claimed) = claim(app, request).await?
            && !claimed.jobs.is_empty()
        {
            return Ok(Some((queue.clone(), claimed)));
        }
    }
    Ok(None)
}

/// Claims in a task of its own: when the worker hangs up meanwhile, what was claimed for it is given back at once.
async fn claim(app: &App, request: ClaimJobs) -> Result<Option<Claimed>, StoreError> {
    let (answer, heard) = oneshot::channel();
    let (store, worker) = (app.store.clone(), request.worker);
    tokio::spawn(async move {
        let claimed = store.claim_jobs(request).await;
        if let Err(Ok(Some(unheard))) = answer.send(claimed) {
            let release =
                |job: &tenure_store::lease::ClaimedJob| EndJob::new(job.id, Ending::Released { delay: Duration::ZERO });
            let jobs: Vec<EndJob> = unheard.jobs.iter().map(release).collect();
            if !jobs.is_empty()
                && let Err(error) = store.end_jobs(EndJobs { worker, lease: unheard.lease, jobs }).await
            {
                tracing::warn!(error = %error, "what was claimed for a worker that has hung up is not given back: its lease will run out");
            }
        }
    });
    heard.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the claim was lost".to_owned(), None)))
}

/// A renewal says nothing yet.
#[derive(Debug, Default, Deserialize, ToSchema)]
struct RenewBody {}

/// What a renewal did.
#[derive(Debug, Serialize, ToSchema)]
struct RenewAnswer {
    lease: i64,
    /// How long it lasts from the moment the renewal was sent
    ttl_ms: u64,
    /// Jobs that somebody asked to cancel
    cancel: Vec<String>,
    /// work, quiet or stop
    order: &'static str,
}

/// Keep what was claimed; hear about cancels and orders
#[utoipa::path(post, path = "/v1/leases/{lease}/renew", tag = "worker protocol", params(("lease" = i64, Path)),
    request_body = RenewBody, security(("key" = ["worker"], "worker" = [])),
    responses((status = 200, body = RenewAnswer)))]
async fn renew_lease(
    State(app): State<App>,
    remote: RemoteWorker,
    path: Segments,
    Json(RenewBody {}, _held): Json<Operators<Work>, RenewBody>,
) -> Result<Response, Problem> {
    let lease = LeaseNo(path.number("lease")?);
    for _ in 0..RENEWALS {
        let request = RenewLeases { worker: remote.id, leases: vec![lease] };
        let renewed = app.store.renew_leases(request).await?;
        let held = app.store.find_leases(remote.id, vec![lease]).await?;
        let Some((_, ttl)) = held.first() else {
            return Err(Problem::new(
                LEASE_LOST,
                format!("lease {lease} is gone: stop its jobs and drop their results"),
            ));
        };
        if renewed.leases.contains(&lease) {
            return ok(&RenewAnswer {
                lease: lease.0,
                ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
                cancel: renewed.cancel_requested.iter().map(ToString::to_string).collect(),
                order: app.order(remote.id).await?.as_str(),
            });
        }
        // There, and not renewed: somebody has it locked just now.
        tokio::time::sleep(RENEWAL_PAUSE).await;
    }
    Err(Problem::new(BUSY, format!("lease {lease} is busy: try again in a moment")))
}
