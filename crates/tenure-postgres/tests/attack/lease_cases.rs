//! Named interleavings over leases and seals: reports, completions, reclaim, prune and sealers meet.

use std::time::Duration;

use tenure_core::seal::Anchor;
use tenure_core::{How, JobId, Json, QueueName};
use tenure_postgres::statement::COMPLETE_JOBS;
use tenure_postgres::tx::enqueue_within;
use tenure_store::clock::ManualClock;
use tenure_store::lease::{ClaimJobs, Ended, Ending};
use tenure_store::{AdminStore, JobStore, JournalStore, LeaseStore, StoreError, audit};
use tokio_postgres::types::{ToSql, Type};

use crate::key_cases::everything;
use crate::stage::{Stage, Verdict, report, same};
use crate::worker::done;

/// A repeated report finds its job in other hands, and does not put it back once more.
pub(crate) async fn a_repeated_report_puts_nothing_back(mut s: Stage) -> Verdict {
    let (lease, jobs) = s.claim(2).await?;
    s.end(lease, &jobs[..1], retry()).await?;
    s.claim_due(1).await?;
    let again = s.end(lease, &jobs[..1], retry()).await?;
    same("the second answer", &again, &vec![Ended::Before(How::Retry)])?;
    s.is_sound().await
}

/// Two reports name the same jobs in opposite order, and a user's open transaction stops one of them in the middle.
pub(crate) async fn reports_in_opposite_order_do_not_deadlock(s: Stage) -> Verdict {
    opposite_reports(s, done()).await
}

/// The same, for endings other than success.
pub(crate) async fn mixed_reports_in_opposite_order_do_not_deadlock(s: Stage) -> Verdict {
    opposite_reports(s, retry()).await
}

async fn opposite_reports(mut s: Stage, ending: Ending) -> Verdict {
    // A fourth job keeps the lease: a report that ends all of it would drop it.
    let (lease, jobs) = s.claim(4).await?;
    s.user.batch_execute("begin").await?;
    s.complete_in(lease, jobs[2]).await?;
    let send = |order: &[JobId]| {
        let (store, report) = (s.store.clone(), report(s.worker, lease, order, &ending));
        tokio::spawn(async move { store.end_jobs(report).await })
    };
    let one = send(&[jobs[0], jobs[2], jobs[1]]);
    s.until_blocked(&one, 1).await;
    let two = send(&[jobs[1], jobs[0]]);
    s.until_blocked(&two, 2).await;
    s.user.batch_execute("rollback").await?;
    one.await??;
    two.await??;
    s.had_no_deadlock().await
}

/// A requeue that took its xid long before the claim it follows is sealed after it.
pub(crate) async fn a_late_requeue_is_sealed_where_it_happened(mut s: Stage) -> Verdict {
    s.user.batch_execute("begin; select pg_current_xact_id()").await?;
    let (lease, jobs) = s.claim(1).await?;
    s.end(lease, &jobs, Ending::Failed { error: Json::null() }).await?;
    s.user.batch_execute(&format!("select tenure.requeue('{}'); commit", jobs[0])).await?;
    s.store.seal_journal().await?;
    let report = audit::verify(&s.store, None, |_| {}).await?;
    same("what the audit finds", &(report.findings, report.rows, report.tail), &(vec![], 3, 0))
}

/// A transaction that is open anywhere stops no seal, and its own rows are sealed once, when it has committed.
pub(crate) async fn an_open_transaction_stops_no_seal(mut s: Stage) -> Verdict {
    let (lease, jobs) = s.claim(2).await?;
    s.user.batch_execute("begin").await?;
    s.complete_in(lease, jobs[0]).await?;
    s.end(lease, &jobs[1..], done()).await?;
    let first = s.store.seal_journal().await?.ok_or("nothing was sealed")?;
    same("rows of the first seal", &first.rows, &2)?;
    s.user.batch_execute("commit").await?;
    let second = s.store.seal_journal().await?.ok_or("the late row was not sealed")?;
    same("rows of the second seal", &second.rows, &1)?;
    let anchor = Anchor { no: first.no, rows: first.rows, hash: first.hash };
    let report = audit::verify(&s.store, Some(&anchor), |_| {}).await?;
    same("what the audit finds", &(report.findings, report.rows, report.tail), &(vec![], 3, 0))
}

/// An enqueue is repeated whose first job was lost meanwhile, and waits for somebody over its second: it is in nobody's way.
pub(crate) async fn reclaim_passes_by_an_enqueue_sent_again(mut s: Stage) -> Verdict {
    let jobs = s.new_jobs(2);
    let (lost, other) = (jobs[0].id, jobs[1].clone());
    s.store.enqueue_jobs(vec![jobs[0].clone()]).await?;
    s.claim_due(1).await?;
    s.expire();
    s.user.batch_execute("begin").await?;
    enqueue_within(&s.user, &[other]).await?;
    let store = s.store.clone();
    let again = tokio::spawn(async move { store.enqueue_jobs(jobs).await });
    s.until_blocked(&again, 1).await;
    let reclaimed: Vec<JobId> = s.store.reclaim_jobs(None, 10).await?.iter().map(|one| one.job).collect();
    same("what was reclaimed", &reclaimed, &vec![lost])?;
    s.user.batch_execute("rollback").await?;
    same("what was stored then", &again.await??.len(), &2)?;
    s.is_sound().await
}

