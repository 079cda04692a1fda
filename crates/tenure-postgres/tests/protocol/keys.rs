//! Unique keys: endings touch none, and one that is taken over is taken over once (S6).

use std::time::Duration;

use tenure_contract::fixture::requeue;
use tenure_core::unique::Policy;
use tenure_core::{JobId, NewJob, State, Unique};
use tenure_postgres::{PgOptions, tx};
use tenure_store::enqueue::Enqueued;
use tenure_store::operate::PruneJobs;
use tenure_store::{AdminStore, JobStore, StoreError};
use tokio_postgres::Client;

use crate::scene::{Scene, complete_in, failure, mutate, number, pid, run, soon, until_blocked};

fn keyed(scene: &Scene, key: &str) -> NewJob {
    NewJob { unique: Some(Unique::new(key, Policy::WhileActive)), ..scene.new_job() }
}

async fn enqueue_keyed(scene: &Scene, key: &str) -> Enqueued {
    soon("enqueue", scene.store.enqueue_jobs(vec![keyed(scene, key)])).await.expect("enqueue")[0]
}

/// A job that holds `key` and has failed.
async fn failed_holder(scene: &Scene, key: &str) -> JobId {
    let worker = scene.worker("w").await;
    let job = enqueue_keyed(scene, key).await.job();
    let (lease, claimed) = scene.claim_one(worker).await;
    assert_eq!(claimed, job);
    scene.end(worker, lease, job, failure()).await;
    job
}

async fn active_jobs(client: &Client) -> i64 {
    number(client, "select count(*) from tenure.jobs where state in ('waiting', 'queued', 'retryable', 'running')")
        .await
}

/// S6: red when an ending deletes or locks the key: the enqueue runs into its `lock_timeout`.
#[tokio::test]
async fn an_enqueue_of_a_key_does_not_wait_for_the_open_completion_of_its_holder() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let job = enqueue_keyed(&scene, "k").await.job();
    let (lease, _) = scene.claim_one(worker).await;
    let user = scene.client().await;
    run(&user, "begin").await;
    complete_in(&user, worker, lease, job).await;
    assert_eq!(enqueue_keyed(&scene, "k").await, Enqueued::Found { job, state: Some(State::Running) });
    run(&user, "commit").await;
    assert!(matches!(enqueue_keyed(&scene, "k").await, Enqueued::Created(_)), "the holder has ended");
    scene.assert_sound().await;
}

/// S6: red when an ending takes the key: each transaction then waits for the other's.
#[tokio::test]
async fn two_transactions_that_complete_one_key_and_enqueue_the_other_do_not_deadlock() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let mut users = Vec::new();
    for key in ["a", "b"] {
        let job = enqueue_keyed(&scene, key).await.job();
        let (lease, _) = scene.claim_one(worker).await;
        let user = scene.client().await;
        run(&user, "begin").await;
        complete_in(&user, worker, lease, job).await;
        users.push((user, job));
    }
    for (i, key) in ["b", "a"].into_iter().enumerate() {
        let found = soon("enqueue", tx::enqueue_within(&users[i].0, &[keyed(&scene, key)])).await.expect("enqueue");
        assert_eq!(found, [Enqueued::Found { job: users[1 - i].1, state: Some(State::Running) }]);
    }
    for (user, _) in &users {
        run(user, "commit").await;
    }
    scene.assert_sound().await;
}

/// A requeue is under way when an enqueue meets the key of the job it revives.
async fn enqueue_against_an_open_requeue(scene: &Scene) -> Enqueued {
    let job = failed_holder(scene, "k").await;
    let (operator, producer, look) = (scene.client().await, scene.client().await, scene.client().await);
    run(&operator, &format!("begin; select tenure.requeue('{job}')")).await;
    let (pid, new) = (pid(&producer).await, keyed(scene, "k"));
    let enqueue = tokio::spawn(async move { tx::enqueue_within(&producer, &[new]).await });
    until_blocked(&look, pid).await;
    run(&operator, "commit").await;
    soon("the enqueue", enqueue).await.expect("no panic").expect("enqueue")[0]
}

/// S6: the key's row lock, then another look.
#[tokio::test]
async fn an_enqueue_that_races_a_requeue_for_a_key_finds_the_revived_job() {
    let scene = Scene::new().await;
    let answer = enqueue_against_an_open_requeue(&scene).await;
    assert!(matches!(answer, Enqueued::Found { state: Some(State::Queued), .. }), "{answer:?}");
    assert_eq!(active_jobs(&scene.client().await).await, 1);
    scene.assert_sound().await;
}

/// S6, the mutant: a requeue that only locks the key, and a compare-and-set without a second look, give two active jobs.
#[tokio::test]
async fn taking_a_key_over_without_a_second_look_gives_two_active_jobs() {
    let scene = Scene::new().await;
    let look = scene.client().await;
    only_lock_the_key(&look).await;
    mutate(&look, "tenure.take_key", "if look = 2 then", "if true then").await;
    assert!(matches!(enqueue_against_an_open_requeue(&scene).await, Enqueued::Created(_)));
    assert_eq!(active_jobs(&look).await, 2);
}

async fn only_lock_the_key(client: &Client) {
    mutate(client, "tenure.requeue", "and k.policy <> 3", "and false").await;
}

