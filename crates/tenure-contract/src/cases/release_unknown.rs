//! `release_unknown` (what a lost claim reply left behind) in every situation.

use super::situation::{EXPIRED, HELD, ROUNDS, SUCCESSOR_RUNS, SUCCESSOR_UNHARMED, both, story};
use crate::fixture::{Fixture, cancel};
use tenure_core::LeaseNo;

/// Stale fence: what its successor holds is not the stale worker's to give back.
pub async fn a_stale_worker_gives_back_nothing_of_its_successor(t: Fixture) {
    story(&t, &[SUCCESSOR_RUNS, "release_unknown W1 -> nothing", SUCCESSOR_UNHARMED]).await;
}

/// Expired: given back, it is no loss.
pub async fn an_expired_unknown_claim_is_given_back_and_not_lost(t: Fixture) {
    let release = "
        release_unknown  W1  -> J1
        reclaim  -> nothing
        show     J1  state=queued  attempt=0  losses=0  attempts=released
    ";
    story(&t, &[EXPIRED, release]).await;
}

/// Canceled: a requested cancel wins over giving back.
pub async fn an_unknown_claim_with_a_requested_cancel_is_not_put_back(t: Fixture) {
    let worker = t.worker("one").await;
    let job = t.enqueue().await;
    t.claim_one(worker).await;
    t.store.cancel_job(cancel(job, false)).await.expect("cancel");
    t.store.release_unknown(worker, Vec::new(), LeaseNo::MAX).await.expect("release");
    assert_eq!(t.show(job).await.summary.state, tenure_core::State::Canceled);
    assert!(t.claim(worker, 10).await.is_none());
}

/// Late: a sweep that was sent before a claim and is applied after it leaves that claim alone.
pub async fn a_sweep_that_comes_late_leaves_the_next_claim_alone(t: Fixture) {
    let worker = t.worker("one").await;
    t.enqueue().await;
    let (lost, unheard) = t.claim_one(worker).await;
    let newest = t.store.newest_lease().await.expect("newest");
    assert_eq!(newest, lost);
    t.enqueue().await;
    let (lease, running) = t.claim_one(worker).await;
    assert_eq!(t.store.release_unknown(worker, Vec::new(), newest).await.expect("release"), [unheard]);
    assert_eq!(t.show(running).await.summary.state, tenure_core::State::Running);
    assert_eq!(t.store.newest_lease().await.expect("newest"), lease);
}

/// Unknown id: what a worker knows that is not there does not matter.
pub async fn a_worker_that_knows_all_its_leases_gives_back_nothing(t: Fixture) {
    let release = "
        release_unknown  W1  known=L1,unknown  -> nothing
        show     J1  state=running  lease=L1
        complete W1  J1  lease=L1
        release_unknown  W1  known=unknown  -> nothing
        show     J1  state=succeeded
    ";
    story(&t, &[HELD, release]).await;
}

/// Reply lost: given back once.
pub async fn an_unknown_claim_is_given_back_once(t: Fixture) {
    let release = "
        release_unknown  W1  -> J1
        release_unknown  W1  -> nothing
        show     J1  state=queued  attempts=released
        claim    W2  J1  limit=10  lease=L2  attempt=1
        release_unknown  W1  -> nothing
        complete W2  J1  lease=L2
        journal  J1  claimed:L1  released:L1  claimed:L2  succeeded:L2
    ";
    story(&t, &[HELD, release]).await;
}

/// Wrong tenant: the leases of another worker.
pub async fn a_worker_gives_back_nothing_of_another(t: Fixture) {
    let release = "
        release_unknown  W2  -> nothing
        show     J1  state=running  lease=L1  holder=W1
        complete W1  J1  lease=L1
    ";
    story(&t, &[HELD, release]).await;
}

/// A lease that is half done: only what has not ended is given back.
pub async fn an_unknown_claim_gives_back_what_has_not_ended(t: Fixture) {
    let script = "
        enqueue  J1  J2
        claim    W1  J1 J2  lease=L1
        complete W1  J1  lease=L1
        release_unknown  W1  -> J2
        show     J1  state=succeeded
        show     J2  state=queued
    ";
    story(&t, &[script]).await;
}

/// Concurrent twin.
pub async fn concurrent_releases_give_back_each_job_once(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        t.claim_one(worker).await;
        let (first, second) = (t.store.clone(), t.store.clone());
        let (a, b) = both(
            async move { first.release_unknown(worker, Vec::new(), LeaseNo::MAX).await.expect("release") },
            async move { second.release_unknown(worker, Vec::new(), LeaseNo::MAX).await.expect("release") },
        )
        .await;
        assert_eq!([a, b].concat(), [job]);
        assert_eq!(t.show(job).await.attempts.len(), 1);
        t.claim_one(worker).await;
        assert!(t.claim(worker, 10).await.is_none(), "it was put back twice");
        t.store.cancel_job(cancel(job, true)).await.expect("cancel");
    }
}