/// Reclaim leaves a lease alone while a report under it is on its way, and takes the rest when that is done.
pub(crate) async fn reclaim_passes_by_a_report_on_its_way(mut s: Stage) -> Verdict {
    let (lease, jobs) = s.claim(2).await?;
    let ids = vec![*jobs[0].as_uuid()];
    let (none, never) = (vec![None::<String>], None::<std::time::SystemTime>);
    let leases = vec![lease.0];
    let params: [(&(dyn ToSql + Sync), Type); 7] = [
        (&s.worker.0, Type::INT4),
        (&leases, Type::INT8_ARRAY),
        (&leases, Type::INT8_ARRAY),
        (&ids, Type::UUID_ARRAY),
        (&none, Type::TEXT_ARRAY),
        (&none, Type::TEXT_ARRAY),
        (&never, Type::TIMESTAMPTZ),
    ];
    s.expire();
    s.user.batch_execute("begin").await?;
    s.user.query_typed(COMPLETE_JOBS.sql, &params).await?;
    let store = s.store.clone();
    let reclaim = tokio::spawn(async move { store.reclaim_jobs(None, 10).await });
    s.until_blocked(&reclaim, 1).await;
    s.user.batch_execute("commit").await?;
    same("what was reclaimed at first", &reclaim.await??, &vec![])?;
    let rest: Vec<(JobId, How)> = s.store.reclaim_jobs(None, 10).await?.iter().map(|one| (one.job, one.how)).collect();
    same("what was reclaimed then", &rest, &vec![(jobs[1], How::Lost)])?;
    s.is_sound().await
}

/// A repeated completion is slow: while it is on its way the first one ends the job, the lease goes, and prune comes.
pub(crate) async fn a_slow_completion_finds_its_job_ended(s: Stage) -> Verdict {
    let ending = |usage: Option<Json>| Ending::Succeeded { result: None, usage };
    slow_report(s, ending(Some(Json::null())), ending(None)).await
}

/// The same, for endings other than success.
pub(crate) async fn a_slow_report_finds_its_job_ended(s: Stage) -> Verdict {
    let ending = |text: &str| Ending::Failed { error: Json::from_store(text) };
    slow_report(s, ending("\"slow\""), ending("{}")).await
}

async fn slow_report(mut s: Stage, slow: Ending, quick: Ending) -> Verdict {
    // The slow report stops between its look at the lease and its first row.
    s.database.sql(
        "create function stop() returns trigger language plpgsql as $$
        begin
          if new.usage is not null or new.error = '\"slow\"' then perform pg_advisory_xact_lock(1); end if;
          return new;
        end $$;
        create trigger stop before insert on tenure.attempt for each row execute function stop()",
    );
    let (lease, jobs) = s.claim(1).await?;
    let how = slow.how();
    s.user.batch_execute("select pg_advisory_lock(1)").await?;
    let (store, request) = (s.store.clone(), report(s.worker, lease, &jobs, &slow));
    let slow = tokio::spawn(async move { store.end_jobs(request).await });
    s.until_blocked(&slow, 1).await;
    s.end(lease, &jobs, quick).await?;
    s.store.prune_jobs(everything()).await?;
    s.user.batch_execute("select pg_advisory_unlock(1)").await?;
    same("the slow answer", &slow.await??, &vec![Ended::Before(how)])?;
    s.is_sound().await
}

/// A job whose lease is kept by a sibling is not pruned: a repeated report would be accepted anew.
pub(crate) async fn a_job_outlives_its_lease(mut s: Stage) -> Verdict {
    let (lease, jobs) = s.claim(2).await?;
    s.end(lease, &jobs[..1], done()).await?;
    same("jobs pruned", &s.store.prune_jobs(everything()).await?, &0)?;
    same("the second answer", &s.end(lease, &jobs[..1], done()).await?, &vec![Ended::Before(How::Succeeded)])?;
    s.end(lease, &jobs[1..], done()).await?;
    s.store.drop_leases(s.worker, vec![lease]).await?;
    same("jobs pruned at last", &s.store.prune_jobs(everything()).await?, &2)?;
    s.is_sound().await
}

/// A job is committed long after it was stamped, below the floor of a worker that has gone on: a sweep finds it.
pub(crate) async fn a_late_commit_is_found_by_a_sweep(mut s: Stage) -> Verdict {
    let (late, usual) = (s.new_jobs(1), s.new_jobs(1));
    let clock = ManualClock::new(late[0].id.made_at());
    let store = s.store_with(&clock).await;
    s.user.batch_execute("begin").await?;
    tenure_postgres::tx::enqueue_within(&s.user, &late).await?;
    let claim = || async {
        let request = ClaimJobs::new(s.worker, QueueName::default(), 5);
        let claimed = store.claim_jobs(request).await?;
        Ok::<_, StoreError>(claimed.map(|c| c.jobs.iter().map(|job| job.id).collect::<Vec<_>>()))
    };
    clock.advance(Duration::from_secs(60));
    store.enqueue_jobs(usual.clone()).await?;
    same("what is due", &claim().await?, &Some(vec![usual[0].id]))?;
    s.user.batch_execute("commit").await?;
    same("what lies above the floor", &claim().await?, &None)?;
    clock.advance(Duration::from_secs(3));
    same("what the sweep finds", &claim().await?, &Some(vec![late[0].id]))
}

fn retry() -> Ending {
    Ending::Retry { delay: Duration::ZERO, error: Json::null() }
}
