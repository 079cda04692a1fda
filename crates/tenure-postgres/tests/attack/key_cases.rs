//! Named interleavings over keys and ids: enqueue, requeue and prune reach for the same thing.

use std::time::Duration;

use tenure_core::{JobId, NewJob, State};
use tenure_postgres::tx::enqueue_within;
use tenure_store::enqueue::Enqueued;
use tenure_store::operate::{CancelJob, PruneJobs, RequeueJob, Word};
use tenure_store::record::Sight;
use tenure_store::{AdminStore, JobStore, StoreError};

use crate::stage::{Stage, Verdict, same};

/// What a requeue or a take-over does first.
const LOCK_KEY: &str = "begin; select from tenure.unique_key where key = 'k' for update";

/// An enqueue meets a key whose holder is being requeued: the requeue has locked it and not yet written.
pub(crate) async fn an_enqueue_waits_for_a_requeue_of_its_key(mut s: Stage) -> Verdict {
    let (first, second) = (s.keyed("k"), s.keyed("k"));
    let first_id = end_by_cancel(&s, first).await?;
    s.user.batch_execute(LOCK_KEY).await?;
    let store = s.store.clone();
    let enqueue = tokio::spawn(async move { store.enqueue_jobs(vec![second]).await });
    s.until_blocked(&enqueue, 1).await;
    s.user.batch_execute(&format!("select tenure.requeue('{first_id}'); commit")).await?;
    same("the answer", &enqueue.await??, &vec![Enqueued::Found { job: first_id, state: Some(State::Queued) }])
}

/// A requeue meets its key while an enqueue takes it over: the enqueue has locked it and not yet written.
pub(crate) async fn a_requeue_waits_for_a_takeover_of_its_key(mut s: Stage) -> Verdict {
    let (first, second) = (s.keyed("k"), s.keyed("k"));
    let first_id = end_by_cancel(&s, first).await?;
    s.user.batch_execute(LOCK_KEY).await?;
    let store = s.store.clone();
    let revive = tokio::spawn(async move { store.requeue_job(requeue(first_id)).await });
    s.until_blocked(&revive, 1).await;
    enqueue_within(&s.user, &[second]).await?;
    s.user.batch_execute("commit").await?;
    match revive.await? {
        Err(StoreError::Conflict(_)) => same("the first job", &s.state(first_id), &"canceled".to_owned()),
        other => Err(format!("the requeue was answered {other:?}").into()),
    }
}

/// A transaction with an old snapshot must not take over a key whose holder was requeued since.
pub(crate) async fn an_old_snapshot_takes_over_no_requeued_key(mut s: Stage) -> Verdict {
    let (first, second) = (s.keyed("k"), s.keyed("k"));
    let first_id = end_by_cancel(&s, first).await?;
    s.user.batch_execute("begin isolation level repeatable read; select 1").await?;
    s.store.requeue_job(requeue(first_id)).await?;
    match enqueue_within(&s.user, &[second]).await {
        Err(StoreError::Unavailable(..)) => Ok(()),
        other => Err(format!("the enqueue was answered {other:?}").into()),
    }
}

/// Two bulk enqueues name the same keys in opposite order, and an open transaction stops one of them in the middle.
pub(crate) async fn keys_in_opposite_order_do_not_deadlock(mut s: Stage) -> Verdict {
    let batch = |s: &mut Stage, keys: &[&str]| keys.iter().map(|key| s.keyed(key)).collect::<Vec<_>>();
    let (middle, one, two) = (batch(&mut s, &["k3"]), batch(&mut s, &["k1", "k3", "k2"]), batch(&mut s, &["k2", "k1"]));
    opposite_enqueues(s, middle, one, two).await
}

/// A batch whose reply was lost is sent again in another order while the first is still at work.
pub(crate) async fn ids_in_opposite_order_do_not_deadlock(mut s: Stage) -> Verdict {
    let jobs = s.new_jobs(3);
    let pick = |order: &[usize]| order.iter().map(|n| jobs[*n].clone()).collect::<Vec<_>>();
    let (middle, one, two) = (pick(&[2]), pick(&[0, 2, 1]), pick(&[1, 0]));
    opposite_enqueues(s, middle, one, two).await
}

/// The same when one of the batch was stored long ago: then it is no plain enqueue any more.
pub(crate) async fn repeated_ids_in_opposite_order_do_not_deadlock(mut s: Stage) -> Verdict {
    let jobs = s.new_jobs(4);
    s.store.enqueue_jobs(vec![jobs[0].clone()]).await?;
    let pick = |order: &[usize]| order.iter().map(|n| jobs[*n].clone()).collect::<Vec<_>>();
    let (middle, one, two) = (pick(&[3]), pick(&[0, 1, 3, 2]), pick(&[0, 2, 1]));
    opposite_enqueues(s, middle, one, two).await
}

