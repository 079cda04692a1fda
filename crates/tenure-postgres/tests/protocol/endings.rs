//! Endings: a report is accepted once, waits for nobody's transaction, and is answered when it is repeated.

use std::time::Duration;

use tenure_contract::fixture::{cancel, requeue, success};
use tenure_core::{How, JobId, LeaseNo, WorkerId};
use tenure_postgres::{statement, tx};
use tenure_store::lease::Ended;
use tenure_store::operate::{Canceled, PruneJobs};
use tenure_store::user_tx::CompleteJob;
use tenure_store::{AdminStore, JobStore, LeaseStore};
use tokio_postgres::Client;
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use crate::scene::{Scene, complete_in, mutate, number, pid, run, soon, until_blocked};

/// Ends one of two jobs, prunes, and reports the end again.
async fn prune_beside_a_living_sibling(scene: &Scene) -> (u64, Vec<Ended>) {
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 2).await;
    assert_eq!(scene.end_all(worker, lease, &jobs[..1], &success()).await, [Ended::Now(How::Succeeded)]);
    scene.advance(Duration::from_secs(10));
    let request = PruneJobs { older_than: Duration::from_secs(1), dead_too: false, limit: 10 };
    let pruned = scene.store.prune_jobs(request.clone()).await.expect("prune");
    let repeated = scene.end_all(worker, lease, &jobs[..1], &success()).await;
    if pruned == 0 {
        // Once the sibling has ended and the lease is gone, both may go.
        scene.end_all(worker, lease, &jobs[1..], &success()).await;
        assert_eq!(scene.store.drop_leases(worker, vec![lease]).await.expect("drop"), [lease]);
        scene.advance(Duration::from_secs(10));
        assert_eq!(scene.store.prune_jobs(request).await.expect("prune"), 2);
    }
    (pruned, repeated)
}

/// S4: a finished job stays while its sibling keeps the lease alive, or a repeated report would be accepted anew.
#[tokio::test]
async fn a_job_is_not_pruned_while_a_sibling_keeps_its_lease_alive() {
    let scene = Scene::new().await;
    assert_eq!(prune_beside_a_living_sibling(&scene).await, (0, vec![Ended::Before(How::Succeeded)]));
    scene.assert_sound().await;
}

/// S4, the mutant: pruning that looks at no lease lets the same report end the job twice.
#[tokio::test]
async fn pruning_without_a_look_at_leases_accepts_a_report_twice() {
    let scene = Scene::new().await;
    let guard = "and not exists (select from tenure.attempt b cross join lateral (select from tenure.lease l where l.no = b.lease offset 0) held where b.job = c.job offset 0)";
    mutate(&scene.client().await, "tenure.prune", guard, "").await;
    assert_eq!(prune_beside_a_living_sibling(&scene).await, (1, vec![Ended::Now(How::Succeeded)]));
}

/// S5: a completion that was rolled back is not there, and the worker can see that. Red when `is_completed` answers by
/// anything but the committed attempt.
#[tokio::test]
async fn a_completion_that_was_rolled_back_is_not_there_and_the_job_is_still_held() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 2).await;
    let (user, look) = (scene.client().await, scene.client().await);

    run(&user, "begin").await;
    complete_in(&user, worker, lease, jobs[0]).await;
    assert!(!tx::is_completed(&look, lease, jobs[0]).await.expect("look"), "nothing is committed yet");
    run(&user, "rollback").await;

    run(&user, "begin; savepoint before").await;
    complete_in(&user, worker, lease, jobs[1]).await;
    run(&user, "rollback to before; commit").await;

    for job in &jobs {
        assert!(!tx::is_completed(&look, lease, *job).await.expect("look"));
        assert_eq!(scene.show(*job).await.lease, Some(lease), "its holder still has it");
    }
    assert_eq!(scene.end_all(worker, lease, &jobs, &success()).await, [Ended::Now(How::Succeeded); 2]);
    assert!(tx::is_completed(&look, lease, jobs[0]).await.expect("look"));
    scene.assert_sound().await;
}

/// S7: the reply to the report that emptied a lease was lost. Red when no lease row means `LeaseLost` before the attempt
/// is looked up.
#[tokio::test]
async fn a_report_repeated_after_its_emptied_lease_was_deleted_finds_its_answer() {
    let scene = Scene::new().await;
    let look = scene.client().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 3).await;
    assert_eq!(scene.end_all(worker, lease, &jobs, &success()).await, [Ended::Now(How::Succeeded); 3]);
    assert_eq!(number(&look, "select count(*) from tenure.lease").await, 0, "the report dropped its emptied lease");
    assert_eq!(scene.end_all(worker, lease, &jobs, &success()).await, [Ended::Before(How::Succeeded); 3]);
    let lost = Ended::LeaseLost { how: Some(How::Succeeded) };
    assert_eq!(
        scene.end_all(worker, lease, &jobs[..1], &crate::scene::retry()).await,
        [lost],
        "another report is no repeat"
    );
    scene.assert_sound().await;
}

