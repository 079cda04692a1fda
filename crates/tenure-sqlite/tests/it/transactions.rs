//! Tenure's verbs inside a user's own transaction.

use std::time::Duration;

use tenure_core::journal::JournalEvent;
use tenure_core::unique::{Policy, Unique};
use tenure_core::{How, Json, LeaseNo, NewJob, State};
use tenure_store::enqueue::Enqueued;
use tenure_store::journal::JournalPage;
use tenure_store::lease::Ended;
use tenure_store::operate::{CancelJob, Quota, SetQueue};
use tenure_store::record::Sight;
use tenure_store::user_tx::{CompleteJob, UserTx};
use tenure_store::{AdminStore, JobStore, JournalStore, LeaseStore, StoreError};

use crate::fixture::{Fixture, new_job, succeeded, word};

async fn make_ledger(fixture: &Fixture) {
    let made = fixture.store.transaction(|tx| {
        tx.connection().execute_batch("create table ledger (entry text)").map_err(StoreError::unavailable)
    });
    made.await.unwrap();
}

async fn entries(fixture: &Fixture) -> i64 {
    let count = fixture.store.transaction(|tx| {
        tx.connection().query_row("select count(*) from ledger", [], |row| row.get(0)).map_err(StoreError::unavailable)
    });
    count.await.unwrap()
}

#[tokio::test]
async fn rows_jobs_and_completion_are_kept_together() {
    for fixture in [Fixture::memory().await, Fixture::file().await] {
        make_ledger(&fixture).await;
        let job = fixture.enqueue(1).await[0];
        let lease = fixture.claim(1).await.unwrap().lease;
        let (worker, next) = (fixture.worker, new_job(fixture.clock.now()));
        let next_id = next.id;
        let kept = fixture.store.transaction(move |tx| {
            tx.connection().execute("insert into ledger values ('paid')", []).map_err(StoreError::unavailable)?;
            tx.enqueue(vec![next])?;
            tx.complete(&CompleteJob::new(worker, lease, job))
        });
        kept.await.unwrap();
        assert_eq!((fixture.state(job).await, fixture.state(next_id).await), (State::Succeeded, State::Queued));
        assert_eq!(entries(&fixture).await, 1);
        // The reporter's own report finds the answer, and the emptied lease goes.
        assert_eq!(fixture.end(lease, job, succeeded()).await, Ended::Before(How::Succeeded));
        fixture.assert_sound().await;
    }
}

#[tokio::test]
async fn a_rolled_back_transaction_leaves_nothing() {
    for fixture in [Fixture::memory().await, Fixture::file().await] {
        make_ledger(&fixture).await;
        let job = fixture.enqueue(1).await[0];
        let lease = fixture.claim(1).await.unwrap().lease;
        let (worker, next) = (fixture.worker, new_job(fixture.clock.now()));
        let next_id = next.id;
        let refused = fixture.store.transaction(move |tx| {
            tx.connection().execute("insert into ledger values ('paid')", []).map_err(StoreError::unavailable)?;
            tx.enqueue(vec![next])?;
            tx.complete(&CompleteJob::new(worker, lease, job))?;
            Err::<(), _>(StoreError::Conflict("the user changed its mind".into()))
        });
        assert!(matches!(refused.await, Err(StoreError::Conflict(_))));
        assert_eq!(fixture.state(job).await, State::Running);
        assert!(matches!(fixture.store.show_job(&Sight::All, next_id).await, Err(StoreError::NotFound(_))));
        assert_eq!(entries(&fixture).await, 0);
        assert_eq!(fixture.end(lease, job, succeeded()).await, Ended::Now(How::Succeeded));
        fixture.assert_sound().await;
    }
}

/// A user may go on without the job, and commit.
#[tokio::test]
async fn an_enqueue_that_was_refused_leaves_nothing_behind() {
    for fixture in [Fixture::memory().await, Fixture::file().await] {
        make_ledger(&fixture).await;
        let quota = Some(Quota::Pending(1));
        let queue = SetQueue { quota, ..SetQueue::new(Default::default(), Duration::from_secs(60)) };
        fixture.store.set_queue(queue).await.unwrap();
        let unique = Some(Unique::new("k", Policy::WhileActive));
        let (stored, refused) = (new_job(fixture.clock.now()), NewJob { unique, ..new_job(fixture.clock.now()) });
        let ids = [stored.id, refused.id];
        let kept = fixture.store.transaction(move |tx| {
            tx.connection().execute("insert into ledger values ('paid')", []).map_err(StoreError::unavailable)?;
            let answer = tx.enqueue(vec![stored, refused]);
            assert!(matches!(answer, Err(StoreError::Full(_))), "{answer:?}");
            Ok::<_, StoreError>(())
        });
        kept.await.unwrap();
        assert_eq!(entries(&fixture).await, 1);
        for job in ids {
            assert!(matches!(fixture.store.show_job(&Sight::All, job).await, Err(StoreError::NotFound(_))));
        }
        fixture.assert_sound().await;
    }
}

