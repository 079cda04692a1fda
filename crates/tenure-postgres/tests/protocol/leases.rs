//! Leases: renewal, requested cancels, losses and the fence.

use std::time::{Duration, SystemTime};

use tenure_contract::fixture::{cancel, requeue, success};
use tenure_core::{How, JobId, LeaseNo};
use tenure_postgres::statement;
use tenure_store::lease::{Claimed, Ended, RenewLeases, Renewed};
use tenure_store::operate::Canceled;
use tenure_store::{JobStore, LeaseStore, StoreError};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::scene::{Scene, failure, number, pid, retry, run, said, soon, text, until_blocked};

/// Renews three leases while somebody has the second one locked.
async fn renew_beside_a_locked_lease(scene: &Scene) -> (Vec<LeaseNo>, Result<Renewed, StoreError>) {
    let worker = scene.worker("w").await;
    let mut leases = Vec::new();
    for _ in 0..3 {
        leases.push(scene.claim_batch(worker, 1).await.0);
    }
    let reclaimer = scene.client().await;
    run(&reclaimer, &format!("begin; select from tenure.lease where no = {} for update", leases[1])).await;
    let request = RenewLeases { worker, leases: leases.clone() };
    let renewed = soon("renewal", scene.store.renew_leases(request.clone())).await;
    run(&reclaimer, "rollback").await;
    let again = scene.store.renew_leases(request).await.expect("renew");
    assert_eq!(again.leases, leases, "what was locked is still there");
    (leases, renewed)
}

/// S9: renewal passes over a lease somebody has locked; a missing number is unknown, not lost.
#[tokio::test]
async fn a_locked_lease_does_not_keep_the_others_from_being_renewed() {
    let scene = Scene::new().await;
    let (leases, renewed) = renew_beside_a_locked_lease(&scene).await;
    assert_eq!(renewed.expect("renew").leases, [leases[0], leases[2]]);
    scene.assert_sound().await;
}

/// S9, the mutant: renewal that waits for locks renews nothing.
#[tokio::test]
async fn renewal_that_waits_for_one_lock_renews_nothing() {
    let scene = Scene::mutated("renew_leases", "for no key update skip locked", "for no key update").await;
    let (_, renewed) = renew_beside_a_locked_lease(&scene).await;
    assert!(renewed.as_ref().is_err_and(StoreError::is_passing), "{renewed:?}");
}

/// A cancel is requested and not yet committed when the holder puts the job back; then it is claimed.
async fn claim_after_a_request_passed_a_retry(scene: &Scene) -> (JobId, Claimed) {
    let worker = scene.worker("w").await;
    let job = scene.enqueue().await;
    let (lease, _) = scene.claim_one(worker).await;
    let operator = scene.client().await;
    run(&operator, "begin").await;
    assert_eq!(text(&operator, &format!("tenure.cancel('{job}')")).await, "requested");
    assert_eq!(scene.end(worker, lease, job, retry()).await, Ended::Now(How::Retry), "the request is not visible yet");
    run(&operator, "commit").await;
    assert_eq!(scene.state(job).await, "retryable");
    (job, scene.claim(worker, 1).await.expect("the claim meets it"))
}

/// S10: request and retry pass each other; the claim is where they meet again.
#[tokio::test]
async fn a_cancel_request_that_passed_a_retry_is_met_by_the_claim() {
    let scene = Scene::new().await;
    let (job, claimed) = claim_after_a_request_passed_a_retry(&scene).await;
    assert_eq!((claimed.jobs.len(), claimed.canceled), (0, vec![job]));
    assert_eq!(scene.state(job).await, "canceled");
    // Revived, it is a new story: the request went with the old one.
    scene.store.requeue_job(requeue(job)).await.expect("requeue");
    let worker = scene.worker("w").await;
    assert_eq!(scene.claim_one(worker).await.1, job);
    scene.assert_sound().await;
}

/// S10, the mutant: a claim that looks for no request hands the job out.
#[tokio::test]
async fn a_claim_that_ignores_requests_hands_a_canceled_job_out() {
    let scene = Scene::mutated("claim_jobs", "where c.job = any (array(select job from taken))", "where false").await;
    let (_, claimed) = claim_after_a_request_passed_a_retry(&scene).await;
    assert_eq!(claimed.jobs.len(), 1);
}

/// S10: a request that the job's ending made pointless does not end the job it is requeued as. Red when requeue leaves
/// the request.
#[tokio::test]
async fn requeue_forgets_the_cancel_request() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let job = scene.enqueue().await;
    let (lease, _) = scene.claim_one(worker).await;
    assert_eq!(scene.store.cancel_job(cancel(job, false)).await.expect("cancel"), Canceled::Requested);
    assert_eq!(scene.end(worker, lease, job, failure()).await, Ended::Now(How::Failed));
    scene.store.requeue_job(requeue(job)).await.expect("requeue");
    let (lease, claimed) = scene.claim_one(worker).await;
    assert_eq!(claimed, job);
    assert_eq!(scene.end(worker, lease, job, retry()).await, Ended::Now(How::Retry));
    scene.assert_sound().await;
}

