//! `reclaim` in every situation.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::{How, JobId, NewJob, Rules};
use tenure_store::lease::Reclaimed;

use super::situation::{EXPIRED, ROUNDS, SUCCESSOR_RUNS, SUCCESSOR_UNHARMED, both, story};
use crate::fixture::{Fixture, cancel};

/// Stale fence: what the stale worker lost is not lost again while its successor runs.
pub async fn a_reclaim_does_not_touch_the_successor(t: Fixture) {
    story(&t, &[SUCCESSOR_RUNS, "reclaim -> nothing", SUCCESSOR_UNHARMED]).await;
}

/// Expired: the job is queued again, and the answer names who lost it.
pub async fn an_expired_lease_is_taken_back_and_its_holder_named(t: Fixture) {
    let worker = t.worker("host-7").await;
    let job = t.enqueue().await;
    let (lease, _) = t.claim_one(worker).await;
    t.advance(Duration::from_secs(61));
    let reclaimed = t.store.reclaim_jobs(None, 10).await.expect("reclaim");
    let Reclaimed { worker: name, .. } = &reclaimed[0];
    assert_eq!(name.as_ref().map(|name| name.as_str()), Some("host-7"));
    assert_eq!(reclaimed, [Reclaimed { job, lease, worker: name.clone(), how: How::Lost }]);
    let record = t.show(job).await;
    let lost = &record.attempts[0];
    assert_eq!((lost.how, lost.attempt, lost.lease, lost.worker.as_deref()), (How::Lost, 1, lease, Some("host-7")));
    assert_eq!((record.summary.attempt, record.losses, record.summary.run_at), (0, 1, t.clock.now()));
}

/// Every attempt that a reclaim ends has the same error on every store: of a job that runs again, of one that is dead, and
/// of one whose cancel was requested.
pub async fn an_attempt_whose_lease_expired_says_so_in_its_error(t: Fixture) {
    let worker = t.worker("host-7").await;
    let fragile = NewJob { rules: Rules { max_losses: 1, ..Rules::default() }, ..t.new_job() };
    let (again, dead, canceled) = (t.enqueue().await, fragile.id, t.enqueue().await);
    t.store.enqueue_jobs(vec![fragile]).await.expect("enqueue");
    let claimed = t.claim(worker, 3).await.expect("jobs are due");
    t.store.cancel_job(cancel(canceled, false)).await.expect("request a cancel");
    t.advance(Duration::from_secs(61));
    t.store.reclaim_jobs(None, 10).await.expect("reclaim");
    let message = format!("lease {} of worker host-7 expired without a report", claimed.lease);
    for (job, how) in [(again, How::Lost), (dead, How::Dead), (canceled, How::Canceled)] {
        let [attempt] = &t.show(job).await.attempts[..] else { panic!("{how:?} has one attempt") };
        let error = attempt.error.as_ref().map(|error| serde_json::from_str::<Value>(error.as_str()));
        let error = error.expect("the attempt has an error").expect("the error is JSON");
        assert_eq!((attempt.how, error), (how, json!({ "code": "lease_lost", "message": message })));
    }
}

/// Reply lost: the second one finds nothing.
pub async fn a_reclaim_sent_twice_takes_back_once(t: Fixture) {
    let reclaim = "
        reclaim  J1
        reclaim  -> nothing
        show     J1  state=queued  losses=1  attempts=lost
        claim    W2  J1  limit=10  lease=L2
        complete W2  J1  lease=L2
        journal  J1  claimed:L1  lost:L1  claimed:L2  succeeded:L2
    ";
    story(&t, &[EXPIRED, reclaim]).await;
}

/// Wrong tenant: every worker takes back what any worker of any queue and tenant lost.
pub async fn a_reclaim_serves_every_worker_queue_and_tenant(t: Fixture) {
    let script = "
        enqueue  J1  tenant=acme
        enqueue  J2  tenant=zoo  queue=mail
        claim    W1  J1  lease=L1
        claim    W2  J2  queue=mail  lease=L2
        advance  61s
        reclaim  by=W3  J1 J2
        show     J1  state=queued
        show     J2  state=queued
    ";
    story(&t, &[script]).await;
}

/// Concurrent twin: each expired lease is taken back by one of them.
pub async fn concurrent_reclaims_take_back_each_job_once(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        let mut jobs: HashSet<JobId> = HashSet::new();
        for _ in 0..6 {
            jobs.insert(t.enqueue().await);
        }
        for _ in 0..3 {
            t.claim(worker, 2).await.expect("jobs are due");
        }
        t.advance(Duration::from_secs(61));
        let (first, second) = (t.store.clone(), t.store.clone());
        let (a, b) = both(async move { first.reclaim_jobs(None, 10).await.expect("reclaim") }, async move {
            second.reclaim_jobs(None, 10).await.expect("reclaim")
        })
        .await;
        let all: Vec<JobId> = a.iter().chain(&b).map(|lost| lost.job).collect();
        assert_eq!((all.len(), all.into_iter().collect::<HashSet<_>>()), (6, jobs.clone()));
        for job in jobs {
            assert_eq!(t.show(job).await.losses, 1);
            t.store.cancel_job(cancel(job, false)).await.expect("cancel");
        }
    }
}
