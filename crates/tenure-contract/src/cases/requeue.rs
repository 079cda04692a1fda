//! `requeue` in every situation.

use tenure_core::unique::{Policy, Unique};
use tenure_core::{NewJob, State};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;

use super::situation::{EXPIRED, ROUNDS, both, story};
use crate::fixture::{Fixture, cancel, requeue};

/// Fresh: attempts and losses start again.
pub async fn a_dead_job_is_requeued_with_its_attempts_reset(t: Fixture) {
    let script = "
        enqueue  J1  max_attempts=1
        claim    W1  J1  lease=L1
        fail     W1  J1  lease=L1  -> dead
        advance  1h
        requeue  J1
        show     J1  state=queued  attempt=0  losses=0  run_at=+0s  finished_at=none  attempts=dead
        claim    W1  J1  lease=L2  attempt=1
        complete W1  J1  lease=L2
        show     J1  state=succeeded  attempts=dead,succeeded
        journal  J1  claimed:L1  dead:L1  requeued  claimed:L2  succeeded:L2
    ";
    story(&t, &[script]).await;
}

/// Stale fence: the holder of the job's former life is not the holder of its new one.
pub async fn a_requeue_does_not_revive_the_old_lease(t: Fixture) {
    let script = "
        enqueue  J1  J2
        claim    W1  J1 J2  lease=L1
        cancel   J1  force
        requeue  J1
        complete W1  J1  lease=L1  -> lease_lost:canceled
        claim    W2  J1  lease=L2
        complete W1  J1  lease=L1  -> lease_lost:canceled
        renew    W1  lease=L1
        requeue  J1  -> conflict
        show     J1  state=running  lease=L2  holder=W2
        complete W2  J1  lease=L2
        complete W1  J2  lease=L1
        drop     W1  lease=L1
    ";
    story(&t, &[script]).await;
}

/// The lease of its former life expires while the job waits or runs again: it is not lost by that.
pub async fn a_requeued_job_is_not_lost_with_its_old_lease(t: Fixture) {
    let script = "
        enqueue  J1  J2
        claim    W1  J1 J2  lease=L1
        cancel   J1  force
        requeue  J1
        advance  61s
        claim    W2  J1  lease=L2
        reclaim  J2
        show     J1  state=running  lease=L2  losses=0
        complete W2  J1  lease=L2
    ";
    story(&t, &[script]).await;
}

/// Expired: it has not ended.
pub async fn a_job_under_an_expired_lease_cannot_be_requeued(t: Fixture) {
    story(&t, &[EXPIRED, "requeue J1 -> conflict naming J1\n show J1 state=running lease=L1"]).await;
}

/// Canceled: it may be revived.
pub async fn a_canceled_job_is_requeued(t: Fixture) {
    let script = "
        enqueue  J1  delay=1h
        cancel   J1
        requeue  J1
        show     J1  state=queued  run_at=+0s  attempt=0
        claim    W1  J1  lease=L1
        complete W1  J1  lease=L1
    ";
    story(&t, &[script]).await;
}

/// Unknown id.
pub async fn an_unknown_job_cannot_be_requeued(t: Fixture) {
    story(&t, &["requeue J9 -> not_found"]).await;
}

/// Reply lost: the second one is told that the job has not ended.
pub async fn a_requeue_sent_twice_is_written_once(t: Fixture) {
    let script = "
        enqueue  J1
        cancel   J1
        requeue  J1
        requeue  J1  -> conflict
        claim    W1  J1  limit=10  lease=L1
        requeue  J1  -> conflict
        complete W1  J1  lease=L1
        journal  J1  canceled  requeued  claimed:L1  succeeded:L1
    ";
    story(&t, &[script]).await;
}

/// Wrong tenant: there is no such job.
pub async fn a_job_of_another_tenant_cannot_be_requeued(t: Fixture) {
    let script = "
        enqueue  J1  tenant=acme
        cancel   J1
        requeue  J1  sight=zoo  -> not_found
        show     J1  state=canceled
        requeue  J1  sight=acme
    ";
    story(&t, &[script]).await;
}

/// Concurrent twin.
pub async fn of_two_requeues_one_wins(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        t.store.cancel_job(cancel(job, false)).await.expect("cancel");
        let (first, second) = (t.store.clone(), t.store.clone());
        let answers = both(async move { first.requeue_job(requeue(job)).await }, async move {
            second.requeue_job(requeue(job)).await
        })
        .await;
        assert!(
            matches!(answers, (Ok(()), Err(StoreError::Conflict(_))) | (Err(StoreError::Conflict(_)), Ok(()))),
            "{answers:?}"
        );
        assert_eq!(t.claim_one(worker).await.1, job);
        assert!(t.claim(worker, 10).await.is_none(), "it was put back twice");
        t.store.cancel_job(cancel(job, true)).await.expect("cancel");
    }
}

/// ATTACK S6: a requeue and an enqueue that takes the key over meet; compare-and-set alone gave two active jobs.
pub async fn a_requeue_and_a_takeover_of_its_key_cannot_both_win(t: Fixture) {
    for round in 0..ROUNDS {
        let unique = Some(Unique::new(format!("k{round}"), Policy::WhileActive));
        let old = NewJob { unique: unique.clone(), ..t.new_job() };
        let new = NewJob { unique, ..t.new_job() };
        let (old_id, new_id) = (old.id, new.id);
        t.store.enqueue_jobs(vec![old]).await.expect("enqueue");
        t.store.cancel_job(cancel(old_id, false)).await.expect("cancel");
        let (operator, producer) = (t.store.clone(), t.store.clone());
        let (requeued, enqueued) = both(async move { operator.requeue_job(requeue(old_id)).await }, async move {
            producer.enqueue_jobs(vec![new]).await.expect("enqueue")[0]
        })
        .await;
        match (requeued, enqueued) {
            (Ok(()), Enqueued::Found { job, .. }) => assert_eq!(job, old_id),
            (Err(StoreError::Conflict(why)), Enqueued::Created(job)) => {
                assert_eq!(job, new_id);
                assert!(why.contains(&new_id.to_string()), "{why}");
                assert_eq!(t.show(old_id).await.summary.state, State::Canceled);
            }
            other => panic!("{other:?}"),
        }
    }
}
