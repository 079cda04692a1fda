//! [`Worker`]: handlers, queues and options put together, and run.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tenure_core::Invalid;
use tenure_core::classify::RuleTable;
use tenure_core::name::{KindName, QueueName, WorkerName};
use tenure_core::preset::Preset;
use tenure_store::worker::About;
use tenure_store::{IntoStore, Store, Waker};

use crate::client::Client;
use crate::handler::Handler;
use crate::job::Job;
use crate::machine::Machine;
use crate::observe::Observer;
use crate::options::{KeeperPlace, Options, check_patience};
use crate::route::{HandleOptions, Route, Routes};
use crate::shared::{Gauge, Shared, Summary};
use crate::{inline, name, run, signal};

/// Slots of a queue that is served because a handler's jobs wait there.
const SLOTS_DEFAULT: u32 = 10;

/// A worker process, ready to run. Make one with [`Worker::builder`].
pub struct Worker {
    pub(crate) shared: Arc<Shared>,
}

/// A worker in the making. What is wrong is said by [`build`](Builder::build), naming the field.
#[must_use]
pub struct Builder<S = ()> {
    store: Arc<dyn Store>,
    client: Option<Client>,
    state: S,
    queues: Vec<(String, u32)>,
    routes: Vec<(&'static str, Route)>,
    options: Options,
    name: Option<String>,
}

impl Worker {
    /// A worker on this store.
    pub fn builder(store: impl IntoStore) -> Builder {
        Builder {
            store: store.into_store(),
            client: None,
            state: (),
            queues: Vec::new(),
            routes: Vec::new(),
            options: Options::default(),
            name: None,
        }
    }

    /// Runs until SIGTERM or SIGINT (Ctrl-C), then stops claiming, lets running jobs finish for the grace period, gives
    /// the rest back uncharged, and returns, at most a second after the grace period. A signal that comes more than a
    /// second after the first ends the process at once; earlier ones count as the same request.
    ///
    /// A handler that blocks its thread then blocks it still, and a tokio runtime waits for it when it is dropped: end
    /// `main` with `Runtime::shutdown_background` or `std::process::exit` where handlers may block.
    pub async fn run(self) -> std::io::Result<Summary> {
        let signal = signal::first_then_exit_on_second()?;
        self.run_until(signal).await
    }

    /// Runs until `stop` is over, then drains as [`run`](Self::run) does. Losing the store is no reason to stop. An
    /// error means that this machine gives no thread for the lease keeper, or that the keeper is gone.
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> std::io::Result<Summary> {
        run::run(self.shared, stop).await
    }

