//! The flaws that broke the protocol on Postgres (ATTACK.md, S1 to S20), tried here one by one.
//!
//! SQLite has one writer at a time, so what needs two open transactions cannot happen; the others have a test that
//! cites their number.
//!
//! | | flaw | here |
//! |---|---|---|
//! | S1 | journal order | below: ids are in the order of the commits |
//! | S2 | sealing stops at an open transaction | below: who reads stops no seal; who writes makes it wait, as everybody |
//! | S3 | restored into a younger cluster | cannot be: seals are ranges of ids, which are in the file itself |
//! | S4 | pruned beside a living lease | below, and as a fence in `fences` |
//! | S5 | completed and rolled back | below |
//! | S6 | keys and open transactions | below: nobody waits for a key, and a rollback gives it back |
//! | S7 | a reply lost after the lease went | below |
//! | S8 | a report waits for a key, deadlocks | cannot be: no row is locked, the file is, before the first statement |
//! | S9 | a renewal waits for one locked lease | cannot be, for the same reason; renewals go first: `writer` |
//! | S10 | cancel and retry pass each other | below |
//! | S11 | a floor that is none | no floors: deleted rows are gone, there is nothing to walk over |
//! | S12 | the clock goes back | below |
//! | S13 | gate events under a pinned snapshot | no gates yet |
//! | S14 | idle timeout, prepared transactions | cannot be: a transaction is a closure, and ends with it |
//! | S15 | operator endings under lease 0 | below |
//! | S16 | plans | `plans` |
//! | S17 | the journal is written past the verbs | `tampering` |
//! | S18, S19 | isolation levels | cannot be: every transaction is serial |
//! | S20 | losses, numbers, unknown leases, waiting rows | below |

use std::sync::mpsc;
use std::time::Duration;

use tenure_core::new_job::Due;
use tenure_core::unique::Policy;
use tenure_core::{How, JobId, LeaseNo, NewJob, State, Unique};
use tenure_sqlite::SqliteStore;
use tenure_store::enqueue::Enqueued;
use tenure_store::journal::JournalPage;
use tenure_store::lease::{Ended, Ending, RenewLeases};
use tenure_store::operate::{CancelJob, Canceled, OpenJob, RequeueJob};
use tenure_store::record::Sight;
use tenure_store::user_tx::CompleteJob;
use tenure_store::{JobStore, JournalStore, LeaseStore, StoreError, audit};

use crate::fixture::{Fixture, error, failed, new_job, options, succeeded, word};

fn cancel(job: JobId, force: bool) -> CancelJob {
    CancelJob { sight: Sight::All, job, force, word: word() }
}

fn requeue(job: JobId) -> RequeueJob {
    RequeueJob { sight: Sight::All, job, word: word() }
}

fn keyed(fixture: &Fixture, key: &str) -> NewJob {
    NewJob { unique: Some(Unique::new(key, Policy::WhileActive)), ..new_job(fixture.clock.now()) }
}

/// S1. A transaction that began first and commits last would sort its rows before what it followed.
#[tokio::test]
async fn the_journal_is_in_the_order_of_the_commits() {
    let fixture = Fixture::file().await;
    let other = SqliteStore::open(fixture.path(), options(&fixture.clock)).unwrap();
    let jobs = fixture.enqueue(2).await;
    let lease = fixture.claim(1).await.unwrap().lease;
    let ((wrote, written), (go_on, wait)) = (mpsc::channel::<()>(), mpsc::channel::<()>());
    let (store, worker, (job, next)) = (fixture.store.clone(), fixture.worker, (jobs[0], jobs[1]));
    let first = tokio::spawn(async move {
        let work = store.transaction(move |tx| {
            tx.complete(&CompleteJob::new(worker, lease, job))?;
            drop(wrote);
            let _ = wait.recv();
            Ok::<_, StoreError>(())
        });
        work.await
    });
    tokio::task::yield_now().await;
    let _ = written.recv();
    // Written and not committed: nobody sees it, and the other store's verb comes after it.
    assert_eq!(other.show_job(&Sight::All, job).await.unwrap().summary.state, State::Running);
    let store = other.clone();
    let second = tokio::spawn(async move { store.cancel_job(cancel(next, false)).await });
    tokio::task::yield_now().await;
    assert!(!second.is_finished());
    drop(go_on);
    first.await.unwrap().unwrap();
    assert_eq!(second.await.unwrap().unwrap(), Canceled::Now);

    let rows = other.read_journal(JournalPage { seal: None, after: 0, limit: 10 }).await.unwrap();
    let said: Vec<_> = rows.iter().map(|row| (row.id, row.jobs[0])).collect();
    assert_eq!(said, [(1, job), (2, job), (3, next)]);
    fixture.store.seal_journal().await.unwrap().unwrap();
    assert_eq!(audit::verify(&other, None, |_| ()).await.unwrap().findings, []);
}

