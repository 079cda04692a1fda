//! What goes wrong in the middle: a commit that fails, a transaction that is gone, a caller that gives up, a row that
//! cannot be read.

use std::sync::mpsc;

use tenure_core::name::QueueName;
use tenure_core::{How, State};
use tenure_store::lease::Ended;
use tenure_store::operate::{LEASE_TTL_DEFAULT, RequeueJob, SetQueue};
use tenure_store::record::{JobFilter, Sight};
use tenure_store::user_tx::CompleteJob;
use tenure_store::{AdminStore, JobStore, JournalStore, StoreError, audit};

use crate::fixture::{Fixture, failed, new_job, succeeded, word};
use crate::writer::occupy;

/// A table of the user's with a deferred constraint, and a trigger that breaks it for a queue called `bomb`: the
/// statement succeeds, the commit does not.
const BOMB: &str = "
    create table parent (id integer primary key);
    create table child (parent integer references parent (id) deferrable initially deferred);
    create trigger bomb after insert on queue when new.name = 'bomb' begin insert into child values (7); end;";

async fn batch(fixture: &Fixture, sql: &'static str) {
    let run = fixture.store.transaction(move |tx| tx.connection().execute_batch(sql).map_err(StoreError::unavailable));
    run.await.unwrap();
}

fn made(name: &str) -> SetQueue {
    SetQueue::new(QueueName::new(name).unwrap(), LEASE_TTL_DEFAULT)
}

/// Whoever shared the failed commit is told that nobody knows, also the one whose refusal rests on what a neighbour
/// wrote and nobody kept.
#[tokio::test]
async fn a_group_whose_commit_fails_answers_nobody() {
    let fixture = Fixture::file().await;
    batch(&fixture, BOMB).await;
    let job = fixture.enqueue(1).await[0];
    let lease = fixture.claim(1).await.unwrap().lease;
    fixture.end(lease, job, failed()).await;
    let requeue = || RequeueJob { sight: Sight::All, job, word: word() };
    let (store, (free, occupied)) = (&fixture.store, occupy(&fixture));
    tokio::task::yield_now().await;
    let group = async {
        tokio::join!(
            store.requeue_job(requeue()),
            store.requeue_job(requeue()),
            store.enqueue_jobs(vec![new_job(fixture.clock.now())]),
            store.set_queue(made("bomb"))
        )
    };
    let free_later = async {
        tokio::task::yield_now().await;
        drop(free);
    };
    let ((first, second, enqueued, bomb), ()) = tokio::join!(group, free_later);
    occupied.await.unwrap();
    for answer in [first, second, enqueued.map(drop), bomb] {
        assert!(matches!(answer, Err(StoreError::Unavailable(..))), "{answer:?}");
    }
    assert_eq!(fixture.state(job).await, State::Failed);
    assert_eq!(store.list_jobs(&JobFilter::default()).await.unwrap().len(), 1);
    // Sent again without that neighbour, everything goes its way.
    store.requeue_job(requeue()).await.unwrap();
    assert!(matches!(store.requeue_job(requeue()).await, Err(StoreError::Conflict(_))));
    fixture.assert_sound().await;
}

#[tokio::test]
async fn a_deferred_constraint_of_the_users_is_a_conflict() {
    for fixture in [Fixture::file().await, Fixture::memory().await] {
        batch(&fixture, BOMB).await;
        let job = new_job(fixture.clock.now());
        let refused = fixture.store.transaction(move |tx| {
            tx.connection().execute("insert into child values (7)", []).map_err(StoreError::unavailable)?;
            tx.enqueue([job])
        });
        assert!(matches!(refused.await, Err(StoreError::Conflict(_))));
        assert!(fixture.claim(1).await.is_none());
    }
}

