//! What everybody in a run shares: its plan, its chance, its clock, its trace and its books.

use std::fmt::Arguments;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::breakage::Breakage;
use super::clock::StoreClock;
use super::counters::Counters;
use super::ledger::Ledger;
use super::node::Node;
use super::plan::Plan;
use super::rng::Rng;
use super::trace::Trace;

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) breakage: Option<Breakage>,
    pub(crate) clock: StoreClock,
    pub(crate) ledger: Ledger,
    /// The machine in each place, while there is one.
    nodes: Mutex<Vec<Option<Node>>>,
    rng: Mutex<Rng>,
    trace: Mutex<Trace>,
    counters: Mutex<Counters>,
    healed: AtomicBool,
    closed: AtomicBool,
    outage_until: Mutex<Option<Instant>>,
}

impl World {
    pub(crate) fn new(seed: u64, breakage: Option<Breakage>, kept: bool) -> Self {
        let plan = Plan::of(seed);
        Self {
            clock: StoreClock::new(plan.drift_ppm),
            ledger: Ledger::default(),
            nodes: Mutex::new(vec![None; plan.nodes]),
            rng: Mutex::new(Rng::new(!seed)),
            trace: Mutex::new(Trace::new(kept)),
            counters: Mutex::default(),
            healed: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            outage_until: Mutex::new(None),
            plan,
            breakage,
        }
    }

    /// Draws from the run's chance.
    pub(crate) fn draw<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut lock(&self.rng))
    }

    /// Writes an event down.
    pub(crate) fn trace(&self, who: &str, what: Arguments<'_>) {
        lock(&self.trace).event(self.clock.elapsed(), who, what);
    }

    pub(crate) fn count(&self, what: &'static str) {
        lock(&self.counters).count(what);
    }

    pub(crate) fn add(&self, what: &'static str, many: usize) {
        if many > 0 {
            lock(&self.counters).add(what, many as u64);
        }
    }

    pub(crate) fn is_broken(&self, so: Breakage) -> bool {
        self.breakage == Some(so)
    }

    /// Whether the faults are over.
    pub(crate) fn is_healed(&self) -> bool {
        self.healed.load(Ordering::Relaxed)
    }

    /// Ends all faults: who is frozen goes on, who is cut off is heard.
    pub(crate) fn heal(&self) {
        self.healed.store(true, Ordering::Relaxed);
        *lock(&self.outage_until) = None;
        for node in self.nodes() {
            node.reconnect();
            self.thaw(&node);
        }
        self.trace("world", format_args!("healed"));
    }

    /// Tells every worker to stop, for good.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.trace("world", format_args!("closes"));
        for node in self.nodes() {
            node.tell_to_stop();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Lets a frozen machine go on, its tasks in any order.
    pub(crate) fn thaw(&self, node: &Node) {
        let mut tasks = node.thaw();
        self.draw(|rng| rng.shuffle(&mut tasks));
        tasks.into_iter().for_each(std::task::Waker::wake);
    }

    /// The store answers nobody for so long.
    pub(crate) fn set_outage(&self, lasting: Duration) {
        *lock(&self.outage_until) = Some(Instant::now() + lasting);
    }

    pub(crate) fn is_outage(&self) -> bool {
        lock(&self.outage_until).is_some_and(|until| Instant::now() < until)
    }

    /// Puts a machine into a place, or takes it away.
    pub(crate) fn place(&self, at: usize, node: Option<Node>) {
        lock(&self.nodes)[at] = node;
    }

    /// The machines that are there.
    pub(crate) fn nodes(&self) -> Vec<Node> {
        lock(&self.nodes).iter().flatten().cloned().collect()
    }

    pub(crate) fn counters(&self) -> Counters {
        lock(&self.counters).clone()
    }

    /// The trace's hash, its number of events and its lines.
    pub(crate) fn end_trace(&self) -> (u64, u64, Vec<String>) {
        let mut trace = lock(&self.trace);
        (trace.hash(), trace.events(), trace.take_lines())
    }
}

/// One thread runs everything: nobody can have died holding a lock half-way.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
