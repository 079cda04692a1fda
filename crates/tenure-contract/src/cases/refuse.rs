//! Reports that came too late: they change nothing, and they are written down.

use std::time::Duration;

use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::{How, JobId, Json, LeaseNo, WorkerId};
use tenure_store::JournalStore;
use tenure_store::audit;
use tenure_store::lease::{EndJob, EndJobs, Ended, Ending};

use super::situation::story;
use crate::fixture::{Fixture, success};

/// One worker lost its batch to another; both hold what they were given.
struct Late {
    one: WorkerId,
    stale: LeaseNo,
    two: WorkerId,
    good: LeaseNo,
    jobs: Vec<JobId>,
}

async fn late(t: &Fixture, jobs: u32) -> Late {
    let (one, two) = (t.worker("one").await, t.worker("two").await);
    for _ in 0..jobs {
        t.enqueue().await;
    }
    let stale = t.claim(one, jobs).await.expect("jobs are due").lease;
    t.advance(Duration::from_secs(61));
    t.store.reclaim_jobs(None, 10).await.expect("reclaim");
    let again = t.claim(two, jobs).await.expect("jobs are due");
    let jobs = again.jobs.iter().map(|job| job.id).collect();
    Late { one, stale, two, good: again.lease, jobs }
}

async fn end(t: &Fixture, worker: WorkerId, lease: LeaseNo, ends: &[(JobId, Ending)]) -> Vec<Ended> {
    let jobs = ends.iter().map(|(job, ending)| EndJob::new(*job, ending.clone())).collect();
    t.store.end_jobs(EndJobs { worker, lease, jobs }).await.expect("end")
}

async fn refused(t: &Fixture) -> Vec<JournalRow> {
    t.journal().await.into_iter().filter(|row| row.event == JournalEvent::Refused).collect()
}

/// What was reported; stores may write JSON with other white space.
fn details(row: &JournalRow) -> String {
    row.details.as_ref().map(Json::as_str).unwrap_or_default().split_whitespace().collect()
}

