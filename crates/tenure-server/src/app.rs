//! What the handlers of all requests share.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use tenure_core::name::{GateName, QueueName, TenantName};
use tenure_core::{Credential, JobId, KeyId, WorkerId, worker_loop};
use tenure_store::access::KeyRecord;
use tenure_store::worker::Order;
use tenure_store::{Store, StoreError};
use tokio::sync::watch;
use tokio::time::{Duration, Instant};
use tower_service::Service;

use crate::api::has_callbacks;
use crate::bodies::Bodies;
use crate::body;
use crate::caller::Caller;
use crate::keyring::Keyring;
use crate::metrics::Metrics;
use crate::new_job::Ids;
use crate::options::Options;
use crate::problem::{INTERNAL, MALFORMED, Problem};
use crate::waiters::Waiters;

/// The store and what is remembered beside it. Clones share everything.
#[derive(Clone)]
pub struct App {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: Arc<Options>,
    pub(crate) keyring: Arc<Keyring>,
    pub(crate) metrics: Arc<Metrics>,
    /// Claims that wait.
    pub(crate) waiters: Arc<Waiters>,
    /// The memory for bodies.
    pub(crate) bodies: Arc<Bodies>,
    /// True when the server stops.
    pub(crate) stopping: watch::Sender<bool>,
    /// Every call, for pages of the server's own that act through them.
    pub(crate) calls: Arc<OnceLock<Router>>,
    ids: Arc<Mutex<Ids>>,
    /// Queues that are there; they are never removed.
    queues: Arc<Mutex<HashSet<QueueName>>>,
    /// Gates that have a rule, or had one.
    gates: Arc<Mutex<HashSet<GateName>>>,
    /// Whether the store answered, and when it was asked.
    health: Arc<Mutex<Option<(Instant, bool)>>>,
    orders: Arc<Mutex<HashMap<WorkerId, (Instant, Order)>>>,
    turns: Arc<AtomicU64>,
    /// Tenants that have an endpoint for callbacks, and when that was seen.
    callbacks: Arc<Mutex<HashMap<TenantName, Instant>>>,
}

