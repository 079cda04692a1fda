//! A worker process from its start to its end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::ctx::Stop;
use crate::duty::{Duties, Reclaimer};
use crate::keeper::Keeper;
use crate::looper::Loop;
use crate::reporter::Reporter;
use crate::shared::{Shared, Summary};

/// After the grace period handlers are told to stop; so long for them to end and be given back. What is left then is
/// given back by the keeper.
pub(crate) const WIND_UP: Duration = Duration::from_millis(400);

pub(crate) async fn run(shared: Arc<Shared>, stop: impl Future<Output = ()>) -> std::io::Result<Summary> {
    let mut keeper = Keeper::start(Arc::clone(&shared))?;
    let in_order = tokio::select! {
        biased;
        () = run_in_order(&shared, stop) => true,
        // Handlers that block every thread here stop the clocks as well; the keeper has one of its own.
        () = keeper.ended() => false,
    };
    if in_order {
        keeper.stop().await;
    } else if !shared.stopping.is_up() {
        // Nobody watches their deadlines any more.
        shared.held.attempts().iter().for_each(|ctx| ctx.tell(Stop::LeaseLost));
        return Err(std::io::Error::other("the lease keeper ended by itself"));
    }
    shared.minute.tell();
    let summary = shared.gauge.summary();
    tracing::info!(
        success_count = summary.succeeded,
        fail_count = summary.failed,
        released = summary.released,
        refused = summary.refused,
        "stopped"
    );
    Ok(summary)
}

/// Works until told to stop, then drains.
async fn run_in_order(shared: &Arc<Shared>, stop: impl Future<Output = ()>) {
    let reporter = Reporter::start(Arc::clone(shared));
    let reclaimer = Arc::new(Reclaimer::new(Arc::clone(shared)));
    let duties = Duties::start(shared, Arc::clone(&reclaimer));
    let mut looper = Loop::new(Arc::clone(shared), reporter, reclaimer);
    let lines = looper.lines();
    let mut told_at = None;
    let told = async {
        stop.await;
        // The loop is told, never cancelled: a claim on its way is heard to its end.
        told_at = Some(Instant::now());
        shared.stopping.raise();
        std::future::pending::<()>().await;
    };
    // In a task, next to its slots and to what reads from the store: elsewhere every claim would wake one more thread.
    let mut looping = JoinSet::new();
    shared.spawn_in(&mut looping, async move { looper.run().await });
    tokio::select! {
        biased;
        () = told => {}
        ended = looping.join_next() => if let Some(Err(error)) = ended && error.is_panic() {
            std::panic::resume_unwind(error.into_panic());
        },
        () = lines.clear() => {}
    }
    lines.give_back();
    duties.stop();
    drain(shared, told_at.unwrap_or_else(Instant::now)).await;
}

/// Lets running jobs finish until the grace period ends, then gives the rest back.
async fn drain(shared: &Shared, told_at: Instant) {
    let grace_ends = told_at + shared.options.grace;
    if timeout_at(grace_ends, all_done(shared)).await.is_ok() {
        return;
    }
    let left = shared.held.attempts();
    tracing::info!(jobs = left.len(), "the grace period is over: what still runs is stopped and given back, uncharged");
    left.iter().for_each(|ctx| ctx.tell(Stop::Shutdown));
    // What is left then blocks its thread, or waits for a store that does not answer.
    let _given_back_by_the_keeper = timeout(WIND_UP, all_done(shared)).await;
}

async fn all_done(shared: &Shared) {
    loop {
        let freed = shared.freed.notified();
        tokio::pin!(freed);
        freed.as_mut().enable();
        if shared.in_flight() == 0 && shared.held.is_empty() {
            return;
        }
        // A lease that the keeper lets go of frees nothing: look again now and then.
        let _ = timeout(Duration::from_millis(50), freed).await;
    }
}
