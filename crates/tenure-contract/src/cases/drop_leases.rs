//! `drop` (of emptied leases) in every situation.

use tenure_core::How;
use tenure_store::lease::Ended;

use super::situation::{HELD, ROUNDS, SUCCESSOR_RUNS, SUCCESSOR_UNHARMED, both, story};
use crate::fixture::{Fixture, success};

/// Fresh: all its jobs have ended, in whatever way.
pub async fn an_emptied_lease_is_dropped(t: Fixture) {
    let script = "
        enqueue  J1  J2  J3  backoff=none
        claim    W1  J1 J2 J3  lease=L1
        complete W1  J1  lease=L1
        fail     W1  J2  lease=L1  -> retry
        release  W1  J3  lease=L1
        drop     W1  lease=L1  -> L1
        renew    W1  lease=L1  -> unknown
        claim    W1  J2 J3  lease=L2
        complete W1  J2 J3  lease=L2
        drop     W1  lease=L1,L2  -> L1 L2
    ";
    story(&t, &[script]).await;
}

/// Stale fence: the successor's lease is not the stale worker's to drop.
pub async fn a_stale_worker_cannot_drop_the_lease_of_its_successor(t: Fixture) {
    story(&t, &[SUCCESSOR_RUNS, "drop W1 lease=L1,L2 -> L1", SUCCESSOR_UNHARMED]).await;
}

/// Expired: dropped, it would never be taken back.
pub async fn a_lease_that_still_holds_a_job_is_not_dropped(t: Fixture) {
    let drop = "
        enqueue  J2
        claim    W1  J2  lease=L2
        complete W1  J2  lease=L2
        drop     W1  lease=L1  -> nothing
        advance  10m
        drop     W1  lease=L1,L2  -> L2
        show     J1  state=running  lease=L1
        reclaim  J1
        show     J1  state=queued
    ";
    story(&t, &[HELD, drop]).await;
}

/// Canceled: a job that was fenced no longer keeps the lease.
pub async fn a_lease_emptied_by_a_forced_cancel_is_dropped(t: Fixture) {
    let drop = "
        cancel   J1  -> requested
        drop     W1  lease=L1  -> nothing
        cancel   J1  force
        drop     W1  lease=L1  -> L1
        complete W1  J1  lease=L1  -> lease_lost:canceled
    ";
    story(&t, &[HELD, drop]).await;
}

/// Unknown id: what was never there is gone.
pub async fn an_unknown_lease_is_gone(t: Fixture) {
    story(&t, &[HELD, "drop W1 lease=unknown,L1 -> unknown\n show J1 state=running lease=L1"]).await;
}

/// Reply lost: the second answer says that it is gone, too.
pub async fn a_drop_sent_twice_answers_twice(t: Fixture) {
    let drop = "
        complete W1  J1  lease=L1
        drop     W1  lease=L1  -> L1
        drop     W1  lease=L1  -> L1
        complete W1  J1  lease=L1  -> before:succeeded
    ";
    story(&t, &[HELD, drop]).await;
}

/// Wrong tenant: the lease of another worker, emptied by an operator so that only its owner is left to drop it.
pub async fn a_worker_cannot_drop_the_lease_of_another(t: Fixture) {
    let drop = "
        cancel   J1  force
        drop     W2  lease=L1  -> nothing
        drop     W1  lease=L1  -> L1
    ";
    story(&t, &[HELD, drop]).await;
}

/// Concurrent twin: a drop that meets the last report does not take the lease from under it.
pub async fn a_drop_that_meets_the_last_report_loses_nothing(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        let (lease, _) = t.claim_one(worker).await;
        let (dropper, holder) = (t.store.clone(), t.clone());
        let (dropped, ended) =
            both(async move { dropper.drop_leases(worker, vec![lease]).await.expect("drop") }, async move {
                holder.end(worker, lease, job, success()).await
            })
            .await;
        assert_eq!(ended, Ended::Now(How::Succeeded), "{dropped:?}");
        let rest = t.store.drop_leases(worker, vec![lease]).await.expect("drop");
        assert_eq!(rest, [lease], "it is gone now");
    }
}