async fn opposite_enqueues(s: Stage, middle: Vec<NewJob>, one: Vec<NewJob>, two: Vec<NewJob>) -> Verdict {
    s.user.batch_execute("begin").await?;
    enqueue_within(&s.user, &middle).await?;
    let send = |jobs| {
        let store = s.store.clone();
        tokio::spawn(async move { store.enqueue_jobs(jobs).await })
    };
    let one = send(one);
    s.until_blocked(&one, 1).await;
    let two = send(two);
    s.until_blocked(&two, 2).await;
    s.user.batch_execute("rollback").await?;
    one.await??;
    two.await??;
    s.had_no_deadlock().await
}

/// A requeue holds its key and wants its attempt; prune has the attempt and must not wait for the key.
pub(crate) async fn prune_and_requeue_do_not_deadlock(mut s: Stage) -> Verdict {
    let job = s.keyed("k");
    let id = end_by_cancel(&s, job).await?;
    s.user.batch_execute(LOCK_KEY).await?;
    let store = s.store.clone();
    let prune = tokio::spawn(async move { store.prune_jobs(everything()).await });
    s.until_blocked(&prune, 1).await;
    s.user.batch_execute(&format!("select tenure.requeue('{id}'); commit")).await?;
    prune.await??;
    same("the job", &s.state(id), &"queued".to_owned())?;
    s.is_sound().await?;
    s.had_no_deadlock().await
}

/// Two jobs of one call have one idempotency key, and the first is found by its unique key: both are that earlier job.
pub(crate) async fn one_idempotency_key_names_one_job(mut s: Stage) -> Verdict {
    let earlier = s.keyed("k");
    let found = Enqueued::Found { job: earlier.id, state: Some(State::Queued) };
    s.store.enqueue_jobs(vec![earlier]).await?;
    let named = |job: NewJob| NewJob { idempotency_key: Some("request 1".into()), ..job };
    let batch = vec![named(s.keyed("k")), named(s.new_jobs(1).remove(0))];
    same("the answers", &s.store.enqueue_jobs(batch).await?, &vec![found, found])
}

/// An enqueue is repeated when its job has ended and another job has its unique key: it is still answered with its job.
pub(crate) async fn a_repeated_enqueue_is_answered_with_its_job(mut s: Stage) -> Verdict {
    for idempotency_key in [None, Some("request 1".to_owned())] {
        let first = NewJob { idempotency_key: idempotency_key.clone(), ..s.keyed("k") };
        let id = end_by_cancel(&s, first.clone()).await?;
        let second = s.keyed("k");
        let second_id = second.id;
        s.store.enqueue_jobs(vec![second]).await?;
        let found = vec![Enqueued::Found { job: id, state: Some(State::Canceled) }];
        same("the answer", &s.store.enqueue_jobs(vec![first.clone()]).await?, &found)?;
        if idempotency_key.is_some() {
            let same_request = NewJob { id: s.new_jobs(1)[0].id, ..first };
            same("the answer to the same request", &s.store.enqueue_jobs(vec![same_request]).await?, &found)?;
        }
        s.store
            .cancel_job(CancelJob { sight: Sight::All, job: second_id, force: false, word: Word::default() })
            .await?;
    }
    Ok(())
}

/// A repeated enqueue is stopped in the middle while its ended job is pruned: it does not come back without its key.
pub(crate) async fn a_repeated_enqueue_meets_a_prune(mut s: Stage) -> Verdict {
    let (first, second) = (s.keyed("k1"), s.keyed("k1"));
    let (in_the_way, other) = (s.keyed("k2"), s.keyed("k2"));
    end_by_cancel(&s, first.clone()).await?;
    s.user.batch_execute("begin").await?;
    enqueue_within(&s.user, &[in_the_way]).await?;
    let store = s.store.clone();
    let again = tokio::spawn(async move { store.enqueue_jobs(vec![first, other]).await });
    s.until_blocked(&again, 1).await;
    s.store.prune_jobs(everything()).await?;
    s.user.batch_execute("rollback").await?;
    again.await??;
    s.store.enqueue_jobs(vec![second]).await?;
    let active = "select count(*) from tenure.ready r join tenure.job j on j.id = r.job where j.unique_key = 'k1'";
    same("jobs that hold the key", &s.database.sql(active), &"1".to_owned())
}

async fn end_by_cancel(s: &Stage, job: NewJob) -> Result<JobId, StoreError> {
    let id = job.id;
    s.store.enqueue_jobs(vec![job]).await?;
    s.store.cancel_job(CancelJob { sight: Sight::All, job: id, force: false, word: Word::default() }).await?;
    Ok(id)
}

fn requeue(job: JobId) -> RequeueJob {
    RequeueJob { sight: Sight::All, job, word: Word::default() }
}

/// Whatever has ended by now.
pub(crate) fn everything() -> PruneJobs {
    PruneJobs { older_than: Duration::ZERO, dead_too: true, limit: 10 }
}
