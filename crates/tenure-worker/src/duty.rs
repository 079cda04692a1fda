//! Duties: what every worker does besides running jobs, one file each. Nobody is the leader; each duty may be done by
//! several workers at once.

mod adder;
pub(crate) mod counter;
mod pruner;
mod reclaimer;
mod roller;
mod scheduler;
mod sealer;
mod sweeper;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tenure_store::StoreError;

pub(crate) use reclaimer::Reclaimer;
pub(crate) use scheduler::Scheduler;
pub(crate) use sweeper::Sweeper;

use crate::shared::Shared;
use crate::{minute, random};

/// The duties that run in the background; they end when dropped.
pub(crate) struct Duties(tokio::task::JoinSet<()>);

impl Duties {
    pub(crate) fn start(shared: &Arc<Shared>, reclaimer: Arc<Reclaimer>) -> Self {
        let mut duties = tokio::task::JoinSet::new();
        let every = shared.options.reclaim_every;
        let reclaiming = repeat(Arc::clone(shared), "reclaiming", every, move || {
            let reclaimer = Arc::clone(&reclaimer);
            async move { reclaimer.run_if_due().await }
        });
        shared.spawn_in(&mut duties, reclaiming);
        let sealed = Arc::clone(shared);
        let sealing = repeat(Arc::clone(shared), "sealing", sealer::EVERY, move || sealer::run(Arc::clone(&sealed)));
        shared.spawn_in(&mut duties, sealing);
        let added = Arc::clone(shared);
        let adding =
            repeat(Arc::clone(shared), "adding up usage", adder::EVERY, move || adder::run(Arc::clone(&added)));
        shared.spawn_in(&mut duties, adding);
        let rolled = Arc::clone(shared);
        let rolling =
            repeat(Arc::clone(shared), "summing rollups", roller::EVERY, move || roller::run(Arc::clone(&rolled)));
        shared.spawn_in(&mut duties, rolling);
        shared.spawn_in(&mut duties, Scheduler::new(Arc::clone(shared)).run());
        shared.spawn_in(&mut duties, counter::run(Arc::clone(shared)));
        shared.spawn_in(&mut duties, minute::tell_on(Arc::clone(shared)));
        if let Some(retention) = shared.options.retention {
            let pruned = Arc::clone(shared);
            let pruning = repeat(Arc::clone(shared), "pruning", pruner::EVERY, move || {
                pruner::run(Arc::clone(&pruned), retention)
            });
            shared.spawn_in(&mut duties, pruning);
        }
        Self(duties)
    }

    pub(crate) fn stop(mut self) {
        self.0.abort_all();
    }
}

/// Does a duty again and again, give or take a tenth, and never stops by itself.
async fn repeat<F>(shared: Arc<Shared>, what: &'static str, every: Duration, mut duty: impl FnMut() -> F)
where
    F: Future<Output = Result<(), StoreError>>,
{
    loop {
        tokio::time::sleep(random::jitter(every)).await;
        // Before the store has answered once there is nothing to do, and after that the loop says what is wrong.
        if shared.worker.get().is_none() {
            continue;
        }
        match duty().await {
            Ok(()) => {}
            Err(error) if error.is_passing() => shared.trouble.failed(what, &error),
            Err(error) => tracing::error!(error = %error, "{what} failed"),
        }
    }
}
