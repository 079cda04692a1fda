//! [`Machine`]: what a worker's tasks run on, for simulations.
//!
//! A worker process is more than one future: slots, reports, duties and the keeper are tasks of their own. A simulation
//! that freezes a process or kills it must reach all of them at once, so every task of a worker is made here and, in a
//! simulation, handed to its machine first. Elsewhere there is no machine and nothing in between.

use std::future::Future;
use std::pin::Pin;

use crate::shared::Shared;

/// A task of a worker.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The machine that a simulated worker runs on.
pub trait Machine: Send + Sync {
    /// Wraps a task of the worker, so that it makes progress only while the machine does.
    fn host(&self, task: Task) -> Task;
}

impl Shared {
    /// Starts a task of this worker on the current runtime.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        match &self.options.machine {
            None => drop(tokio::spawn(task)),
            Some(machine) => drop(tokio::spawn(machine.host(Box::pin(task)))),
        }
    }

    /// The same as one of a set, which may be stopped together.
    pub(crate) fn spawn_in(&self, set: &mut tokio::task::JoinSet<()>, task: impl Future<Output = ()> + Send + 'static) {
        match &self.options.machine {
            None => set.spawn(task),
            Some(machine) => set.spawn(machine.host(Box::pin(task))),
        };
    }
}
