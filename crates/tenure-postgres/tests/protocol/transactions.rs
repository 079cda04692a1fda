//! Users' transactions that complete a job: what they hold back while they are open, and what becomes of one that stalls.

use std::time::Duration;

use tenure_contract::fixture::success;
use tenure_core::{How, JobId, LeaseNo, QueueName, WorkerId};
use tenure_postgres::{PgOptions, tx};
use tenure_store::lease::{Ended, RenewLeases};
use tenure_store::operate::SetQueue;
use tenure_store::user_tx::CompleteJob;
use tenure_store::{AdminStore, LeaseStore, StoreError};
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::scene::{Scene, complete_in, number, pid, run, soon, until, until_gone};

async fn reclaim(scene: &Scene) -> Vec<JobId> {
    let reclaimed = soon("reclaim", scene.store.reclaim_jobs(None, 100)).await.expect("reclaim");
    let mut jobs: Vec<JobId> = reclaimed.iter().map(|reclaimed| reclaimed.job).collect();
    jobs.sort_unstable();
    jobs
}

/// A transaction locks nothing that anybody else writes. Red when `complete_in` locks its lease harder than for key
/// share, or touches anything its siblings, the claim or the keeper touch.
#[tokio::test]
async fn an_open_completion_holds_nobody_up() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 3).await;
    let (other, others) = scene.claim_batch(worker, 2).await;
    let user = scene.client().await;
    run(&user, "begin").await;
    complete_in(&user, worker, lease, jobs[0]).await;

    let request = RenewLeases { worker, leases: vec![lease, other] };
    let renewed = soon("renewal", scene.store.renew_leases(request)).await.expect("renew");
    assert_eq!(renewed.leases, [lease, other]);
    let ended = soon("a sibling's end", scene.end_all(worker, lease, &jobs[1..2], &success())).await;
    assert_eq!(ended, [Ended::Now(How::Succeeded)]);
    let (third, thirds) = soon("a claim", scene.claim_batch(worker, 1)).await;
    assert!(third > other);

    scene.advance(Duration::from_secs(61));
    let mut expected = [others, thirds].concat();
    expected.sort_unstable();
    assert_eq!(reclaim(&scene).await, expected, "reclaim skips exactly the lease of the open transaction");
    assert_eq!(scene.show(jobs[2]).await.lease, Some(lease));

    run(&user, "rollback").await;
    assert_eq!(reclaim(&scene).await, [jobs[0], jobs[2]], "and takes it when that has ended");
    assert_eq!(scene.state(jobs[1]).await, "succeeded");
    scene.assert_sound().await;
}

/// Committed instead: its job is done, and reclaim takes the rest.
#[tokio::test]
async fn a_completion_that_commits_after_its_lease_expired_stands() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 2).await;
    let user = scene.client().await;
    run(&user, "begin").await;
    complete_in(&user, worker, lease, jobs[0]).await;
    scene.advance(Duration::from_secs(61));
    assert!(reclaim(&scene).await.is_empty());
    run(&user, "commit").await;
    assert_eq!(reclaim(&scene).await, [jobs[1]]);
    assert_eq!(scene.state(jobs[0]).await, "succeeded");

    // What was taken back is no longer the holder's, and a completion that stands is not done twice.
    for (job, lost) in [(jobs[1], true), (jobs[0], false)] {
        run(&user, "begin").await;
        let refused = tx::complete_in(&user, &CompleteJob::new(worker, lease, job)).await.expect_err("refused");
        assert_eq!(matches!(refused, StoreError::LeaseLost(of) if of == job), lost, "{refused:?}");
        assert_eq!(matches!(refused, StoreError::Conflict(_)), !lost, "{refused:?}");
        run(&user, "rollback").await;
    }
    scene.assert_sound().await;
}

/// A prepared transaction outlives its session and every timeout: it pins its lease until somebody ends it. Documented;
/// here it must be skipped without an error.
#[tokio::test]
async fn a_prepared_transaction_pins_its_lease_and_nothing_else() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 2).await;
    let (_, others) = scene.claim_batch(worker, 1).await;
    let (user, name) = (scene.client().await, &scene.database.name);
    run(&user, "begin").await;
    complete_in(&user, worker, lease, jobs[0]).await;
    run(&user, &format!("prepare transaction '{name}'")).await;
    drop(user);

    scene.advance(Duration::from_secs(61));
    assert_eq!(reclaim(&scene).await, others);
    assert!(reclaim(&scene).await.is_empty());
    let answers = soon("the batch", scene.end_all(worker, lease, &jobs, &success())).await;
    assert_eq!(answers, [Ended::Busy, Ended::Now(How::Succeeded)]);
    run(&scene.client().await, &format!("rollback prepared '{name}'")).await;
    assert_eq!(reclaim(&scene).await, jobs[..1]);
    scene.assert_sound().await;
}