/// Most that is remembered of orders, and of gates; then all are asked for anew.
const KNOWN_MAX: usize = 10_000;
/// Orders are asked for so often.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl App {
    pub(crate) fn new(store: Arc<dyn Store>, options: Options) -> Self {
        let waiters = Waiters::new(Arc::clone(&store), options.waker.clone(), options.poll_every);
        Self {
            store,
            keyring: Arc::default(),
            metrics: Arc::default(),
            waiters: Arc::new(waiters),
            bodies: Arc::new(Bodies::new(options.bodies_bytes_max, options.body_bytes_max)),
            options: Arc::new(options),
            stopping: watch::Sender::new(false),
            calls: Arc::default(),
            ids: Arc::default(),
            queues: Arc::default(),
            gates: Arc::default(),
            health: Arc::default(),
            orders: Arc::default(),
            turns: Arc::default(),
            callbacks: Arc::default(),
        }
    }

    /// The store.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// What was set.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Changes to true when the server stops.
    pub fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// The key that this text is, if it is good now.
    pub async fn find_key(&self, text: &str) -> Result<Option<KeyRecord>, StoreError> {
        let Some((id, credential)) = Credential::parse_key(text.trim()) else { return Ok(None) };
        self.keyring.find(&*self.store, &id, &credential).await
    }

    /// The key of this id, if it is good now: for one who has proven it before.
    pub async fn look_up_key(&self, id: &KeyId) -> Result<Option<KeyRecord>, StoreError> {
        self.keyring.find_proven(&*self.store, id).await
    }

    /// Calls the API as this caller, without a socket in between: the same checks, the same journal.
    pub async fn call(&self, caller: Caller, mut request: Request) -> Response {
        request.extensions_mut().insert(caller);
        match self.calls.get() {
            Some(calls) => match calls.clone().call(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            },
            None => Problem::new(INTERNAL, "the server has not begun").into_response(),
        }
    }

    /// A form of a page of the server's own: in time and memory as every body, and of at most so many bytes.
    pub async fn read_form(&self, request: Request, bytes_max: usize) -> Result<Vec<(String, String)>, Problem> {
        let (bytes, _held) = body::bytes(request, self, bytes_max).await?;
        serde_urlencoded::from_bytes(&bytes).map_err(|_| Problem::new(MALFORMED, "the body is no form"))
    }

    /// A new id.
    pub(crate) fn new_id(&self) -> Result<JobId, Problem> {
        let made = self.ids.lock().unwrap_or_else(PoisonError::into_inner).make();
        made.map_err(|error| Problem::internal("no random bits for a job id", &error))
    }

    /// New ids, in the order in which they are asked for.
    pub(crate) fn new_ids(&self, count: usize) -> Result<Vec<JobId>, Problem> {
        (0..count).map(|_| self.new_id()).collect()
    }

    /// What a worker is told to do, as of a moment ago. One that has said goodbye is not waited for any more.
    pub(crate) async fn order(&self, worker: WorkerId) -> Result<Order, Problem> {
        let orders = || self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let known = orders().get(&worker).filter(|(at, _)| at.elapsed() < LOOK_EVERY).map(|(_, order)| *order);
        if let Some(order) = known {
            return Ok(order);
        }
        let began = Instant::now();
        let record = self.store.show_worker(worker).await?;
        let has_parted = record.beat.is_some_and(|beat| beat.state == worker_loop::State::Stopped);
        let order = if has_parted { Order::Stop } else { record.order };
        Ok(self.remember_order(worker, order, began))
    }

    /// What a worker is told, as of a moment; what was heard later stands.
    pub(crate) fn remember_order(&self, worker: WorkerId, order: Order, as_of: Instant) -> Order {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, later)) = orders.get(&worker).filter(|(at, _)| *at > as_of) {
            return *later;
        }
        if orders.len() >= KNOWN_MAX {
            orders.clear();
        }
        orders.insert(worker, (as_of, order));
        order
    }

    /// Says that these jobs were committed, where somebody is to be told.
    pub(crate) fn publish(&self, jobs: impl IntoIterator<Item = JobId>) {
        if let Some(waker) = &self.options.waker {
            jobs.into_iter().for_each(|job| waker.publish(job));
        }
    }

    /// The number of the next claim.
    pub(crate) fn next_turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether the store answers, as of a second ago: nobody needs a key to ask.
    pub(crate) async fn is_store_there(&self) -> bool {
        let known = *self.health.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, is_there)) = known.filter(|(at, _)| at.elapsed() < LOOK_EVERY) {
            return is_there;
        }
        let is_there = self.store.now().await.is_ok();
        *self.health.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), is_there));
        is_there
    }

    /// Whether there is such a queue; the default one always is.
    pub(crate) async fn has_queue(&self, queue: &QueueName) -> Result<bool, Problem> {
        let known = || self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        if *queue == QueueName::default() || known().contains(queue) {
            return Ok(true);
        }
        let is_there = self.store.has_queue(queue).await?;
        if is_there {
            known().insert(queue.clone());
        }
        Ok(is_there)
    }

    /// Whether a tenant has an endpoint that signs callbacks, as of a moment ago.
    pub(crate) async fn signs_callbacks(&self, tenant: &TenantName) -> Result<bool, Problem> {
        let known = || self.callbacks.lock().unwrap_or_else(PoisonError::into_inner);
        if known().get(tenant).is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return Ok(true);
        }
        let began = Instant::now();
        let signs = has_callbacks(self, tenant).await?;
        if signs {
            let mut known = known();
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            known.insert(tenant.clone(), began);
        }
        Ok(signs)
    }

    /// Whether a rule is set for this gate, so that an operator has thought of it.
    pub(crate) async fn has_rule(&self, gate: &GateName) -> Result<bool, Problem> {
        let known = || self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        if known().contains(gate) {
            return Ok(true);
        }
        let is_ruled = match self.store.show_gate(gate).await {
            Err(StoreError::NotFound(_)) => false,
            gate => gate?.pattern.is_some(),
        };
        if is_ruled {
            let mut known = known();
            if known.len() >= KNOWN_MAX {
                known.clear();
            }
            known.insert(gate.clone());
        }
        Ok(is_ruled)
    }
}
