//! What the handlers of all requests share.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tenure_core::name::QueueName;
use tenure_core::{JobId, WorkerId, worker_loop};
use tenure_store::Store;
use tenure_store::worker::Order;
use tokio::sync::{Semaphore, watch};
use tokio::time::{Duration, Instant};

use crate::keyring::Keyring;
use crate::new_job::Ids;
use crate::options::Options;
use crate::problem::Problem;

/// The store and what is remembered beside it. Clones share everything.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) options: Arc<Options>,
    pub(crate) keyring: Arc<Keyring>,
    /// KiB of bodies that may yet be read.
    pub(crate) bodies: Arc<Semaphore>,
    /// True when the server stops.
    pub(crate) stopping: watch::Sender<bool>,
    ids: Arc<Mutex<Ids>>,
    queues: Arc<Mutex<KnownQueues>>,
    orders: Arc<Mutex<HashMap<WorkerId, (Instant, Order)>>>,
    turns: Arc<AtomicU64>,
}

/// Queues that are there; they are never removed.
#[derive(Default)]
struct KnownQueues {
    names: HashSet<QueueName>,
    looked: Option<Instant>,
}

/// Orders that are remembered; then all are asked for anew.
const ORDERS_MAX: usize = 10_000;
/// Unknown queues are looked for so often, and orders.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl App {
    pub(crate) fn new(store: Arc<dyn Store>, options: Options) -> Self {
        Self {
            store,
            keyring: Arc::default(),
            bodies: Arc::new(Semaphore::new(options.bodies_bytes_max.div_ceil(1 << 10))),
            options: Arc::new(options),
            stopping: watch::Sender::new(false),
            ids: Arc::default(),
            queues: Arc::default(),
            orders: Arc::default(),
            turns: Arc::default(),
        }
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
        let record = self.store.show_worker(worker).await?;
        let has_parted = record.beat.is_some_and(|beat| beat.state == worker_loop::State::Stopped);
        let order = if has_parted { Order::Stop } else { record.order };
        self.remember_order(worker, order);
        Ok(order)
    }

    /// What a worker is told from now on.
    pub(crate) fn remember_order(&self, worker: WorkerId, order: Order) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if orders.len() >= ORDERS_MAX {
            orders.clear();
        }
        orders.insert(worker, (Instant::now(), order));
    }

    /// The number of the next claim.
    pub(crate) fn next_turn(&self) -> u64 {
        self.turns.fetch_add(1, Ordering::Relaxed)
    }

    /// Whether there is such a queue. What was made a moment ago elsewhere may not be known yet.
    pub(crate) async fn has_queue(&self, queue: &QueueName) -> Result<bool, Problem> {
        let known = || self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut known = known();
            if known.names.contains(queue) {
                return Ok(true);
            }
            if known.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
                return Ok(false);
            }
            known.looked = Some(Instant::now());
        }
        let there = self.store.list_queues().await?;
        let mut known = known();
        known.names.extend(there.into_iter().map(|record| record.name));
        Ok(known.names.contains(queue))
    }
}