/// S8: one job of a batch sits in a user's open transaction. Red without `lock_timeout` or the one-by-one fallback: the
/// whole batch waits (the guard) or fails.
#[tokio::test]
async fn a_batch_ends_around_the_one_job_that_is_in_an_open_transaction() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 3).await;
    let user = scene.client().await;
    run(&user, "begin").await;
    complete_in(&user, worker, lease, jobs[1]).await;

    let answers = soon("the batch", scene.end_all(worker, lease, &jobs, &success())).await;
    assert_eq!(answers, [Ended::Now(How::Succeeded), Ended::Busy, Ended::Now(How::Succeeded)]);
    let answers = soon("the one", scene.end_all(worker, lease, &jobs[1..2], &crate::scene::failure())).await;
    assert_eq!(answers, [Ended::Busy], "another ending of it is just as busy");

    run(&user, "commit").await;
    assert_eq!(scene.end_all(worker, lease, &jobs[1..2], &success()).await, [Ended::Before(How::Succeeded)]);
    assert_eq!(scene.store.drop_leases(worker, vec![lease]).await.expect("drop"), [lease]);
    scene.assert_sound().await;
}

/// S8, with an operator: a forced cancel in an open transaction holds up its own job alone. Red when it locks its lease
/// harder than for key share, or the reporter waits for it.
#[tokio::test]
async fn a_forced_cancel_in_an_open_transaction_holds_up_its_own_job_alone() {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 2).await;
    let operator = scene.client().await;
    run(&operator, &format!("begin; select tenure.cancel('{}', force => true)", jobs[0])).await;
    let answers = soon("the batch", scene.end_all(worker, lease, &jobs, &success())).await;
    assert_eq!(answers, [Ended::Busy, Ended::Now(How::Succeeded)]);
    scene.advance(Duration::from_secs(61));
    assert!(soon("reclaim", scene.store.reclaim_jobs(None, 10)).await.expect("reclaim").is_empty());
    run(&operator, "commit").await;
    let answers = scene.end_all(worker, lease, &jobs[..1], &success()).await;
    assert_eq!(answers, [Ended::LeaseLost { how: Some(How::Canceled) }]);
    scene.assert_sound().await;
}

/// Makes every transaction wait before it inserts its n-th attempt while somebody holds the advisory lock 42.
async fn stop_before_attempt(client: &Client, n: u32) {
    const STOP: &str = "
        create function stop() returns trigger language plpgsql as $$
        declare n int := coalesce(nullif(current_setting('test.rows', true), ''), '0')::int + 1; begin
          perform set_config('test.rows', n::text, true);
          if n = tg_argv[0]::int then perform pg_advisory_xact_lock_shared(42); end if;
          return new;
        end $$;
        create trigger stop before insert on tenure.attempt for each row execute function stop";
    run(client, &format!("{STOP}({n})")).await;
}

/// Two reports of the same two jobs, named in opposite order, each stopped before its second row until both are there.
/// Answers how many attempts each left unwritten, or that it was the victim of a deadlock.
async fn two_reports_in_opposite_order(sql: &str) -> Vec<Result<usize, String>> {
    let scene = Scene::new().await;
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 2).await;
    let gate = scene.client().await;
    stop_before_attempt(&gate, 2).await;
    run(&gate, "select pg_advisory_lock(42)").await;

    let mut reports = Vec::new();
    for order in [[0, 1], [1, 0]] {
        let client = scene.client().await;
        run(&client, "set deadlock_timeout = '20ms'").await;
        let pid = pid(&client).await;
        let (sql, named) = (sql.to_owned(), order.map(|i| jobs[i]));
        reports.push(tokio::spawn(async move { report(&client, &sql, worker, lease, &named).await }));
        until_blocked(&gate, pid).await;
    }
    run(&gate, "select pg_advisory_unlock(42)").await;
    let mut answers = Vec::new();
    for report in reports {
        answers.push(soon("a report", report).await.expect("no panic"));
    }
    answers
}

