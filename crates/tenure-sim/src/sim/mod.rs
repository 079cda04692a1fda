//! The real worker on the real embedded store, in paused time, with faults that follow from a seed.
//!
//! ```text
//!   producers ──┐                                    ┌── w1 ┐
//!   operator ───┤── network: lost, late, twice ──▶ SQLite   ├ machines: crash, freeze, cut off, restart
//!   chaos       └──────────────── ▲ ─────────────────┴── w5 ┘
//!                   the store's clock: drifts, is set forward and back
//! ```
//!
//! Nothing is imitated but the world: the worker is `tenure-worker` with its keeper, reporter and duties, the store is
//! `tenure-sqlite` in memory. Between them stands the network (`net`), which loses, delays and doubles calls, and every
//! task of a worker goes through its machine (`node`), which can stand still or be gone.
//!
//! **One seed decides everything.** One thread, tokio's paused time (it jumps to the next timer when nobody is ready), a
//! store that answers inline, a seeded worker, and no map that iterates in an order of its own. A run writes a trace of
//! every call and every handler's start and stop; two runs of a seed must have the same hash.
//!
//! A run has three parts. While the faults last, jobs are asked for, canceled and revived. Then the world heals: every
//! job must end within [`HEALS_WITHIN`]. Then workers are told to stop, and the oracle compares the books with the store's
//! journal. What is checked is listed in [`Rule`]; what must have happened somewhere in a set of seeds, in [`SOMETIMES`].
//!
//! # Layout
//! - `world`, `plan`, `rng`, `clock`, `trace`, `counters`: what a run has
//! - `net`, `store`: the network, and the store's port over it
//! - `node`, `crew`, `chaos`: machines, the workers on them, what befalls them
//! - `producer`, `schedule`, `operator`, `jobs`, `handlers`: who asks, and what is done
//! - `ledger`, `oracle`, `finding`: the books, the checks, what is wrong
//! - `breakage`: bugs on purpose, which the checks must find
//! - [`seeds`]: many runs, and the seeds that once failed

mod breakage;
mod chaos;
mod clock;
mod counters;
mod crew;
mod finding;
mod gate;
mod handlers;
mod jobs;
mod ledger;
mod net;
mod node;
mod operator;
mod oracle;
mod plan;
mod producer;
mod rng;
mod schedule;
pub mod seeds;
mod store;
mod trace;
mod world;

use std::sync::Arc;
use std::time::Duration;

use tenure_core::name::QueueName;
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::clock::Clock;
use tenure_store::operate::SetQueue;
use tenure_store::{AdminStore, Store, StoreError};
use tenure_worker::Client;
use tenure_worker::random::Seeded;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

pub use breakage::Breakage;
pub use counters::{Counters, SOMETIMES};
pub use finding::{Finding, Rule};

use net::Wire;
use world::World;

/// In this time after the last fault every job has ended, by the machines' clocks and however far the store's was set back.
pub const HEALS_WITHIN: Duration = Duration::from_secs(180);
/// How often the store is asked for broken invariants.
const LOOKS_EVERY: Duration = Duration::from_secs(3);
/// Who asks for jobs.
const PRODUCERS: usize = 2;

/// What to run.
#[derive(Debug, Clone, Default)]
pub struct Trial {
    /// Decides everything.
    pub seed: u64,
    /// A bug to have.
    pub breakage: Option<Breakage>,
    /// How to open the store; its clock is the run's own.
    pub store: SqliteOptions,
    /// Keep the lines of the trace.
    pub kept: bool,
}

/// What a run was like.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Of the trace.
    pub hash: u64,
    /// Events in the trace.
    pub events: u64,
    /// Virtual time.
    pub took: Duration,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What happened.
    pub counters: Counters,
    /// The trace, if it was kept.
    pub trace: Vec<String>,
}

/// Runs a trial once.
pub fn run(trial: &Trial) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without any driver");
    let _seeded = Seeded::new(trial.seed);
    runtime.block_on(async {
        let world = Arc::new(World::new(trial.seed, trial.breakage, trial.kept));
        if let Err(error) = perform(&world, trial.store.clone()).await {
            world.ledger.find(Rule::Invariant, format!("the store in memory failed: {error}"));
        }
        let took = world.clock.elapsed();
        let (hash, events, trace) = world.end_trace();
        let findings = world.ledger.book().findings.clone();
        Outcome { hash, events, took, findings, counters: world.counters(), trace }
    })
}

