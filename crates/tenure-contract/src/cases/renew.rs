//! `renew` in every situation.

use std::time::Duration;

use tenure_core::State;
use tenure_store::lease::RenewLeases;

use super::situation::{EXPIRED, HELD, ROUNDS, SUCCESSOR_RUNS, SUCCESSOR_UNHARMED, both, story};
use crate::fixture::{Fixture, cancel};

/// Fresh: the deadline moves.
pub async fn a_renewal_pushes_the_deadline_out(t: Fixture) {
    let renew = "
        advance  30s
        show     J1  expires_at=+30s  heartbeat_at=-30s
        renew    W1  lease=L1
        show     J1  state=running  expires_at=+60s  heartbeat_at=+0s  attempt=1
        advance  59s
        reclaim  -> nothing
        complete W1  J1  lease=L1
    ";
    story(&t, &[HELD, renew]).await;
}

/// Stale fence: neither its own old lease nor the successor's.
pub async fn a_stale_worker_cannot_renew_while_its_successor_runs(t: Fixture) {
    let renew = "
        renew    W1  lease=L1  -> unknown
        advance  30s
        renew    W1  lease=L1,L2  -> unknown
        show     J1  expires_at=+30s
        renew    W2  lease=L1,L2  -> L2
    ";
    story(&t, &[SUCCESSOR_RUNS, renew, SUCCESSOR_UNHARMED]).await;
}

/// Expired: still its holder's until somebody takes it back.
pub async fn an_expired_lease_can_be_renewed_until_it_is_reclaimed(t: Fixture) {
    let renew = "
        renew    W1  lease=L1
        show     J1  state=running  lease=L1  expires_at=+60s
        reclaim  -> nothing
        expire   J1
        reclaim  J1
        renew    W1  lease=L1  -> unknown
    ";
    story(&t, &[EXPIRED, renew]).await;
}

/// Canceled: every renewal tells of the request until the job ended.
pub async fn every_renewal_tells_of_a_requested_cancel(t: Fixture) {
    let renew = "
        enqueue  J2
        claim    W1  J2  lease=L2
        cancel   J1  -> requested
        renew    W1  lease=L1,L2  -> cancel_requested J1
        renew    W1  lease=L2
        renew    W1  lease=L1  -> cancel_requested J1
        acknowledge W1  J1  lease=L1
        renew    W1  lease=L2
        complete W1  J2  lease=L2
    ";
    story(&t, &[HELD, renew]).await;
}

/// Unknown id: it does not come back in the answer.
pub async fn an_unknown_lease_is_not_renewed(t: Fixture) {
    let renew = "
        renew    W1  lease=unknown  -> unknown
        renew    W1  lease=L1,unknown  -> L1
        complete W1  J1  lease=L1
    ";
    story(&t, &[HELD, renew]).await;
}

/// Reply lost: the second one pushes the deadline out again, that is all.
pub async fn a_renewal_sent_twice_is_renewed_twice(t: Fixture) {
    let renew = "
        renew    W1  lease=L1
        renew    W1  lease=L1
        show     J1  state=running  expires_at=+60s  lease=L1  attempt=1
        complete W1  J1  lease=L1
        journal  J1  claimed:L1  succeeded:L1
    ";
    story(&t, &[HELD, renew]).await;
}

/// Wrong tenant: the lease of another worker.
pub async fn a_worker_cannot_renew_the_lease_of_another(t: Fixture) {
    let renew = "
        advance  30s
        renew    W2  lease=L1  -> unknown
        show     J1  expires_at=+30s  holder=W1
        advance  31s
        reclaim  J1
    ";
    story(&t, &[HELD, renew]).await;
}

/// Concurrent twin: a lease that is over is renewed or taken back, never both.
pub async fn a_renewal_and_a_reclaim_cannot_both_win(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        let (lease, _) = t.claim_one(worker).await;
        t.advance(Duration::from_secs(61));
        let (renewer, reclaimer) = (t.store.clone(), t.store.clone());
        let request = RenewLeases { worker, leases: vec![lease] };
        let (renewed, reclaimed) =
            both(async move { renewer.renew_leases(request).await.expect("renew") }, async move {
                reclaimer.reclaim_jobs(None, 10).await.expect("reclaim")
            })
            .await;
        let state = t.show(job).await.summary.state;
        match (renewed.leases.len(), reclaimed.len()) {
            (1, 0) => assert_eq!(state, State::Running),
            (0, 1) => assert_eq!(state, State::Queued),
            // Each stepped aside for the other: the lease is still there, expired.
            (0, 0) => assert_eq!(state, State::Running),
            _ => panic!("{renewed:?} {reclaimed:?}"),
        }
        t.store.cancel_job(cancel(job, true)).await.expect("cancel");
    }
}

/// Concurrent twin: of two renewals at the same moment at least one is accepted, and none harms the other.
pub async fn concurrent_renewals_leave_a_good_lease(t: Fixture) {
    let worker = t.worker("one").await;
    let job = t.enqueue().await;
    let (lease, _) = t.claim_one(worker).await;
    for _ in 0..ROUNDS {
        t.advance(Duration::from_secs(30));
        let (first, second) = (t.store.clone(), t.store.clone());
        let request = RenewLeases { worker, leases: vec![lease] };
        let again = request.clone();
        let (a, b) = both(async move { first.renew_leases(request).await.expect("renew") }, async move {
            second.renew_leases(again).await.expect("renew")
        })
        .await;
        assert!(!a.leases.is_empty() || !b.leases.is_empty(), "nobody renewed it");
        let expires_at = t.show(job).await.lease_expires_at;
        assert_eq!(expires_at, Some(t.clock.now().plus(Duration::from_secs(60))));
    }
}