async fn report(client: &Client, sql: &str, worker: WorkerId, lease: LeaseNo, jobs: &[JobId]) -> Result<usize, String> {
    let jobs: Vec<Uuid> = jobs.iter().map(|job| *job.as_uuid()).collect();
    let (nothing, now) = (vec![None::<String>; jobs.len()], None::<std::time::SystemTime>);
    let leases = vec![lease.0; jobs.len()];
    let params: [(&(dyn ToSql + Sync), Type); 7] = [
        (&worker.0, Type::INT4),
        (&leases, Type::INT8_ARRAY),
        (&leases, Type::INT8_ARRAY),
        (&jobs, Type::UUID_ARRAY),
        (&nothing, Type::TEXT_ARRAY),
        (&nothing, Type::TEXT_ARRAY),
        (&now, Type::TIMESTAMPTZ),
    ];
    let rows = client.query_typed(sql, &params).await;
    rows.map(|rows| rows.len()).map_err(|error| crate::scene::said(&error))
}

/// S8: attempts are inserted in the order of their jobs, whatever the order of the report.
#[tokio::test]
async fn two_reports_in_opposite_order_do_not_deadlock() {
    let answers = two_reports_in_opposite_order(statement::COMPLETE_JOBS.sql).await;
    // The first one left nothing unwritten; the second waited for it and was told that both have ended.
    let [Ok(0), Err(told)] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(told.starts_with("23505"), "{told}");
}

/// S8, the mutant: attempts inserted in the order of the report.
#[tokio::test]
async fn reports_written_as_they_come_deadlock() {
    let sql = statement::COMPLETE_JOBS.sql.replace("order by h.job", "order by array_position($4::uuid[], h.job)");
    let answers = two_reports_in_opposite_order(&sql).await;
    let victims = answers.iter().filter(|answer| answer.as_ref().is_err_and(|said| said.starts_with("40P01"))).count();
    assert_eq!(victims, 1, "{answers:?}");
}

/// S15: an operator's ending draws a number from the lease sequence. Red with a constant lease: the second cancel
/// conflicts with the first.
#[tokio::test]
async fn a_requeued_job_can_be_canceled_again() {
    let scene = Scene::new().await;
    let job = scene.enqueue().await;
    for _ in 0..3 {
        assert_eq!(scene.store.cancel_job(cancel(job, false)).await.expect("cancel"), Canceled::Now);
        scene.store.requeue_job(requeue(job)).await.expect("requeue");
    }
    let leases: Vec<LeaseNo> = scene.show(job).await.attempts.iter().map(|attempt| attempt.lease).collect();
    assert!(leases.len() == 3 && leases.is_sorted() && leases[0] < leases[2], "{leases:?}");
    scene.assert_sound().await;
}

/// Twenty times two serializable transactions, each of which completes its own job of one lease, neither inserting before
/// the other has read what it reads. Answers how many pairs lost one.
async fn serializable_siblings(scene: &Scene) -> usize {
    let worker = scene.worker("w").await;
    let (lease, jobs) = scene.claim_batch(worker, 40).await;
    let gate = scene.client().await;
    stop_before_attempt(&gate, 1).await;
    let mut failed = 0;
    for pair in jobs.chunks(2) {
        run(&gate, "select pg_advisory_lock(42)").await;
        let mut completions = Vec::new();
        for job in pair.iter().copied() {
            let user = scene.client().await;
            run(&user, "begin isolation level serializable").await;
            let pid = pid(&user).await;
            completions.push(tokio::spawn(async move {
                let completed = tx::complete_in(&user, &CompleteJob::new(worker, lease, job)).await;
                (user, completed)
            }));
            until_blocked(&gate, pid).await;
        }
        run(&gate, "select pg_advisory_unlock(42)").await;
        let mut both = true;
        for completion in completions {
            let (user, completed) = soon("a completion", completion).await.expect("no panic");
            both &= completed.is_ok() && user.batch_execute("commit").await.is_ok();
        }
        failed += usize::from(!both);
    }
    failed
}

/// S18: a completion only inserts, so serializable siblings have nothing to conflict about.
#[tokio::test]
async fn serializable_transactions_of_siblings_do_not_fail_each_other() {
    let scene = Scene::new().await;
    assert_eq!(serializable_siblings(&scene).await, 0);
    scene.assert_sound().await;
}

/// S18, the mutant: a completion that first looks for an earlier one.
#[tokio::test]
async fn a_completion_that_reads_attempts_first_fails_serializable_siblings() {
    let scene = Scene::new().await;
    let look = "begin\n  perform from tenure.attempt a where a.job = _job and a.lease = _lease;";
    mutate(&scene.client().await, "tenure.complete_in", "\nbegin", &format!("\n{look}")).await;
    assert!(serializable_siblings(&scene).await > 0);
}
