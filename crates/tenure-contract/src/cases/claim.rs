//! `claim` in every situation.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::json::PAYLOAD_BYTES_MAX;
use tenure_core::{JobId, Json, LeaseNo, Rules};
use tenure_store::lease::CLAIM_KIB_MAX;
use tokio::sync::Barrier;

use super::situation::{EXPIRED, ROUNDS, SUCCESSOR_RUNS, SUCCESSOR_UNHARMED, story};
use crate::fixture::{Fixture, START, success};

/// Fresh: a claimed job brings all that its handler needs.
pub async fn a_claim_hands_out_a_due_job_with_all_it_needs(t: Fixture) {
    let job = t.enqueue().await;
    let worker = t.worker("one").await;
    t.advance(Duration::from_secs(5));
    let claimed = t.claim(worker, 10).await.expect("a job is due");
    assert_eq!((claimed.ttl, claimed.canceled.len(), claimed.jobs.len()), (Duration::from_secs(60), 0, 1));
    let got = &claimed.jobs[0];
    assert_eq!((got.id, got.attempt, got.losses), (job, 1, 0));
    assert_eq!((got.kind.as_str(), got.tenant.as_str(), got.payload.as_str()), ("noop", "default", "null"));
    assert_eq!((got.run_at, got.created_at), (START, START));
    assert_eq!((&got.rules, &got.trace), (&Rules::default(), &None));
    assert!(t.claim(worker, 10).await.is_none());
}

/// Stale fence: who lost a job does not get it again while its successor runs it.
pub async fn a_stale_worker_does_not_get_the_job_its_successor_runs(t: Fixture) {
    story(&t, &[SUCCESSOR_RUNS, "claim W1 limit=10 -> nothing", SUCCESSOR_UNHARMED]).await;
}

/// Expired: a job is handed out again only after it was taken back.
pub async fn an_expired_lease_is_not_claimed_before_it_is_reclaimed(t: Fixture) {
    let claim = "
        claim    W2  limit=10  -> nothing
        show     J1  state=running  lease=L1
        reclaim  J1
        claim    W2  J1  lease=L2
    ";
    story(&t, &[EXPIRED, claim]).await;
}

/// Canceled: nobody gets it.
pub async fn a_canceled_job_is_not_handed_out(t: Fixture) {
    let script = "
        enqueue  J1  J2
        cancel   J1
        claim    W1  J2  limit=10  lease=L1
        complete W1  J2  lease=L1
        claim    W1  limit=10  -> nothing
    ";
    story(&t, &[script]).await;
}

/// Unknown id: there is nothing in a queue that is not there.
pub async fn a_claim_of_an_unknown_queue_gets_nothing(t: Fixture) {
    story(&t, &["enqueue J1\n claim W1 queue=nowhere limit=256 -> nothing"]).await;
}

/// Reply lost: the second claim gets other jobs, and the first one's are given back.
pub async fn a_claim_sent_twice_gets_other_jobs(t: Fixture) {
    let script = "
        enqueue  J1  J2  J3
        claim    W1  J1  lease=L1          # this reply is lost
        claim    W1  J2  lease=L2
        release_unknown  W1  known=L2  -> J1
        claim    W1  J1 J3  lease=L3  attempt=1
        complete W1  J2  lease=L2
        complete W1  J1 J3  lease=L3
    ";
    story(&t, &[script]).await;
}

/// ATTACK S12: the clock goes back, and what is enqueued then is not hidden behind what was claimed before.
pub async fn a_clock_that_goes_back_hides_no_job(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..5 {
        t.enqueue().await;
        let (lease, job) = t.claim_one(worker).await;
        t.end(worker, lease, job, success()).await;
    }
    t.clock.set(START.minus(Duration::from_secs(3_600)));
    for _ in 0..5 {
        let job = t.enqueue().await;
        let (lease, claimed) = t.claim_one(worker).await;
        assert_eq!(claimed, job);
        t.end(worker, lease, job, success()).await;
    }
}

/// Concurrent twin: many workers claim at the same moment; every job goes to one of them.
pub async fn concurrent_claims_share_no_job(t: Fixture) {
    const WORKERS: usize = 4;
    const JOBS: usize = 12;
    let mut workers = Vec::new();
    for n in 0..WORKERS {
        workers.push(t.worker(&format!("w{n}")).await);
    }
    for _ in 0..ROUNDS {
        let batch = (0..JOBS).map(|_| t.new_job()).collect();
        t.store.enqueue_jobs(batch).await.expect("enqueue");
        let gate = Arc::new(Barrier::new(WORKERS));
        let claims: Vec<_> = workers
            .iter()
            .map(|worker| {
                let (t, gate, worker) = (t.clone(), gate.clone(), *worker);
                tokio::spawn(async move {
                    gate.wait().await;
                    drain(&t, worker).await
                })
            })
            .collect();
        let mut jobs: Vec<JobId> = Vec::new();
        let mut leases: Vec<LeaseNo> = Vec::new();
        for claim in claims {
            let (mine, held) = claim.await.expect("a worker");
            jobs.extend(mine);
            leases.extend(held);
        }
        assert_eq!(jobs.len(), JOBS, "every job was handed out once");
        assert_eq!(jobs.iter().collect::<HashSet<_>>().len(), JOBS, "no job was handed out twice");
        assert_eq!(leases.iter().collect::<HashSet<_>>().len(), leases.len(), "no fence was given out twice");
    }
}

/// Claims and completes until nothing is left; answers what it got.
async fn drain(t: &Fixture, worker: tenure_core::WorkerId) -> (Vec<JobId>, Vec<LeaseNo>) {
    let (mut jobs, mut leases) = (Vec::new(), Vec::new());
    while let Some(claimed) = t.claim(worker, 2).await {
        assert!(claimed.jobs.len() <= 2, "{claimed:?}");
        assert!(leases.last().is_none_or(|last| *last < claimed.lease), "a worker's fences grow");
        leases.push(claimed.lease);
        for job in claimed.jobs {
            let answer = t.end(worker, claimed.lease, job.id, success()).await;
            assert_eq!(answer, tenure_store::lease::Ended::Now(tenure_core::How::Succeeded));
            jobs.push(job.id);
        }
        let dropped = t.store.drop_leases(worker, vec![claimed.lease]).await.expect("drop");
        assert_eq!(dropped, [claimed.lease]);
    }
    (jobs, leases)
}

/// Large payloads: a claim takes jobs until their payloads reach its bound in bytes, and the next claim takes the rest.
pub async fn a_claim_is_bounded_by_the_bytes_of_its_payloads(t: Fixture) {
    const FULL: usize = CLAIM_KIB_MAX as usize * 1024 / PAYLOAD_BYTES_MAX;
    let large = format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX - 2));
    let worker = t.worker("one").await;
    for gate in [None, Some("api")] {
        for _ in 0..FULL + 3 {
            let mut job = t.new_job();
            job.payload = Json::parse("payload", large.as_str()).expect("JSON");
            job.gate = gate.map(|name| name.parse().expect("a name"));
            t.store.enqueue_jobs(vec![job]).await.expect("enqueue");
        }
        for expected in [FULL, 3] {
            let claimed = t.claim(worker, 256).await.expect("jobs are due");
            assert_eq!(claimed.jobs.len(), expected, "through gate {gate:?}");
            for job in claimed.jobs {
                t.end(worker, claimed.lease, job.id, success()).await;
            }
        }
    }
}
