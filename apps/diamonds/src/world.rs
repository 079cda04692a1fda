//! [`World`]: the simulated supplier as a web site, with faults that a test or a story switches.
//!
//! Beside what [`supplier`](crate::supplier) calls there is, for people:
//!
//! | call | does |
//! |---|---|
//! | `POST /advance` | makes the next revision |
//! | `POST /fault` with `{"on": "page", "offset": 30, "status": 503, "times": 2}` | from now on this goes wrong: see [`Order`] |
//! | `POST /heal` | from now on nothing goes wrong |

mod fault;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use kit::{Site, Traffic};
use serde::Deserialize;
use serde_json::json;
use tenure::Invalid;

use crate::catalogue::{Advanced, Catalogue, NotKept, PAGE_STONES_MAX, Snapshot};
use crate::price_range::PriceRange;
use crate::stone::Stone;

pub use fault::{Act, Ask, Fault, On, Order};

/// Calls that wait for a valve, in the traffic.
pub const HELD: &str = "held";

/// A supplier. Clones are the same one.
#[derive(Clone)]
pub struct World(Arc<Inner>);

struct Inner {
    catalogue: Mutex<Catalogue>,
    faults: Mutex<Vec<Fault>>,
    traffic: Traffic,
}

/// What is asked for.
#[derive(Debug, Deserialize)]
struct Question {
    as_of: u32,
    min: u64,
    max: u64,
    #[serde(default)]
    offset: u64,
    limit: Option<u32>,
}

impl World {
    /// A supplier of so many stones.
    pub fn new(seed: u64, stones: u32) -> Result<Self, Invalid> {
        Self::at_revision(seed, stones, 0)
    }

    /// The same supplier so many revisions later: one that was stopped goes on where it was.
    pub fn at_revision(seed: u64, stones: u32, revision: u32) -> Result<Self, Invalid> {
        let (catalogue, faults) = (Mutex::new(Catalogue::at_revision(seed, stones, revision)?), Mutex::default());
        Ok(Self(Arc::new(Inner { catalogue, faults, traffic: Traffic::default() })))
    }

    /// Its web site. There may be several, or none for a while.
    pub fn router(&self) -> Router {
        Router::new()
            .route("/latest", get(latest))
            .route("/count", get(count))
            .route("/stones", get(stones))
            .route("/advance", post(advance))
            .route("/fault", post(order))
            .route("/heal", post(heal))
            .with_state(self.clone())
    }

    /// Opens it on a free port.
    pub async fn open(&self) -> std::io::Result<Site> {
        Site::open(self.router()).await
    }

    /// Makes the next revision.
    pub fn advance(&self) -> Advanced {
        self.catalogue().advance()
    }

    /// The latest revision.
    pub fn latest(&self) -> Arc<Snapshot> {
        Arc::clone(self.catalogue().latest())
    }

    /// Calls so far, by `latest`, `count`, `page`, for each page by `<range> <offset>`, and those that were [`HELD`].
    pub fn traffic(&self) -> &Traffic {
        &self.0.traffic
    }

    /// From now on this goes wrong, before what was said earlier.
    pub fn fault(&self, fault: Fault) {
        self.faults().insert(0, fault);
    }

    /// From now on nothing goes wrong.
    pub fn heal(&self) {
        self.faults().clear();
    }

    /// Every stone of a revision, by id.
    pub fn all(snapshot: &Snapshot) -> Vec<Stone> {
        let mut all = Vec::new();
        loop {
            let page = snapshot.page(PriceRange::ALL, all.len() as u64, PAGE_STONES_MAX);
            if page.is_empty() {
                return all;
            }
            all.extend(page);
        }
    }

    fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        self.0.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn faults(&self) -> MutexGuard<'_, Vec<Fault>> {
        self.0.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What goes wrong with this call, if anything does. A call that is held goes on as if nothing were.
    async fn meet(&self, ask: &Ask) -> Option<Response> {
        let act = fault::take(&mut self.faults(), ask)?;
        match act {
            Act::Status(status) => Some(refuse(status, "out of order")),
            Act::RetryAfter(seconds) => {
                let headers = [("retry-after", seconds.to_string())];
                Some((StatusCode::TOO_MANY_REQUESTS, headers, "too many").into_response())
            }
            Act::Say(body) => Some(([("content-type", "application/json")], body).into_response()),
            Act::Hold(valve) => {
                let _visit = self.traffic().enter(HELD);
                valve.pass().await;
                None
            }
        }
    }

    fn snapshot(&self, question: &Question) -> Result<(Arc<Snapshot>, PriceRange), Box<Response>> {
        let range = PriceRange::new(question.min, question.max);
        let range = range.map_err(|refused| Box::new(refuse(400, &refused.to_string())))?;
        let snapshot = self.catalogue().as_of(question.as_of).map(Arc::clone).map_err(|why| match why {
            NotKept::Gone { .. } => Box::new(refuse(410, &why.to_string())),
            NotKept::NotYet { .. } => Box::new(refuse(404, &why.to_string())),
        })?;
        Ok((snapshot, range))
    }
}

async fn latest(State(world): State<World>) -> Response {
    let _visit = world.traffic().enter("latest");
    if let Some(fault) = world.meet(&Ask::Latest).await {
        return fault;
    }
    let latest = world.latest();
    Json(json!({ "revision": latest.revision(), "taken_at": latest.taken_at().to_string() })).into_response()
}

async fn count(State(world): State<World>, Query(question): Query<Question>) -> Response {
    let _visit = world.traffic().enter("count");
    if let Some(fault) = world.meet(&Ask::Count).await {
        return fault;
    }
    match world.snapshot(&question) {
        Ok((snapshot, range)) => Json(json!({ "count": snapshot.count(range) })).into_response(),
        Err(refused) => *refused,
    }
}

async fn stones(State(world): State<World>, Query(question): Query<Question>) -> Response {
    let (min, max, offset) = (question.min, question.max, question.offset);
    let _visit = world.traffic().enter("page");
    let _page = world.traffic().enter(format!("{min}-{max} {offset}"));
    if let Some(fault) = world.meet(&Ask::Page { min: Some(min), offset: Some(offset) }).await {
        return fault;
    }
    match world.snapshot(&question) {
        Ok((snapshot, range)) => {
            let page = snapshot.page(range, offset, question.limit.unwrap_or(PAGE_STONES_MAX));
            let told: Vec<_> = page.iter().map(Stone::to_json).collect();
            Json(json!({ "stones": told })).into_response()
        }
        Err(refused) => *refused,
    }
}

async fn advance(State(world): State<World>) -> Response {
    let Advanced { revision, repriced, withdrawn, appeared, .. } = world.advance();
    let told = json!({ "revision": revision, "repriced": repriced, "withdrawn": withdrawn, "appeared": appeared });
    Json(told).into_response()
}

async fn order(State(world): State<World>, Json(order): Json<Order>) -> Response {
    match Fault::try_from(order) {
        Ok(fault) => world.fault(fault),
        Err(refused) => return refuse(400, &refused.to_string()),
    }
    StatusCode::NO_CONTENT.into_response()
}

async fn heal(State(world): State<World>) -> StatusCode {
    world.heal();
    StatusCode::NO_CONTENT
}

fn refuse(status: u16, why: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(json!({ "error": why }))).into_response()
}
