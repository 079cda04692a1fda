//! `find_endings` in every situation.

use std::time::Duration;

use tenure_core::{How, JobId, Json, LeaseNo, WorkerId};
use tenure_store::StoreError;
use tenure_store::lease::{Ended, Ending, LEASE_JOBS_MAX};

use crate::fixture::{Fixture, cancel, success};

async fn find(t: &Fixture, worker: WorkerId, lease: LeaseNo, jobs: &[JobId]) -> Vec<Option<How>> {
    t.store.find_endings(worker, lease, jobs.to_vec()).await.expect("find endings")
}

/// Fresh: each job by itself, those that still run are `None`, and the order is the caller's.
pub async fn endings_are_found_in_the_order_asked(t: Fixture) {
    let worker = t.worker("one").await;
    let jobs = [t.enqueue().await, t.enqueue().await, t.enqueue().await];
    let lease = t.claim(worker, 3).await.expect("jobs are due").lease;
    assert_eq!(find(&t, worker, lease, &jobs).await, [None, None, None]);
    t.end(worker, lease, jobs[2], success()).await;
    let retry = Ending::Retry { delay: Duration::from_secs(9), error: Json::null() };
    t.end(worker, lease, jobs[0], retry).await;
    assert_eq!(find(&t, worker, lease, &jobs).await, [Some(How::Retry), None, Some(How::Succeeded)]);
    let turned: Vec<JobId> = jobs.into_iter().rev().collect();
    assert_eq!(find(&t, worker, lease, &turned).await, [Some(How::Succeeded), None, Some(How::Retry)]);
    // The answer outlives the lease.
    t.end(worker, lease, jobs[1], success()).await;
    t.store.drop_leases(worker, vec![lease]).await.expect("drop");
    assert_eq!(find(&t, worker, lease, &jobs[1..]).await, [Some(How::Succeeded), Some(How::Succeeded)]);
    assert_eq!(find(&t, worker, lease, &[]).await, []);
    let rows = t.journal().await.len();
    find(&t, worker, lease, &jobs).await;
    assert_eq!(t.journal().await.len(), rows, "looking is not written down");
}

/// Stale fence: its own grant was lost, whatever became of the successor's.
pub async fn a_stale_worker_finds_its_own_ending(t: Fixture) {
    let (one, two) = (t.worker("one").await, t.worker("two").await);
    let job = t.enqueue().await;
    let (lease, _) = t.claim_one(one).await;
    t.advance(Duration::from_secs(61));
    t.store.reclaim_jobs(None, 10).await.expect("reclaim");
    let (next, _) = t.claim_one(two).await;
    assert_eq!(find(&t, one, lease, &[job]).await, [Some(How::Lost)]);
    assert_eq!(find(&t, two, next, &[job]).await, [None]);
    assert_eq!(t.end(two, next, job, success()).await, Ended::Now(How::Succeeded));
    assert_eq!(find(&t, one, lease, &[job]).await, [Some(How::Lost)]);
    assert_eq!(find(&t, two, next, &[job]).await, [Some(How::Succeeded)]);
}

/// Expired: nothing has ended before somebody ends it.
pub async fn an_expired_lease_has_no_ending_before_it_is_reclaimed(t: Fixture) {
    let worker = t.worker("one").await;
    let job = t.enqueue().await;
    let (lease, _) = t.claim_one(worker).await;
    t.advance(Duration::from_secs(600));
    assert_eq!(find(&t, worker, lease, &[job]).await, [None]);
    t.store.reclaim_jobs(None, 10).await.expect("reclaim");
    assert_eq!(find(&t, worker, lease, &[job]).await, [Some(How::Lost)]);
}

/// Canceled: fenced by force, that is how it ended.
pub async fn a_forced_cancel_is_found_as_the_ending(t: Fixture) {
    let worker = t.worker("one").await;
    let job = t.enqueue().await;
    let (lease, _) = t.claim_one(worker).await;
    t.store.cancel_job(cancel(job, false)).await.expect("cancel");
    assert_eq!(find(&t, worker, lease, &[job]).await, [None], "a request ends nothing");
    t.store.cancel_job(cancel(job, true)).await.expect("cancel");
    assert_eq!(find(&t, worker, lease, &[job]).await, [Some(How::Canceled)]);
}

/// Unknown id: nobody knows. More jobs than a lease lists are refused.
pub async fn an_unknown_job_or_lease_has_no_ending(t: Fixture) {
    let worker = t.worker("one").await;
    let job = t.enqueue().await;
    let (lease, _) = t.claim_one(worker).await;
    t.end(worker, lease, job, success()).await;
    assert_eq!(find(&t, worker, lease, &[t.new_id(), job]).await, [None, Some(How::Succeeded)]);
    assert_eq!(find(&t, worker, LeaseNo(lease.0 + 1_000), &[job]).await, [None]);
    let many = (0..=LEASE_JOBS_MAX).map(|_| t.new_id()).collect();
    let refused = t.store.find_endings(worker, lease, many).await;
    assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
}

/// Wrong tenant: another worker's lease is none of its business.
pub async fn a_worker_does_not_find_the_endings_of_another(t: Fixture) {
    let (one, two) = (t.worker("one").await, t.worker("two").await);
    let job = t.enqueue().await;
    let (lease, _) = t.claim_one(one).await;
    t.end(one, lease, job, success()).await;
    assert_eq!(find(&t, two, lease, &[job]).await, [None]);
    assert_eq!(find(&t, one, lease, &[job]).await, [Some(How::Succeeded)]);
}