async fn refusals(fixture: &Fixture) -> usize {
    let page = JournalPage { seal: None, after: 0, limit: 1_000 };
    let rows = fixture.store.read_journal(page).await.unwrap();
    rows.iter().filter(|row| row.event == JournalEvent::Refused).count()
}

/// What a library built on the port writes: the store follows from the transaction, and the reply is there at once.
fn complete<S, X: UserTx<S>>(tx: X, request: CompleteJob) -> X::Reply<Result<(), StoreError>> {
    tx.complete_job(request, |answer| answer)
}

#[tokio::test]
async fn a_transaction_is_a_users_transaction_of_the_port() {
    for fixture in [Fixture::memory().await, Fixture::file().await] {
        let job = fixture.enqueue(1).await[0];
        let (lease, worker) = (fixture.claim(1).await.unwrap().lease, fixture.worker);
        let next = new_job(fixture.clock.now());
        let next_id = next.id;
        let kept = fixture.store.transaction(move |tx| {
            let stored = tx.enqueue_jobs(vec![next], |answer| answer)?;
            complete(tx, CompleteJob { result: Some(Json::null()), ..CompleteJob::new(worker, lease, job) })?;
            Ok::<_, StoreError>(stored)
        });
        assert_eq!(kept.await.unwrap(), [Enqueued::Created(next_id)]);
        assert_eq!((fixture.state(job).await, fixture.state(next_id).await), (State::Succeeded, State::Queued));
        let stale = CompleteJob::new(worker, LeaseNo(lease.0 + 1), job);
        let refused = fixture.store.transaction(move |tx| complete(tx, stale));
        assert!(matches!(refused.await, Err(StoreError::LeaseLost(lost)) if lost == job));
        assert_eq!(refusals(&fixture).await, 0);
        fixture.assert_sound().await;
    }
}

/// The simulation's seed 9: a handler that heard nothing of its commit ran its transaction again, and paid twice.
#[tokio::test]
async fn a_transaction_run_again_does_not_write_twice() {
    for fixture in [Fixture::memory().await, Fixture::file().await] {
        make_ledger(&fixture).await;
        let job = fixture.enqueue(1).await[0];
        let (lease, worker) = (fixture.claim(1).await.unwrap().lease, fixture.worker);
        let pay = || {
            fixture.store.transaction(move |tx| {
                tx.connection().execute("insert into ledger values ('paid')", []).map_err(StoreError::unavailable)?;
                tx.complete(&CompleteJob::new(worker, lease, job))
            })
        };
        pay().await.unwrap();
        assert!(matches!(pay().await, Err(StoreError::Conflict(_))));
        assert_eq!((fixture.state(job).await, entries(&fixture).await), (State::Succeeded, 1));
        fixture.assert_sound().await;
    }
}

#[tokio::test]
async fn a_stale_holder_cannot_complete() {
    let fixture = Fixture::memory().await;
    let job = fixture.enqueue(1).await[0];
    let lease = fixture.claim(1).await.unwrap().lease;
    fixture.clock.advance(std::time::Duration::from_secs(61));
    fixture.store.reclaim_jobs(None, 10).await.unwrap();
    let worker = fixture.worker;
    let complete = fixture.store.transaction(move |tx| tx.complete(&CompleteJob::new(worker, lease, job)));
    assert!(matches!(complete.await, Err(StoreError::LeaseLost(lost)) if lost == job));
    // Rolled back, as it must be, and the refusal with it.
    assert_eq!(refusals(&fixture).await, 0);
    // Who ignores the answer and commits has at least left a trace.
    let ignored = fixture.store.transaction(move |tx| {
        assert!(matches!(tx.complete(&CompleteJob::new(worker, lease, job)), Err(StoreError::LeaseLost(_))));
        Ok::<_, StoreError>(())
    });
    ignored.await.unwrap();
    assert_eq!(refusals(&fixture).await, 1);
    let force = CancelJob { sight: Sight::All, job, force: true, word: word() };
    fixture.store.cancel_job(force).await.unwrap();
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_closure_that_commits_by_itself_is_told() {
    let fixture = Fixture::file().await;
    let ended =
        fixture.store.transaction(|tx| tx.connection().execute_batch("commit").map_err(StoreError::unavailable));
    assert!(matches!(ended.await, Err(StoreError::Unavailable(..))));
    assert_eq!(fixture.enqueue(1).await.len(), 1);
}
