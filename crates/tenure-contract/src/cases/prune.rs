//! `prune` in every situation.

use std::time::Duration;

use tenure_core::{How, State};
use tenure_store::StoreError;
use tenure_store::lease::Ended;
use tenure_store::operate::PruneJobs;
use tenure_store::record::Sight;

use super::situation::{EXPIRED, ROUNDS, SUCCESSOR_RUNS, SUCCESSOR_UNHARMED, both, story};
use crate::fixture::{Fixture, cancel, requeue, success};

/// Stale fence: a job that runs again has not ended, whatever its old attempts say.
pub async fn a_job_that_its_successor_runs_is_not_pruned(t: Fixture) {
    story(&t, &[SUCCESSOR_RUNS, "prune dead -> 0", SUCCESSOR_UNHARMED]).await;
}

/// Expired: a job that nobody took back has not ended.
pub async fn a_job_under_an_expired_lease_is_not_pruned(t: Fixture) {
    story(&t, &[EXPIRED, "advance 30d\n prune dead -> 0\n show J1 state=running\n complete W1 J1 lease=L1"]).await;
}

/// Canceled: it goes when it is old enough.
pub async fn a_canceled_job_is_pruned_when_it_is_old(t: Fixture) {
    let script = "
        enqueue  J1  J2
        claim    W1  J1  lease=L1
        cancel   J1  -> requested
        acknowledge W1  J1  lease=L1
        drop     W1  lease=L1
        cancel   J2
        advance  1h
        prune    older_than=2h  -> 0
        advance  1h
        prune    older_than=2h  -> 2
        show     J1  -> not_found
        show     J2  -> not_found
    ";
    story(&t, &[script]).await;
}

/// Reply lost: what is gone is not counted again.
pub async fn a_prune_sent_twice_counts_once(t: Fixture) {
    let script = "
        enqueue  J1
        cancel   J1
        advance  1h
        prune    older_than=1m  -> 1
        prune    older_than=1m  -> 0
        journal  J1  canceled  pruned
    ";
    story(&t, &[script]).await;
}

/// Concurrent twin: together they delete each job once.
pub async fn concurrent_prunes_delete_each_job_once(t: Fixture) {
    for _ in 0..ROUNDS {
        for _ in 0..5 {
            let job = t.enqueue().await;
            t.store.cancel_job(cancel(job, false)).await.expect("cancel");
        }
        t.advance(Duration::from_secs(10));
        let (first, second) = (t.store.clone(), t.store.clone());
        let (a, b) = both(async move { first.prune_jobs(prune()).await.expect("prune") }, async move {
            second.prune_jobs(prune()).await.expect("prune")
        })
        .await;
        let rest = t.store.prune_jobs(prune()).await.expect("prune");
        assert_eq!(a + b + rest, 5, "{a} {b} {rest}");
    }
}

/// Concurrent twin: a job is revived or deleted, never half of each.
pub async fn a_requeue_and_a_prune_cannot_both_win(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        t.store.cancel_job(cancel(job, false)).await.expect("cancel");
        t.advance(Duration::from_secs(10));
        let (operator, pruner) = (t.store.clone(), t.store.clone());
        let (requeued, pruned) = both(async move { operator.requeue_job(requeue(job)).await }, async move {
            pruner.prune_jobs(prune()).await.expect("prune")
        })
        .await;
        match (requeued, pruned) {
            (Ok(()), 0) => {
                assert_eq!(t.show(job).await.summary.state, State::Queued);
                let (lease, claimed) = t.claim_one(worker).await;
                assert_eq!(claimed, job);
                assert_eq!(t.end(worker, lease, job, success()).await, Ended::Now(How::Succeeded));
                t.store.drop_leases(worker, vec![lease]).await.expect("drop");
                t.advance(Duration::from_secs(10));
                assert_eq!(t.store.prune_jobs(prune()).await.expect("prune"), 1);
            }
            // A requeue that waited for the prune may find no job, or no ending to reopen.
            (Err(StoreError::NotFound(_) | StoreError::Conflict(_)), 1) => {
                let shown = t.store.show_job(&Sight::All, job).await;
                assert!(matches!(shown, Err(StoreError::NotFound(_))), "{shown:?}");
                assert!(t.claim(worker, 10).await.is_none(), "a pruned job was handed out");
            }
            other => panic!("{other:?}"),
        }
    }
}

fn prune() -> PruneJobs {
    PruneJobs { older_than: Duration::from_secs(5), dead_too: false, limit: 100 }
}
