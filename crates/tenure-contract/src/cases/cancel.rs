//! `cancel` in every situation.

use std::time::Duration;

use tenure_core::{How, JobId, Json, State};
use tenure_store::lease::{Ended, Ending};
use tenure_store::operate::Canceled;

use super::situation::{EXPIRED, ROUNDS, SUCCESSOR_RUNS, both, story};
use crate::fixture::{Fixture, cancel};

/// Fresh: a holder that asks hears of requests for what it holds, and of nothing else.
pub async fn cancel_requests_are_found_by_job(t: Fixture) {
    let worker = t.worker("one").await;
    let jobs = [t.enqueue().await, t.enqueue().await, t.enqueue().await];
    t.claim(worker, 2).await.expect("jobs are due");
    let asked = async |jobs: &[JobId]| t.store.find_cancel_requests(jobs.to_vec()).await.expect("find");
    assert_eq!(asked(&jobs).await, []);
    assert_eq!(t.store.cancel_job(cancel(jobs[1], false)).await.expect("cancel"), Canceled::Requested);
    // One that waits is canceled at once: nobody has to be asked.
    assert_eq!(t.store.cancel_job(cancel(jobs[2], false)).await.expect("cancel"), Canceled::Now);
    assert_eq!(asked(&jobs).await, [jobs[1]]);
    assert_eq!(asked(&[jobs[0], t.new_id()]).await, []);
    assert_eq!(asked(&[]).await, []);
}

/// Stale fence: the request is the successor's to meet.
pub async fn a_cancel_request_is_the_successors_to_meet(t: Fixture) {
    let cancel = "
        cancel   J1  -> requested
        renew    W1  lease=L1  -> unknown
        acknowledge W1  J1  lease=L1  -> lease_lost:lost
        show     J1  state=running  lease=L2  cancel_requested=true
        renew    W2  lease=L2  -> cancel_requested J1
        acknowledge W2  J1  lease=L2
        show     J1  state=canceled  attempts=lost,canceled
    ";
    story(&t, &[SUCCESSOR_RUNS, cancel]).await;
}

/// Expired: still running, so still a request; the reclaim meets it.
pub async fn a_job_under_an_expired_lease_is_canceled_by_request(t: Fixture) {
    let cancel = "
        cancel   J1  -> requested
        show     J1  state=running  cancel_requested=true
        reclaim  J1:canceled
        show     J1  state=canceled
        claim    W2  -> nothing
    ";
    story(&t, &[EXPIRED, cancel]).await;
}

/// Canceled: it was done before.
pub async fn a_canceled_job_was_canceled_before(t: Fixture) {
    story(&t, &["enqueue J1\n cancel J1\n cancel J1 -> before\n journal J1 canceled"]).await;
}

/// Unknown id.
pub async fn an_unknown_job_cannot_be_canceled(t: Fixture) {
    story(&t, &["cancel J9 -> not_found\n show J9 -> not_found"]).await;
}

/// Reply lost: the second answer says what the first did, and the record has one row.
pub async fn a_cancel_sent_twice_is_written_once(t: Fixture) {
    let script = "
        enqueue  J1  J2
        cancel   J1  -> canceled
        cancel   J1  -> before
        claim    W1  J2  lease=L1
        cancel   J2  -> requested
        cancel   J2  -> requested
        acknowledge W1  J2  lease=L1
        cancel   J2  -> before
        journal  J1  canceled
        journal  J2  claimed:L1  cancel_requested  canceled:L1
    ";
    story(&t, &[script]).await;
}

/// Wrong tenant: there is no such job.
pub async fn a_job_of_another_tenant_cannot_be_canceled(t: Fixture) {
    let script = "
        enqueue  J1  J2  tenant=acme
        claim    W1  J1  lease=L1
        cancel   J1  sight=zoo  -> not_found
        cancel   J2  sight=zoo  -> not_found
        show     J1  state=running  cancel_requested=false
        show     J2  state=queued
        renew    W1  lease=L1
        complete W1  J1  lease=L1
    ";
    story(&t, &[script]).await;
}

/// Concurrent twin.
pub async fn of_two_cancels_one_ends_the_job(t: Fixture) {
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        let (first, second) = (t.store.clone(), t.store.clone());
        let answers = both(async move { first.cancel_job(cancel(job, false)).await.expect("cancel") }, async move {
            second.cancel_job(cancel(job, false)).await.expect("cancel")
        })
        .await;
        let won = [(Canceled::Now, Canceled::Before), (Canceled::Before, Canceled::Now)];
        assert!(won.contains(&answers), "{answers:?}");
        let record = t.show(job).await;
        assert_eq!((record.summary.state, record.attempts.len()), (State::Canceled, 1));
    }
}

/// ATTACK S10: a cancel and a retry pass each other. Whichever came first, nobody gets the job again.
pub async fn a_cancel_that_passes_a_retry_still_ends_the_job(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        let (lease, _) = t.claim_one(worker).await;
        let (operator, holder) = (t.store.clone(), t.clone());
        let retry = Ending::Retry { delay: Duration::ZERO, error: Json::null() };
        let (canceled, ended) =
            both(async move { operator.cancel_job(cancel(job, false)).await.expect("cancel") }, async move {
                holder.end(worker, lease, job, retry).await
            })
            .await;
        assert!(matches!(ended, Ended::Now(How::Retry | How::Canceled)), "{ended:?}");
        let claimed = t.claim(worker, 10).await;
        assert!(claimed.is_none_or(|claimed| claimed.jobs.is_empty()), "it was handed out after {canceled:?}");
        assert_eq!(t.show(job).await.summary.state, State::Canceled, "after {canceled:?} and {ended:?}");
    }
}

/// A cancel meets the claim of its job: it is canceled, or its holder is asked.
pub async fn a_cancel_that_meets_a_claim_is_never_forgotten(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        let (operator, claimer) = (t.store.clone(), t.clone());
        let (canceled, claimed) =
            both(async move { operator.cancel_job(cancel(job, false)).await.expect("cancel") }, async move {
                claimer.claim(worker, 1).await
            })
            .await;
        let handed_out = claimed.as_ref().is_some_and(|claimed| !claimed.jobs.is_empty());
        let record = t.show(job).await;
        match (canceled, handed_out) {
            (Canceled::Now, false) => assert_eq!(record.summary.state, State::Canceled),
            (Canceled::Requested, true) => {
                assert!(record.cancel_requested);
                let lease = record.lease.expect("it runs");
                let answer = t.end(worker, lease, job, Ending::Snoozed { delay: Duration::ZERO }).await;
                assert_eq!(answer, Ended::Now(How::Canceled));
            }
            other => panic!("{other:?}"),
        }
    }
}