/// S2. An old snapshot anywhere stopped sealing.
#[tokio::test]
async fn who_reads_stops_no_seal() {
    let fixture = Fixture::file().await;
    fixture.enqueue(1).await;
    let reader = rusqlite::Connection::open(fixture.path()).unwrap();
    reader.execute_batch("begin; select count(*) from journal").unwrap();
    fixture.claim(1).await.unwrap();
    assert_eq!(fixture.store.seal_journal().await.unwrap().unwrap().rows, 1);
    let seen: i64 = reader.query_row("select count(*) from seal", [], |row| row.get(0)).unwrap();
    assert_eq!(seen, 0, "its snapshot stands");
    assert_eq!(audit::verify(&fixture.store, None, |_| ()).await.unwrap().tail, 0);
}

/// S4. A finished job whose sibling keeps the lease alive was pruned, and its repeated report accepted anew.
#[tokio::test]
async fn a_job_is_not_pruned_while_its_lease_lives() {
    let fixture = Fixture::file().await;
    let jobs = fixture.enqueue(2).await;
    let lease = fixture.claim(2).await.unwrap().lease;
    fixture.end(lease, jobs[0], succeeded()).await;
    fixture.clock.advance(Duration::from_secs(86_400));
    assert_eq!(fixture.prune().await, 0);
    assert_eq!(fixture.end(lease, jobs[0], succeeded()).await, Ended::Before(How::Succeeded));
    fixture.store.reclaim_jobs(None, 10).await.unwrap();
    assert_eq!(fixture.prune().await, 1);
    assert_eq!(fixture.end(lease, jobs[0], succeeded()).await, Ended::LeaseLost { how: None });
    fixture.assert_sound().await;
}

/// S5. Completed in a user's transaction that is rolled back: the job is still held, and everybody says so.
#[tokio::test]
async fn a_completion_that_is_rolled_back_leaves_the_job_with_its_holder() {
    for fixture in [Fixture::file().await, Fixture::memory().await] {
        let (job, worker) = (fixture.enqueue(1).await[0], fixture.worker);
        let lease = fixture.claim(1).await.unwrap().lease;
        let whole = fixture.store.transaction(move |tx| {
            tx.complete(&CompleteJob::new(worker, lease, job))?;
            Err::<(), _>(StoreError::Conflict("rolled back".into()))
        });
        assert!(matches!(whole.await, Err(StoreError::Conflict(_))));
        let part = fixture.store.transaction(move |tx| {
            let run = |sql| tx.connection().execute_batch(sql).map_err(StoreError::unavailable);
            run("savepoint mine")?;
            tx.complete(&CompleteJob::new(worker, lease, job))?;
            run("rollback to mine")
        });
        part.await.unwrap();
        let shown = fixture.store.show_job(&Sight::All, job).await.unwrap();
        assert_eq!((shown.summary.state, shown.lease, shown.attempts.len()), (State::Running, Some(lease), 0));
        let renewed = fixture.store.renew_leases(RenewLeases { worker, leases: vec![lease] }).await.unwrap();
        assert_eq!(renewed.leases, [lease]);
        let retry = Ending::Retry { delay: Duration::ZERO, error: error() };
        assert_eq!(fixture.end(lease, job, retry).await, Ended::Now(How::Retry), "the worker's report is the first");
        fixture.assert_sound().await;
    }
}