    /// Runs every job that is due, and what those enqueue, one after the other, until nothing is due any more: for
    /// tests and scripts. Nothing else happens: no keeper, no duties, no waiting.
    pub async fn run_until_idle(&self) -> Result<Summary, tenure_store::StoreError> {
        inline::run_until_idle(&self.shared).await
    }
}

impl<S: Clone + Send + Sync + 'static> Builder<S> {
    /// What handlers get as `State<…>`. Say it before the handlers that ask for it.
    pub fn state<T: Clone + Send + Sync + 'static>(self, state: T) -> Builder<T> {
        let Self { store, client, queues, routes, options, name, .. } = self;
        Builder { store, client, state, queues, routes, options, name }
    }

    /// Serves a queue with so many slots: jobs of it that run at once in this process. Without any, the queues of the
    /// handled jobs are served with ten slots each.
    pub fn queue(mut self, queue: impl Into<String>, slots: u32) -> Self {
        self.queues.push((queue.into(), slots));
        self
    }

    /// Runs jobs of type `J` with this handler.
    pub fn handle<H, J, T>(self, handler: H) -> Self
    where
        H: Handler<J, T, S>,
        J: Job,
    {
        self.handle_with(handler, HandleOptions::new())
    }

    /// The same, with a timeout or a rule table of its own.
    pub fn handle_with<H, J, T>(mut self, handler: H, options: HandleOptions) -> Self
    where
        H: Handler<J, T, S>,
        J: Job,
    {
        self.routes.push((J::KIND, Route::new(handler, self.state.clone(), options)));
        self
    }

    /// How people read it; `WORKER_ID` names it otherwise, or the machine and the process.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Takes over what a preset says about polling, reclaiming, renewing and errors.
    pub fn preset(mut self, preset: &Preset) -> Self {
        self.options.preset(preset);
        self
    }

    /// What handlers' errors mean.
    pub fn rules(mut self, rules: RuleTable) -> Self {
        self.options.rules = rules;
        self
    }

    /// How long running jobs may go on after the signal to stop; 30 s unless set.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.options.grace = grace;
        self
    }

    /// How long a canceled or timed out handler may take to stop before it is dropped; 5 s unless set.
    pub fn cancel_grace(mut self, grace: Duration) -> Self {
        self.options.cancel_grace = grace;
        self
    }

    /// The longest wait between two looks; 1 s unless set.
    pub fn poll_every(mut self, every: Duration) -> Self {
        self.options.poll_every = every;
        self
    }

    /// How long the loop stands still after something unexpected, and a job is put aside that met it; 5 s unless set.
    pub fn error_wait(mut self, wait: Duration) -> Self {
        self.options.error_wait = wait;
        self
    }

    /// How often leases are renewed; a third of their time unless set, and never more than half of it.
    pub fn renew_every(mut self, every: Duration) -> Self {
        self.options.renew_every = Some(every);
        self
    }

    /// How often expired leases are looked for; 1 s unless set.
    pub fn reclaim_every(mut self, every: Duration) -> Self {
        self.options.reclaim_every = every;
        self
    }

    /// Throughput mode: claims so many jobs of each queue ahead of its free slots; 0 unless set.
    ///
    /// Very short jobs run without waiting for the next claim. The price: what is claimed ahead waits in this process
    /// even when another one has free slots, behind whatever is slow here, in no certain order, and is lost with it.
    pub fn prefetch(mut self, jobs: u32) -> Self {
        self.options.prefetch = jobs;
        self
    }

    /// At most so many jobs share a lease, 1 to 256, which is the default. What shares a lease is renewed together, and
    /// lost together when the process dies.
    pub fn lease_jobs(mut self, jobs: u32) -> Self {
        self.options.lease_jobs = jobs;
        self
    }

    /// How long ended jobs are kept; `None`: for ever. Seven days unless set.
    pub fn retention(mut self, retention: Option<Duration>) -> Self {
        self.options.retention = retention;
        self
    }

    /// Where the lease keeper runs: on a thread of its own unless a simulation says otherwise.
    pub fn keeper(mut self, place: KeeperPlace) -> Self {
        self.options.keeper = place;
        self
    }

    /// What the worker's tasks run on, for simulations: see [`Machine`].
    pub fn machine(mut self, machine: Arc<dyn Machine>) -> Self {
        self.options.machine = Some(machine);
        self
    }

    /// Somebody who may wake it sooner than a poll finds work, such as a broker; what handlers enqueue is published there.
    /// When nobody can be heard, it polls as if there were none.
    pub fn waker(mut self, waker: Arc<dyn Waker>) -> Self {
        self.options.waker = Some(waker);
        self
    }

    /// Somebody who hears how attempts end in this process.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.options.observer = Some(observer);
        self
    }

    /// The client that handlers get, for tests whose ids are made by another clock.
    pub fn client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// Checks everything. Refuses a kind that has two handlers, a name that is none, times and slots out of range.
    pub fn build(self) -> Result<Worker, Invalid> {
        let Self { store, client, queues, routes, mut options, name, .. } = self;
        let queues = queue_slots(queues, &routes)?;
        options.check(&queues)?;
        options.name = Some(name.map_or_else(name::default_name, WorkerName::new)?);
        let routes = by_kind(routes)?;
        let about =
            About { version: env!("CARGO_PKG_VERSION").into(), host: name::host(), pid: std::process::id(), queues };
        let client = client.unwrap_or_else(|| Client::new(&store));
        let shared = Shared {
            client: match &options.waker {
                Some(waker) => client.with_waker(Arc::clone(waker)),
                None => client,
            },
            store,
            routes,
            options,
            about,
            worker: OnceLock::new(),
            held: Default::default(),
            gauge: Gauge::default(),
            minute: Default::default(),
            trouble: Default::default(),
            unknown: Default::default(),
            given_back: Default::default(),
            stopping: Default::default(),
            quiet: Default::default(),
            freed: Default::default(),
            spoken: Default::default(),
        };
        Ok(Worker { shared: Arc::new(shared) })
    }
}

/// The queues that were named, or else those of the handled jobs.
fn queue_slots(named: Vec<(String, u32)>, routes: &[(&'static str, Route)]) -> Result<Vec<(QueueName, u32)>, Invalid> {
    let named = match named.is_empty() {
        true => routes.iter().map(|(_, route)| (route.queue.to_owned(), SLOTS_DEFAULT)).collect(),
        false => named,
    };
    let mut queues = BTreeMap::new();
    for (queue, slots) in named {
        let queue = QueueName::new(queue)?;
        if queues.insert(queue.clone(), slots).is_some_and(|before| before != slots) {
            return Err(Invalid::new("queue", queue, "it was named before with another number of slots"));
        }
    }
    Ok(queues.into_iter().collect())
}

fn by_kind(routes: Vec<(&'static str, Route)>) -> Result<Routes, Invalid> {
    let mut kinds = Routes::new();
    for (kind, route) in routes {
        route.timeout.iter().try_for_each(|timeout| check_patience("timeout", *timeout))?;
        if kinds.insert(KindName::new(kind)?, Arc::new(route)).is_some() {
            return Err(Invalid::new("kind", kind, "a kind has one handler"));
        }
    }
    Ok(kinds)
}