/// Runs a trial twice: the same trace, or that is a finding of its own.
pub fn run_twice(trial: &Trial) -> Outcome {
    let (mut first, second) = (run(trial), run(trial));
    if (first.hash, first.events) != (second.hash, second.events) {
        let text =
            format!("{:016x} of {} events, then {:016x} of {}", first.hash, first.events, second.hash, second.events);
        first.findings.push(Finding { rule: Rule::NotRepeatable, text });
    }
    first
}

async fn perform(world: &Arc<World>, options: SqliteOptions) -> Result<(), StoreError> {
    let store = open(world, options).await?;
    let mut everybody = JoinSet::new();
    let wire = |caller: String| Wire { store: store.clone(), world: Arc::clone(world), caller, node: None };
    for from in 0..PRODUCERS {
        let calls: Arc<dyn Store> = Arc::new(wire(format!("p{}", from + 1)));
        everybody.spawn(producer::run(Arc::clone(world), Client::new(calls), from as u64, PRODUCERS));
    }
    everybody.spawn(operator::run(Arc::clone(world), wire("operator".into())));
    let mut crew = JoinSet::new();
    for at in 0..world.plan.nodes {
        crew.spawn(crew::keep_place(Arc::clone(world), store.clone(), at));
    }
    let mut looks = JoinSet::new();
    looks.spawn(look(Arc::clone(world), store.clone()));

    chaos::run(Arc::clone(world)).await;
    if world.is_broken(Breakage::NeverHeals) {
        world.set_outage(HEALS_WITHIN * 10);
    } else {
        world.heal();
        while everybody.join_next().await.is_some() {}
    }
    // Otherwise there would be no end.
    schedule::pause(&store).await?;
    settle(world, &wire("operator".into())).await?;

    world.close();
    while crew.join_next().await.is_some() {}
    looks.abort_all();
    while looks.join_next().await.is_some() {}
    oracle::check(world, &store).await
}

async fn open(world: &World, options: SqliteOptions) -> Result<SqliteStore, StoreError> {
    let store = SqliteStore::in_memory(SqliteOptions { clock: Clock::Manual(world.clock.shown()), ..options })?;
    store.migrate().await?;
    for queue in jobs::QUEUES {
        store.set_queue(SetQueue::new(QueueName::new(queue)?, world.plan.lease_ttl)).await?;
    }
    schedule::set(&store).await?;
    gate::set(&store).await?;
    let create = "create table effect (job text not null, fence integer not null)";
    store.transaction(move |tx| tx.connection().execute_batch(create).map_err(StoreError::unavailable)).await?;
    Ok(store)
}

/// Waits until every job has ended, or for as long as that may take.
async fn settle(world: &World, operator: &Wire) -> Result<(), StoreError> {
    let set_back = Duration::from_millis(u64::try_from(-world.clock.offset_ms()).unwrap_or(0));
    let until = Instant::now() + HEALS_WITHIN + set_back;
    while Instant::now() < until {
        world.clock.sync();
        let queues = operator.store.list_queues().await?;
        // A word to pause may have been on its way for long: nobody claims from a paused queue, healed or not.
        for queue in queues.iter().filter(|queue| queue.paused) {
            // Lost only where nothing heals, and then the jobs tell.
            let _ = operator::resume(operator, queue.name.clone()).await;
        }
        if queues.iter().all(|queue| queue.due + queue.scheduled + queue.running == 0) {
            return Ok(());
        }
        sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

/// Looks for broken invariants again and again.
async fn look(world: Arc<World>, store: SqliteStore) {
    loop {
        sleep(LOOKS_EVERY).await;
        world.clock.sync();
        if let Err(error) = gate::look(&world, &store).await {
            world.ledger.find(Rule::Invariant, error.to_string());
        }
        match store.find_violations(5).await {
            Ok(violations) => {
                for violation in violations {
                    let job = violation.job.map(|job| world.ledger.name_of(job)).unwrap_or_default();
                    let text = format!("{} {job}: {}", violation.invariant, violation.detail);
                    world.ledger.find(Rule::Invariant, text);
                }
            }
            Err(error) => world.ledger.find(Rule::Invariant, error.to_string()),
        }
    }
}