/// S6. A key taken over in a transaction that is rolled back is its old holder's again, and nobody waited for it.
#[tokio::test]
async fn a_key_taken_over_and_rolled_back_was_never_taken() {
    let fixture = Fixture::file().await;
    let (first, worker) = (keyed(&fixture, "k"), fixture.worker);
    let id = first.id;
    fixture.store.enqueue_jobs(vec![first]).await.unwrap();
    let lease = fixture.claim(1).await.unwrap().lease;
    let second = keyed(&fixture, "k");
    let rolled_back = fixture.store.transaction(move |tx| {
        tx.complete(&CompleteJob::new(worker, lease, id))?;
        assert!(matches!(tx.enqueue([second])?[..], [Enqueued::Created(_)]));
        Err::<(), _>(StoreError::Conflict("rolled back".into()))
    });
    assert!(rolled_back.await.is_err());
    let third = fixture.store.enqueue_jobs(vec![keyed(&fixture, "k")]).await.unwrap();
    assert_eq!(third, [Enqueued::Found { job: id, state: Some(State::Running) }]);
    fixture.end(lease, id, failed()).await;
    // Compare-and-set alone gave two active jobs: a requeue and a take-over meet on one key.
    let (revived, enqueued) =
        tokio::join!(fixture.store.requeue_job(requeue(id)), fixture.store.enqueue_jobs(vec![keyed(&fixture, "k")]));
    assert_eq!(revived.is_ok(), matches!(enqueued.unwrap()[..], [Enqueued::Found { .. }]));
}