/// S20: a lease knows the losses of each of its jobs. Red when losses are one number for a lease, or start anew.
#[tokio::test]
async fn losses_are_counted_for_each_job_of_a_lease() {
    let scene = Scene::new().await;
    let look = scene.client().await;
    let worker = scene.worker("w").await;
    let lost = scene.claim_batch(worker, 1).await.1[0];
    scene.advance(Duration::from_secs(61));
    assert_eq!(scene.store.reclaim_jobs(None, 10).await.expect("reclaim").len(), 1);
    let fresh = scene.enqueue().await;
    let claimed = scene.claim(worker, 2).await.expect("both are due");
    let losses: Vec<(JobId, u16)> = claimed.jobs.iter().map(|job| (job.id, job.losses)).collect();
    assert!(losses.contains(&(lost, 1)) && losses.contains(&(fresh, 0)), "{losses:?}");
    assert_eq!(text(&look, "select array_agg(l order by l) from tenure.lease, unnest(losses) l").await, "{0,1}");
    scene.advance(Duration::from_secs(61));
    assert_eq!(scene.store.reclaim_jobs(None, 10).await.expect("reclaim").len(), 2);
    assert_eq!((scene.show(lost).await.losses, scene.show(fresh).await.losses), (2, 1));
    scene.assert_sound().await;
}

/// S20: the number is drawn after the ready rows are deleted. A claim stops while it deletes its row, another one passes
/// it: the one that got its jobs later has the higher number. Red when the number is drawn first.
#[tokio::test]
async fn a_claim_draws_its_number_after_it_has_its_jobs() {
    const STOP: &str = "
        create function stop_the_slow_one() returns trigger language plpgsql as $$ begin
          if current_setting('application_name') = 'slow' then perform pg_advisory_xact_lock_shared(42); end if;
          return old;
        end $$;
        create trigger stop before delete on tenure.ready for each row execute function stop_the_slow_one();
        select pg_advisory_lock(42)";
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (first, second) = (scene.enqueue().await, scene.enqueue().await);
    let (gate, slow) = (scene.client().await, scene.client().await);
    run(&gate, STOP).await;
    run(&slow, "set application_name = 'slow'").await;
    let pid = pid(&slow).await;
    let claim = tokio::spawn(async move {
        let (floors, jobs) = (vec![None::<SystemTime>; 4], vec![Uuid::nil(); 4]);
        let now = None::<SystemTime>;
        let order = vec![0_i16, 1, 2, 3];
        let params: [(&(dyn ToSql + Sync), Type); 9] = [
            (&worker.0, Type::INT4),
            (&"default", Type::TEXT),
            (&1_i64, Type::INT8),
            (&floors, Type::TIMESTAMPTZ_ARRAY),
            (&jobs, Type::UUID_ARRAY),
            (&now, Type::TIMESTAMPTZ),
            (&order, Type::INT2_ARRAY),
            (&8_192_i64, Type::INT8),
            (&false, Type::BOOL),
        ];
        let rows = slow.query_typed(statement::CLAIM_JOBS.sql, &params).await;
        let rows = rows.unwrap_or_else(|error| panic!("claim: {}", said(&error)));
        (LeaseNo(rows[0].get("no")), JobId::from_uuid(rows[0].get("job")))
    });
    until_blocked(&gate, pid).await;
    let quick = soon("the quick claim", scene.claim_one(worker)).await;
    run(&gate, "select pg_advisory_unlock(42)").await;
    let slow = soon("the slow claim", claim).await.expect("no panic");
    assert_eq!((slow.1, quick.1), (first, second));
    assert!(slow.0 > quick.0, "{slow:?} {quick:?}");
    scene.assert_sound().await;
}

/// S20: releasing what a lost claim reply left behind gives back those leases and no others.
#[tokio::test]
async fn only_unknown_leases_of_the_worker_itself_are_released() {
    let scene = Scene::new().await;
    let (mine, other) = (scene.worker("mine").await, scene.worker("other").await);
    let (known, kept) = scene.claim_batch(mine, 1).await;
    let (_, forgotten) = scene.claim_batch(mine, 2).await;
    let (foreign, theirs) = scene.claim_batch(other, 1).await;
    let mut released = scene.store.release_unknown(mine, vec![known], LeaseNo::MAX).await.expect("release");
    released.sort_unstable();
    assert_eq!(released, forgotten);
    assert_eq!(number(&scene.client().await, "select count(*) from tenure.lease").await, 2);
    assert_eq!(scene.end(mine, known, kept[0], success()).await, Ended::Now(How::Succeeded));
    assert_eq!(scene.end(other, foreign, theirs[0], success()).await, Ended::Now(How::Succeeded));
    scene.assert_sound().await;
}
