//! Runners: the tasks that run claimed jobs, and what becomes of jobs that wait for them in vain.

use std::sync::Arc;

use crate::ctx::Ctx;
use crate::lane::{Desk, Runner};
use crate::reporter::Reporter;
use crate::shared::Shared;
use crate::slot;

/// Runs one job of its lane after the other, until none waits.
pub(crate) async fn run_jobs(shared: Arc<Shared>, reporter: Reporter, mut runner: Runner) {
    while let Some(held) = runner.next() {
        slot::run(&shared, &reporter, held).await;
        // Handlers that never wait would keep everybody else from this thread.
        tokio::task::coop::consume_budget().await;
    }
}

/// Every lane's line of claimed jobs that wait for a runner. What is not to run any more must not wait for one: all of
/// them may be busy for hours.
pub(crate) struct Lines {
    shared: Arc<Shared>,
    reporter: Reporter,
    desks: Vec<Arc<Desk>>,
}

impl Lines {
    pub(crate) fn new(shared: Arc<Shared>, reporter: Reporter, desks: Vec<Arc<Desk>>) -> Self {
        Self { shared, reporter, desks }
    }

    /// For ever: takes out whatever was told to stop.
    pub(crate) async fn clear(&self) {
        loop {
            self.shared.held.told.notified().await;
            self.take(|ctx| ctx.stop().is_some());
        }
    }

    /// The process stops: takes out everything.
    pub(crate) fn give_back(&self) {
        self.take(|_| true);
    }

    /// These go through a slot without running, and are reported.
    fn take(&self, is_wanted: impl Fn(&Ctx) -> bool) {
        for held in self.desks.iter().flat_map(|desk| desk.take_waiting(&is_wanted)) {
            let (shared, reporter) = (Arc::clone(&self.shared), self.reporter.clone());
            self.shared.spawn(async move { slot::run(&shared, &reporter, held).await });
        }
    }
}