/// S7. The reply was lost, the emptied lease is deleted, and the report comes again.
#[tokio::test]
async fn a_report_repeated_after_its_lease_went_finds_its_answer() {
    let fixture = Fixture::file().await;
    let job = fixture.enqueue(1).await[0];
    let lease = fixture.claim(1).await.unwrap().lease;
    assert_eq!(fixture.end(lease, job, succeeded()).await, Ended::Now(How::Succeeded));
    let leases = "select count(*) from lease";
    let conn = rusqlite::Connection::open(fixture.path()).unwrap();
    assert_eq!(conn.query_row(leases, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
    assert_eq!(fixture.end(lease, job, succeeded()).await, Ended::Before(How::Succeeded));
    assert_eq!(fixture.end(lease, job, failed()).await, Ended::LeaseLost { how: Some(How::Succeeded) });
}

/// S10. A cancel request and a retry passed each other; and a requeue must forget the request.
#[tokio::test]
async fn a_cancel_request_is_met_by_whatever_ends_the_attempt_and_forgotten_by_a_requeue() {
    let fixture = Fixture::file().await;
    let job = fixture.enqueue(1).await[0];
    let lease = fixture.claim(1).await.unwrap().lease;
    assert_eq!(fixture.store.cancel_job(cancel(job, false)).await.unwrap(), Canceled::Requested);
    fixture.clock.advance(Duration::from_secs(61));
    assert_eq!(fixture.store.reclaim_jobs(None, 10).await.unwrap()[0].how, How::Canceled);
    fixture.store.requeue_job(requeue(job)).await.unwrap();
    let again = fixture.claim(1).await.unwrap();
    assert_eq!((again.jobs.len(), again.canceled.len()), (1, 0));
    assert_eq!(fixture.end(lease, job, succeeded()).await, Ended::LeaseLost { how: Some(How::Canceled) });
    let release = Ending::Released { delay: Duration::ZERO };
    assert_eq!(fixture.end(again.lease, job, release).await, Ended::Now(How::Released));
    fixture.assert_sound().await;
}

/// S12. The clock goes back an hour: new jobs are found, holders hold, and nothing older is lost.
#[tokio::test]
async fn a_clock_that_goes_back_loses_nothing() {
    let fixture = Fixture::file().await;
    let start = fixture.clock.now();
    let before = fixture.enqueue(2).await;
    let held = fixture.claim(1).await.unwrap();
    fixture.clock.set(start.minus(Duration::from_secs(3_600)));
    let after = fixture.enqueue(1).await;
    let claimed = fixture.claim(5).await.unwrap();
    assert_eq!(
        claimed.jobs.iter().map(|job| job.id).collect::<Vec<_>>(),
        after,
        "what was due later waits for its time"
    );
    assert!(claimed.lease > held.lease, "the fence grows whatever the clock says");
    assert_eq!(fixture.store.reclaim_jobs(None, 10).await.unwrap(), [], "nobody's lease is taken");
    assert_eq!(fixture.end(held.lease, before[0], succeeded()).await, Ended::Now(How::Succeeded));
    fixture.clock.set(start);
    assert_eq!(fixture.claim(5).await.unwrap().jobs[0].id, before[1]);
    assert_eq!(fixture.store.reclaim_jobs(None, 10).await.unwrap()[0].job, after[0]);
    fixture.assert_sound().await;
}

/// S15. Operator endings drew no number, and the second cancel of a requeued job met the first.
#[tokio::test]
async fn a_requeued_job_can_be_canceled_again() {
    let fixture = Fixture::file().await;
    let job = fixture.enqueue(1).await[0];
    for _ in 0..3 {
        assert_eq!(fixture.store.cancel_job(cancel(job, false)).await.unwrap(), Canceled::Now);
        fixture.store.requeue_job(requeue(job)).await.unwrap();
    }
    let attempts = fixture.store.show_job(&Sight::All, job).await.unwrap().attempts;
    assert!(attempts.len() == 3 && attempts.windows(2).all(|pair| pair[0].lease < pair[1].lease), "{attempts:?}");
    assert!(fixture.claim(1).await.unwrap().lease > attempts[2].lease);
    fixture.assert_sound().await;
}

/// S20. A lease remembers losses; what is put back late or opened is due from now on, in front of nobody.
#[tokio::test]
async fn losses_are_kept_and_an_opened_job_is_due_now() {
    let fixture = Fixture::file().await;
    let waiting = NewJob { due: Due::WhenOpened, ..new_job(fixture.clock.now()) };
    let waits = waiting.id;
    fixture.store.enqueue_jobs(vec![waiting]).await.unwrap();
    let job = fixture.enqueue(1).await[0];
    for losses in 1..=2 {
        fixture.claim(5).await.unwrap();
        fixture.clock.advance(Duration::from_secs(61));
        assert_eq!(fixture.store.reclaim_jobs(None, 10).await.unwrap().len(), 1);
        assert_eq!(fixture.store.show_job(&Sight::All, job).await.unwrap().losses, losses);
    }
    fixture.store.open_job(OpenJob { sight: Sight::All, job: waits, word: word() }).await.unwrap();
    let opened = fixture.store.show_job(&Sight::All, waits).await.unwrap();
    assert_eq!(opened.summary.run_at, fixture.clock.now());
    // The second loss waits a second, so the opened job comes alone; the first one's losses come with it later.
    assert_eq!(fixture.claim(5).await.unwrap().jobs[0].id, waits);
    fixture.clock.advance(Duration::from_secs(1));
    let claimed = fixture.claim(5).await.unwrap();
    assert_eq!((claimed.jobs[0].id, claimed.jobs[0].losses, claimed.jobs[0].attempt), (job, 2, 1));
    assert_eq!(
        fixture.store.release_unknown(fixture.worker, vec![claimed.lease], LeaseNo::MAX).await.unwrap(),
        [waits]
    );
    fixture.assert_sound().await;
}