/// S6, the other way round. Red when requeue does not lock the key first: it would not learn that it has lost it.
#[tokio::test]
async fn a_requeue_that_races_an_enqueue_for_its_key_is_refused_naming_the_holder() {
    let scene = Scene::new().await;
    let job = failed_holder(&scene, "k").await;
    let (producer, operator, look) = (scene.client().await, scene.client().await, scene.client().await);
    run(&producer, "begin").await;
    let taken = tx::enqueue_within(&producer, &[keyed(&scene, "k")]).await.expect("enqueue")[0];
    assert!(matches!(taken, Enqueued::Created(_)));
    let pid = pid(&operator).await;
    let requeued =
        tokio::spawn(async move { operator.batch_execute(&format!("select tenure.requeue('{job}')")).await });
    until_blocked(&look, pid).await;
    run(&producer, "commit").await;
    let refused = soon("the requeue", requeued).await.expect("no panic").expect_err("the key is gone");
    let said = crate::scene::said(&refused);
    assert!(said.starts_with("TN409") && said.contains(&taken.job().to_string()), "{said}");
    let again = scene.store.requeue_job(requeue(job)).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
    assert_eq!(active_jobs(&look).await, 1);
    scene.assert_sound().await;
}

/// A job is revived after a transaction took its snapshot; then that transaction enqueues the job's key.
async fn enqueue_with_a_snapshot_before_the_requeue(
    scene: &Scene,
    isolation: &str,
) -> Result<Vec<Enqueued>, StoreError> {
    let job = failed_holder(scene, "k").await;
    let producer = scene.client().await;
    run(&producer, &format!("begin isolation level {isolation}; select from tenure.job")).await;
    scene.store.requeue_job(requeue(job)).await.expect("requeue");
    let answer = soon("enqueue", tx::enqueue_within(&producer, &[keyed(scene, "k")])).await;
    run(&producer, "commit").await;
    answer
}

/// S6, in a transaction whose snapshot is older than the requeue: it cannot see that the holder lives again, so it must
/// fail rather than take the key.
#[tokio::test]
async fn a_key_is_not_taken_over_by_a_transaction_that_cannot_see_the_requeue() {
    for isolation in ["repeatable read", "serializable"] {
        let scene = Scene::new().await;
        let refused = enqueue_with_a_snapshot_before_the_requeue(&scene, isolation).await;
        assert!(refused.as_ref().is_err_and(StoreError::is_passing), "{isolation}: {refused:?}");
        assert_eq!(active_jobs(&scene.client().await).await, 1, "{isolation}");
        scene.assert_sound().await;
    }
}

/// S6, the mutant: a lock alone leaves nothing for an older snapshot to conflict with.
#[tokio::test]
async fn a_requeue_that_only_locks_its_key_gives_two_active_jobs() {
    let scene = Scene::new().await;
    let look = scene.client().await;
    only_lock_the_key(&look).await;
    let answer = enqueue_with_a_snapshot_before_the_requeue(&scene, "repeatable read").await;
    assert!(matches!(answer.as_deref(), Ok([Enqueued::Created(_)])), "{answer:?}");
    assert_eq!(active_jobs(&look).await, 2);
}

/// Idempotency keys and windows of jobs that wait for a long time, or are gone. Red when keys go with their jobs only.
#[tokio::test]
async fn a_prune_frees_keys_whose_window_is_over_whatever_became_of_their_jobs() {
    let scene = Scene::new().await;
    let client = scene.client().await;
    let enqueue = "select count(e.created)::bigint from generate_series(1, 300) i cross join lateral
        tenure.enqueue('noop', idempotency_key => case when i <= 150 then 'i' || i end, unique_key => case when i > 150 then 'w' || i end,
          unique_policy => case when i > 150 then 'window' end, unique_window => case when i > 150 then interval '1 hour' end) e";
    assert_eq!(number(&client, &format!("({enqueue})")).await, 300);
    let keys = "select count(*) from tenure.unique_key";
    let prune = PruneJobs { older_than: Duration::from_secs(60), dead_too: false, limit: 200 };
    assert_eq!(scene.store.prune_jobs(prune.clone()).await.expect("prune"), 0);
    assert_eq!(number(&client, keys).await, 300, "none is over");
    scene.advance(Duration::from_secs(400 * 86_400));
    for left in [100, 0] {
        assert_eq!(scene.store.prune_jobs(prune.clone()).await.expect("prune"), 0, "no job has ended");
        assert_eq!(number(&client, keys).await, left);
    }
}

/// An enqueue that meets a key of an open transaction waits by itself: of many at most one takes a connection, once the key
/// is known to be held. Red when each of them waits on a connection of its own.
#[tokio::test]
async fn enqueues_that_wait_for_a_held_key_leave_connections_to_others() {
    let scene = Scene::with(PgOptions { connections_max: 3, ..PgOptions::default() }).await;
    let (user, look) = (scene.client().await, scene.client().await);
    run(&user, "begin").await;
    tx::enqueue_within(&user, &[keyed(&scene, "k")]).await.expect("enqueue");
    let refused = soon("enqueue", scene.store.enqueue_jobs(vec![keyed(&scene, "k")])).await.expect_err("refused");
    assert!(refused.is_passing(), "{refused:?}");

    let blocked =
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let waiting: Vec<_> = (0..6)
        .map(|_| {
            let (store, job) = (scene.store.clone(), keyed(&scene, "k"));
            tokio::spawn(async move { store.enqueue_jobs(vec![job]).await })
        })
        .collect();
    for _ in 0..20 {
        // Another key, and no key at all.
        enqueue_keyed(&scene, "other").await;
        soon("enqueue", scene.store.enqueue_jobs(vec![scene.new_job()])).await.expect("enqueue");
        assert!(number(&look, blocked).await <= 1, "one waits for the key");
    }
    run(&user, "commit").await;
    for task in waiting {
        match soon("enqueue", task).await.expect("no panic") {
            Ok(found) => assert!(matches!(found[..], [Enqueued::Found { .. }]), "{found:?}"),
            Err(error) => assert!(matches!(error, StoreError::Unavailable(..)), "{error:?}"),
        }
    }
    scene.assert_sound().await;
}
