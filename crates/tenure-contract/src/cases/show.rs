//! `show` in every situation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tenure_core::{How, JobId, State};
use tenure_store::lease::Ended;

use super::situation::{EXPIRED, ROUNDS, SUCCESSOR_RUNS, SUCCESSOR_UNHARMED, story};
use crate::fixture::{Fixture, success};

/// Fresh: a job that nobody touched.
pub async fn a_new_job_is_shown_as_queued(t: Fixture) {
    let script = "
        enqueue  J1  delay=10s  priority=1  queue=mail  kind=send  tenant=acme
        show     J1  state=queued  attempt=0  losses=0  run_at=+10s  created_at=+0s  priority=1
        show     J1  queue=mail  kind=send  tenant=acme  lease=none  holder=none  expires_at=none  error=none
        show     J1  cancel_requested=false  finished_at=none  attempts=none  max_attempts=5  max_losses=8
    ";
    story(&t, &[script]).await;
}

/// Stale fence: who looks sees the successor, and the attempt that was lost.
pub async fn a_shown_job_names_the_successor(t: Fixture) {
    let show = "show J1 state=running lease=L2 holder=W2 attempt=1 losses=1 attempts=lost worker=W1";
    story(&t, &[SUCCESSOR_RUNS, show, SUCCESSOR_UNHARMED]).await;
}

/// Expired: it runs, and its deadline is seen to be over.
pub async fn a_job_under_an_expired_lease_is_shown_as_running(t: Fixture) {
    story(&t, &[EXPIRED, "show J1 state=running lease=L1 holder=W1 expires_at=-9m attempts=none"]).await;
}

/// Canceled: when, and after how many attempts.
pub async fn a_canceled_job_is_shown_with_its_end(t: Fixture) {
    let script = "
        enqueue  J1
        claim    W1  J1  lease=L1
        advance  5s
        cancel   J1  force
        advance  5s
        show     J1  state=canceled  attempt=1  finished_at=-5s  attempts=canceled  started_at=-10s  ended_at=-5s
        show     J1  lease=none  holder=none  expires_at=none
    ";
    story(&t, &[script]).await;
}

/// Unknown id.
pub async fn an_unknown_job_cannot_be_shown(t: Fixture) {
    story(&t, &["enqueue J1\n show J9 -> not_found"]).await;
}

/// Reply lost: looking changes nothing.
pub async fn a_job_shown_twice_is_the_same(t: Fixture) {
    let job = t.enqueue().await;
    let worker = t.worker("one").await;
    t.claim_one(worker).await;
    assert_eq!(t.show(job).await, t.show(job).await);
    assert_eq!(t.journal().await.len(), 1);
}

/// Wrong tenant: there is no such job.
pub async fn a_job_of_another_tenant_cannot_be_shown(t: Fixture) {
    let script = "
        enqueue  J1  tenant=acme
        show     J1  sight=zoo  -> not_found
        list     sight=zoo  -> nothing
        show     J1  sight=acme  state=queued
    ";
    story(&t, &[script]).await;
}

/// Concurrent twin: whoever looks while a job moves sees it before or after, never in between.
pub async fn a_job_shown_while_it_moves_is_never_between_states(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        let over = Arc::new(AtomicBool::new(false));
        let watcher = tokio::spawn(watch(t.clone(), job, over.clone()));
        let (lease, _) = t.claim_one(worker).await;
        assert_eq!(t.end(worker, lease, job, success()).await, Ended::Now(How::Succeeded));
        over.store(true, Ordering::SeqCst);
        watcher.await.expect("the watcher");
    }
}

async fn watch(t: Fixture, job: JobId, over: Arc<AtomicBool>) {
    let mut last = State::Queued;
    loop {
        let done = over.load(Ordering::SeqCst);
        let record = t.show(job).await;
        let state = record.summary.state;
        assert_eq!(record.lease.is_some(), state == State::Running, "{record:?}");
        assert_eq!(record.summary.finished_at.is_some(), state.is_terminal(), "{record:?}");
        assert!(last <= state, "{last:?} came after {state:?}");
        last = state;
        if done {
            assert_eq!(state, State::Succeeded);
            return;
        }
        tokio::task::yield_now().await;
    }
}