/// In real time, with a lease of one second. Red when the idle timeout is not set, or set to 0: the transaction stays.
#[tokio::test]
async fn a_stalled_transaction_is_ended_by_the_server_and_its_job_runs_again() {
    let scene = Scene::on_server_time(PgOptions::default()).await;
    let queue = SetQueue::new(QueueName::default(), Duration::from_secs(1));
    scene.store.set_queue(queue).await.expect("set the queue");
    let (user, look) = (scene.client().await, scene.client().await);
    run(&look, "create table effect (n int)").await;
    let worker = scene.worker("w").await;
    let job = scene.enqueue().await;
    let user_pid = pid(&user).await;
    run(&user, "begin; insert into effect values (1)").await;
    let (lease, _) = scene.claim_one(worker).await;
    complete_in(&user, worker, lease, job).await;

    until_gone(&look, user_pid).await;
    user.batch_execute("commit").await.expect_err("its session is gone");
    let expired =
        format!("select exists (select from tenure.lease where no = {lease} and expires_at < clock_timestamp())");
    until(&look, "the lease has expired", &expired).await;
    assert_eq!(reclaim(&scene).await, [job]);
    let (again, claimed) = scene.claim_one(worker).await;
    assert!(claimed == job && again > lease);
    assert_eq!(number(&look, "select count(*) from effect").await, 0, "what the transaction did is not there");
    let user = scene.client().await;
    run(&user, "begin; insert into effect values (2)").await;
    complete_in(&user, worker, again, job).await;
    run(&user, "commit").await;
    assert_eq!(number(&look, "select sum(n) from effect").await, 2);
    scene.assert_sound().await;
}

/// The idle timeout inside a transaction after it has completed a job, in ms. One message: an expired lease leaves no
/// time for a second one.
async fn idle_timeout_ms(user: &Client, worker: WorkerId, lease: LeaseNo, job: JobId) -> i64 {
    let sql = format!(
        "begin; select tenure.complete_in({worker}, {lease}, '{job}');
         select setting from pg_settings where name = 'idle_in_transaction_session_timeout'; rollback",
        worker = worker.0
    );
    let messages = user.simple_query(&sql).await.unwrap_or_else(|e| panic!("{}", crate::scene::said(&e)));
    let last = messages.iter().rev().find_map(|message| match message {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    last.expect("a row").parse().expect("a number")
}

/// S14: what is left of the lease, never 0 (that switches it off), never above what the user has set. Red when one of the
/// three is forgotten.
#[tokio::test]
async fn the_idle_timeout_is_what_is_left_of_the_lease_within_the_users_own() {
    let scene = Scene::new().await;
    let user = scene.client().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 1).await;
    let left = idle_timeout_ms(&user, worker, lease, jobs[0]).await;
    assert!((1..=60_000).contains(&left) && left > 20_000, "{left} ms of 60 s");

    run(&user, "set idle_in_transaction_session_timeout = '700ms'").await;
    assert_eq!(idle_timeout_ms(&user, worker, lease, jobs[0]).await, 700, "the user's own is shorter");
    run(&user, "set idle_in_transaction_session_timeout = '1h'").await;
    assert!(idle_timeout_ms(&user, worker, lease, jobs[0]).await <= 60_000, "the user's own is longer");
    let after = "select setting from pg_settings where name = 'idle_in_transaction_session_timeout'";
    assert_eq!(number(&user, after).await, 3_600_000, "it is the transaction's, not the session's");

    scene.clock.set(scene.clock.now().minus(Duration::from_secs(300)));
    let (expired, jobs) = scene.claim_batch(worker, 1).await;
    run(&user, "set idle_in_transaction_session_timeout = 0").await;
    assert_eq!(
        idle_timeout_ms(&user, worker, expired, jobs[0]).await,
        1,
        "expired and not reclaimed is still its holder's"
    );
}

/// The second lease of a transaction may have less left than the first. Red when the later call wins.
#[tokio::test]
async fn two_completions_in_one_transaction_leave_the_shorter_timeout() {
    let scene = Scene::new().await;
    let user = scene.client().await;
    let worker = scene.worker("w").await;
    scene.clock.set(scene.clock.now().minus(Duration::from_secs(30)));
    let (short, first) = scene.claim_batch(worker, 1).await;
    scene.advance(Duration::from_secs(30));
    let (long, second) = scene.claim_batch(worker, 1).await;
    run(&user, "begin").await;
    complete_in(&user, worker, short, first[0]).await;
    complete_in(&user, worker, long, second[0]).await;
    let left =
        number(&user, "select setting from pg_settings where name = 'idle_in_transaction_session_timeout'").await;
    assert!((1..=30_000).contains(&left), "{left} ms");
    run(&user, "commit").await;
    assert_eq!((scene.state(first[0]).await, scene.state(second[0]).await), ("succeeded", "succeeded"));
    scene.assert_sound().await;
}