/// Who, when, under which lease, about which job, and what it said.
pub async fn a_report_that_came_too_late_is_written_down(t: Fixture) {
    let it = late(&t, 1).await;
    t.advance(Duration::from_secs(3));
    let lost = Ended::LeaseLost { how: Some(How::Lost) };
    assert_eq!(t.end(it.one, it.stale, it.jobs[0], success()).await, lost);
    let rows = refused(&t).await;
    let [row] = &rows[..] else { panic!("one row: {rows:?}") };
    assert_eq!((row.worker, row.lease, &row.jobs), (Some(it.one), Some(it.stale), &it.jobs));
    assert_eq!((row.at, row.actor.as_deref(), row.reason.as_deref()), (t.clock.now(), None, None));
    assert_eq!(details(row), r#"{"reported":"succeeded"}"#);
    assert_eq!(t.end(it.two, it.good, it.jobs[0], success()).await, Ended::Now(How::Succeeded));
    assert_eq!(refused(&t).await.len(), 1);
}

/// One report, some of it in time: what was accepted stays accepted, what was late has a row for each way.
pub async fn a_late_report_has_a_row_for_each_way_it_reported(t: Fixture) {
    let it = late(&t, 5).await;
    let [a, b, c, d, e] = it.jobs[..] else { panic!("five of them") };
    let (delay, error) = (Duration::from_secs(1), Json::null());
    let retry = Ending::Retry { delay, error: error.clone() };
    let said =
        [(a, success()), (b, retry), (c, success()), (d, Ending::Failed { error }), (e, Ending::Released { delay })];
    let lost = Ended::LeaseLost { how: Some(How::Lost) };
    assert_eq!(end(&t, it.one, it.stale, &said).await, [lost; 5]);
    let rows = refused(&t).await;
    let told: Vec<(String, Vec<JobId>)> = rows.iter().map(|row| (details(row), row.jobs.clone())).collect();
    let word = |how: How| format!(r#"{{"reported":"{}"}}"#, how.as_str());
    let expected = [
        (word(How::Succeeded), vec![a, c]),
        (word(How::Retry), vec![b]),
        (word(How::Failed), vec![d]),
        (word(How::Released), vec![e]),
    ];
    assert_eq!(told, expected);
    // The successor's own report, one job of which was fenced: the others are accepted all the same.
    t.store.cancel_job(crate::fixture::cancel(b, true)).await.expect("cancel");
    let all: Vec<_> = it.jobs.iter().map(|job| (*job, success())).collect();
    let now = Ended::Now(How::Succeeded);
    let fenced = Ended::LeaseLost { how: Some(How::Canceled) };
    assert_eq!(end(&t, it.two, it.good, &all).await, [now, fenced, now, now, now]);
    let rows = refused(&t).await;
    assert_eq!(rows.len(), 5);
    assert_eq!((rows[4].worker, rows[4].lease, &rows[4].jobs[..]), (Some(it.two), Some(it.good), &[b][..]));
}

/// A repeated report finds its answer, and one that the rules turned into something else does, too.
pub async fn a_report_that_was_written_before_is_not_refused(t: Fixture) {
    let script = "
        enqueue  J1  J3  J4  J5  backoff=none
        enqueue  J2  max_attempts=1
        claim    W1  J1 J3 J4 J5 J2  lease=L1
        complete W1  J1  lease=L1
        complete W1  J1  lease=L1  -> before:succeeded
        retry    W1  J2  lease=L1  delay=5s  -> dead
        retry    W1  J2  lease=L1  delay=5s  -> before:dead
        cancel   J3  force
        fail     W1  J3  lease=L1  -> before:canceled
        cancel   J4  force
        snooze   W1  J4  lease=L1  -> before:canceled
        cancel   J5  force
        release  W1  J5  lease=L1  -> before:canceled
        acknowledge W1  J5  lease=L1  -> before:canceled
        journal  J1  claimed:L1  succeeded:L1
        journal  J2  claimed:L1  dead:L1
        journal  J3  claimed:L1  canceled:L1
        journal  J4  claimed:L1  canceled:L1
        journal  J5  claimed:L1  canceled:L1
        # Another word about the same grant is no repetition.
        fail     W1  J1  lease=L1  -> lease_lost:succeeded
        complete W1  J2  lease=L1  -> lease_lost:dead
        snooze   W1  J2  lease=L1  -> lease_lost:dead
        fail     W1  J4  lease=L1  class=dead  -> lease_lost:canceled
        journal  J1  claimed:L1  succeeded:L1  refused:L1
        journal  J2  claimed:L1  dead:L1  refused:L1  refused:L1
        journal  J4  claimed:L1  canceled:L1  refused:L1
    ";
    story(&t, &[script]).await;
}

/// Ids that are no jobs could fill the record without end: they are answered and forgotten.
pub async fn a_report_of_invented_ids_is_not_written_down(t: Fixture) {
    let it = late(&t, 1).await;
    let before = t.journal().await.len();
    let invented: Vec<_> = (0..9).map(|_| (t.new_id(), success())).collect();
    let lost = Ended::LeaseLost { how: None };
    for (worker, lease) in [(it.one, it.stale), (it.two, it.good), (WorkerId(9_999), LeaseNo(9_999))] {
        assert_eq!(end(&t, worker, lease, &invented).await, [lost; 9]);
    }
    assert_eq!(t.journal().await.len(), before);
    // Among them one that is a job, of a lease that never was: that one is.
    let mixed = [invented[0].clone(), (it.jobs[0], success()), invented[1].clone()];
    assert_eq!(end(&t, it.one, LeaseNo(9_999), &mixed).await, [lost; 3]);
    let rows = refused(&t).await;
    assert_eq!((rows.len(), &rows[0].jobs, rows[0].lease), (1, &it.jobs, Some(LeaseNo(9_999))));
}

/// They belong to the chain, and the replay passes over them wherever the job stands.
pub async fn refused_rows_are_sealed_and_replayed(t: Fixture) {
    let it = late(&t, 2).await;
    let all: Vec<_> = it.jobs.iter().map(|job| (*job, success())).collect();
    end(&t, it.one, it.stale, &all).await; // while they run
    t.store.seal_journal().await.expect("seal").expect("there are rows");
    end(&t, it.two, it.good, &all).await;
    end(&t, it.one, it.stale, &all).await; // after they ended
    let prune = tenure_store::operate::PruneJobs { older_than: Duration::ZERO, dead_too: true, limit: 10 };
    t.store.drop_leases(it.two, vec![it.good]).await.expect("drop");
    assert_eq!(t.store.prune_jobs(prune).await.expect("prune"), 2);
    end(&t, it.one, it.stale, &all).await; // after they are gone
    assert_eq!(refused(&t).await.len(), 2);
    t.store.seal_journal().await.expect("seal").expect("there are rows");
    let journal: &dyn JournalStore = &*t.store;
    let report = audit::verify(journal, None, |_| {}).await.expect("verify");
    assert_eq!((report.seals, report.rows, report.tail, report.findings), (2, 7, 0, vec![]));
}
