//! `cancel force` in every situation.

use tenure_core::{How, State};
use tenure_store::StoreError;
use tenure_store::lease::Ended;
use tenure_store::operate::Canceled;

use super::situation::{EXPIRED, ROUNDS, SUCCESSOR_RUNS, both, story};
use crate::fixture::{Fixture, cancel, success};

/// Stale fence: it is the successor who is fenced.
pub async fn a_forced_cancel_fences_the_successor(t: Fixture) {
    let cancel = "
        cancel   J1  force
        complete W1  J1  lease=L1  -> lease_lost:lost
        complete W2  J1  lease=L2  -> lease_lost:canceled
        show     J1  state=canceled  attempts=lost,canceled
        drop     W2  lease=L2
    ";
    story(&t, &[SUCCESSOR_RUNS, cancel]).await;
}

/// Expired: the reclaim finds nothing to take back.
pub async fn a_forced_cancel_leaves_an_expired_lease_nothing_to_return(t: Fixture) {
    let cancel = "
        cancel   J1  force
        reclaim  -> nothing
        show     J1  state=canceled  attempts=canceled
        claim    W2  -> nothing
    ";
    story(&t, &[EXPIRED, cancel]).await;
}

/// Canceled: it was done before.
pub async fn a_canceled_job_cannot_be_fenced_again(t: Fixture) {
    let script = "
        enqueue  J1
        cancel   J1
        cancel   J1  force  -> before
        show     J1  attempts=canceled
        journal  J1  canceled
    ";
    story(&t, &[script]).await;
}

/// Unknown id.
pub async fn an_unknown_job_cannot_be_fenced(t: Fixture) {
    story(&t, &["cancel J9 force -> not_found"]).await;
}

/// Reply lost.
pub async fn a_forced_cancel_sent_twice_is_written_once(t: Fixture) {
    let script = "
        enqueue  J1
        claim    W1  J1  lease=L1
        cancel   J1  force  -> canceled
        cancel   J1  force  -> before
        show     J1  attempts=canceled
        journal  J1  claimed:L1  canceled:L1
    ";
    story(&t, &[script]).await;
}

/// Wrong tenant: there is no such job.
pub async fn a_job_of_another_tenant_cannot_be_fenced(t: Fixture) {
    let script = "
        enqueue  J1  tenant=acme
        claim    W1  J1  lease=L1
        cancel   J1  force  sight=zoo  -> not_found
        show     J1  state=running  lease=L1
        complete W1  J1  lease=L1
    ";
    story(&t, &[script]).await;
}

/// Concurrent twin: a forced cancel and a completion meet on the same grant.
pub async fn a_forced_cancel_and_a_completion_cannot_both_win(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        let (lease, _) = t.claim_one(worker).await;
        let (operator, holder) = (t.store.clone(), t.clone());
        let (canceled, ended) = both(async move { operator.cancel_job(cancel(job, true)).await }, async move {
            holder.end(worker, lease, job, success()).await
        })
        .await;
        let record = t.show(job).await;
        match (canceled, ended) {
            (Ok(Canceled::Now), Ended::LeaseLost { how: Some(How::Canceled) }) => {
                assert_eq!(record.summary.state, State::Canceled);
            }
            (Err(StoreError::Conflict(_)), Ended::Now(How::Succeeded)) => {
                assert_eq!(record.summary.state, State::Succeeded);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(record.attempts.len(), 1);
    }
}