/// A full disk may end the transaction in the middle of a user's closure that does not look at errors: what follows
/// would be kept statement by statement.
#[tokio::test]
async fn no_verb_runs_after_the_end_of_its_transaction() {
    for fixture in [Fixture::file().await, Fixture::memory().await] {
        let job = fixture.enqueue(1).await[0];
        let lease = fixture.claim(1).await.unwrap().lease;
        let (worker, next) = (fixture.worker, new_job(fixture.clock.now()));
        let id = next.id;
        let ended = fixture.store.transaction(move |tx| {
            tx.connection().execute_batch("rollback").map_err(StoreError::unavailable)?;
            assert!(matches!(tx.enqueue([next]), Err(StoreError::Unavailable(..))));
            assert!(matches!(tx.complete(&CompleteJob::new(worker, lease, job)), Err(StoreError::Unavailable(..))));
            Ok(())
        });
        assert!(matches!(ended.await, Err(StoreError::Unavailable(..))));
        assert!(matches!(fixture.store.show_job(&Sight::All, id).await, Err(StoreError::NotFound(_))));
        assert_eq!(fixture.end(lease, job, succeeded()).await, Ended::Now(How::Succeeded));
    }
}

#[tokio::test]
async fn a_verb_whose_caller_gave_up_is_run_all_the_same() {
    let fixture = Fixture::file().await;
    let (free, occupied) = occupy(&fixture);
    tokio::task::yield_now().await;
    let (store, job) = (fixture.store.clone(), new_job(fixture.clock.now()));
    let id = job.id;
    let enqueue = tokio::spawn(async move { store.enqueue_jobs(vec![job]).await });
    tokio::task::yield_now().await;
    enqueue.abort();
    assert!(enqueue.await.unwrap_err().is_cancelled());
    drop(free);
    occupied.await.unwrap();
    // One writer: this one is answered after it.
    fixture.enqueue(1).await;
    assert_eq!(fixture.state(id).await, State::Queued);
}

/// The answer of a caller that gave up is dropped on the writer thread. Without that thread everybody would wait.
#[tokio::test]
async fn a_value_that_panics_when_it_is_dropped_stops_nobody() {
    struct Grenade;
    impl Drop for Grenade {
        fn drop(&mut self) {
            panic!("a bug of the user's")
        }
    }
    let fixture = Fixture::file().await;
    let ((started, begun), (go_on, wait)) = (mpsc::channel::<()>(), mpsc::channel::<()>());
    let store = fixture.store.clone();
    let thrown = tokio::spawn(async move {
        let work = store.transaction(move |_| {
            drop(started);
            let _ = wait.recv();
            Ok::<_, StoreError>(Grenade)
        });
        std::mem::forget(work.await);
    });
    tokio::task::yield_now().await;
    let _ = begun.recv();
    thrown.abort();
    assert!(thrown.await.unwrap_err().is_cancelled());
    drop(go_on);
    assert_eq!(fixture.enqueue(3).await.len(), 3);
    fixture.assert_sound().await;
}

/// RELIABILITY 47: one row that nobody can read must not stop the claims of its queue.
#[tokio::test]
async fn a_job_that_cannot_be_read_fails_alone() {
    for fixture in [Fixture::file().await, Fixture::memory().await] {
        let jobs = fixture.enqueue(3).await;
        let bad = "
            create table keep as select * from job where id = (select min(id) from job);
            update keep set backoff = 'sometimes';
            delete from job where id = (select id from keep);
            insert into job select * from keep;";
        batch(&fixture, bad).await;
        // Alone in its batch, and then beside others.
        let alone = fixture.claim(1).await.unwrap();
        assert_eq!((alone.jobs.len(), alone.canceled.len()), (0, 0));
        let claimed = fixture.claim(5).await.unwrap();
        assert_eq!(claimed.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), jobs[1..]);
        let how = "select how, error ->> 'code' from attempt where final = 1";
        let (how, code): (i64, String) = fixture
            .store
            .transaction(move |tx| {
                tx.connection()
                    .query_row(how, [], |row| Ok((row.get(0)?, row.get(1)?)))
                    .map_err(StoreError::unavailable)
            })
            .await
            .unwrap();
        assert_eq!((how, code.as_str()), (3, "unreadable"));
        fixture.assert_sound().await;
        fixture.store.seal_journal().await.unwrap();
        assert_eq!(audit::verify(&fixture.store, None, |_| ()).await.unwrap().findings, []);
    }
}
