//! Reports of several leases in one call.

use std::time::Duration;

use tenure_core::{How, JobId, LeaseNo, State, WorkerId};
use tenure_store::lease::{EndJob, EndJobs, Ended, Ending};

use crate::fixture::{Fixture, success};

/// A stale one, one that names a job of another lease and one that is repeated change nothing for the others, and the
/// order of the answers is that of the requests.
pub async fn leases_reported_together_are_answered_each_by_itself(t: Fixture) {
    for _ in 0..6 {
        t.enqueue().await;
    }
    let worker = t.worker("one").await;
    let stale = t.claim_one(worker).await;
    t.advance(Duration::from_secs(61));
    t.store.reclaim_jobs(None, 10).await.expect("reclaim");
    let (_, again) = (t.advance(Duration::from_secs(3_600)), t.claim(worker, 6).await.expect("due jobs"));
    let first = again.lease;
    let jobs: Vec<JobId> = again.jobs.iter().map(|job| job.id).collect();
    let other = t.enqueue().await;
    let (second, taken) = t.claim_one(worker).await;
    assert_eq!(taken, other);

    let requests =
        vec![end(worker, second, &[other, jobs[4]]), end(worker, stale.0, &[stale.1]), end(worker, first, &jobs[..3])];
    let now = Ended::Now(How::Succeeded);
    let lost = Ended::LeaseLost { how: None };
    let answers = t.store.end_leases(requests.clone()).await.expect("end leases");
    let expected = [vec![now, lost], vec![Ended::LeaseLost { how: Some(How::Lost) }], vec![now; 3]];
    assert_eq!(answers, expected);
    let before = Ended::Before(How::Succeeded);
    let repeated = t.store.end_leases(requests).await.expect("the same again");
    assert_eq!((&repeated[0][0], &repeated[2]), (&before, &vec![before; 3]));
    for job in &jobs[..3] {
        assert_eq!(t.show(*job).await.summary.state, State::Succeeded);
    }
    assert_eq!(t.show(jobs[4]).await.summary.state, State::Running);
}

/// One lease in several requests, and one attempt in two of them: it ends once, and the second is told.
pub async fn a_lease_may_be_reported_in_parts_together(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..3 {
        t.enqueue().await;
    }
    let claimed = t.claim(worker, 3).await.expect("due jobs");
    let jobs: Vec<JobId> = claimed.jobs.iter().map(|job| job.id).collect();
    let parts = [&jobs[..1], &jobs[1..], &jobs[..2]].map(|jobs| end(worker, claimed.lease, jobs));
    let answers = t.store.end_leases(parts.to_vec()).await.expect("end leases");
    let (now, before) = (Ended::Now(How::Succeeded), Ended::Before(How::Succeeded));
    assert_eq!(answers, [vec![now], vec![now; 2], vec![before; 2]]);
}

/// Successes and failures of many leases, some ended whole: leases that are emptied so are gone.
pub async fn leases_reported_together_may_end_differently(t: Fixture) {
    let worker = t.worker("one").await;
    let mut requests = Vec::new();
    for _ in 0..3 {
        t.enqueue().await;
        let (lease, job) = t.claim_one(worker).await;
        requests.push(end(worker, lease, &[job]));
    }
    requests[1].jobs[0].ending = Ending::Snoozed { delay: Duration::from_secs(5) };
    let answers = t.store.end_leases(requests.clone()).await.expect("end leases").concat();
    let (done, later) = (Ended::Now(How::Succeeded), Ended::Now(How::Snoozed));
    assert_eq!(answers, [done, later, done]);
    let leases = requests.iter().map(|request| request.lease).collect();
    assert_eq!(
        t.store.release_unknown(worker, Vec::new(), LeaseNo::MAX).await.expect("release"),
        [],
        "no lease is left"
    );
    assert_eq!(t.store.drop_leases(worker, leases).await.expect("drop").len(), 3, "all are gone");
    assert!(t.store.end_leases(Vec::new()).await.expect("nothing to end").is_empty());
}

/// Each under the lease of its own worker.
pub async fn leases_of_two_workers_may_be_reported_together(t: Fixture) {
    let mut requests = Vec::new();
    for name in ["one", "two"] {
        t.enqueue().await;
        let worker = t.worker(name).await;
        let (lease, job) = t.claim_one(worker).await;
        requests.push(end(worker, lease, &[job]));
    }
    let answers = t.store.end_leases(requests).await.expect("end leases").concat();
    assert_eq!(answers, [Ended::Now(How::Succeeded); 2]);
}

fn end(worker: WorkerId, lease: LeaseNo, jobs: &[JobId]) -> EndJobs {
    EndJobs { worker, lease, jobs: jobs.iter().map(|job| EndJob::new(*job, success())).collect() }
}
