//! `open` in every situation.

use tenure_core::new_job::Due;
use tenure_core::{JobId, NewJob, State};
use tenure_store::StoreError;
use tenure_store::operate::{OpenJob, Word};
use tenure_store::record::Sight;

use super::situation::{ROUNDS, both, story};
use crate::fixture::{Fixture, cancel};

/// Fresh: due from now on.
pub async fn an_opened_job_is_due_now(t: Fixture) {
    let script = "
        enqueue  J1  waiting
        advance  1h
        open     J1  actor=fan-in  reason=\"all partitions are done\"
        show     J1  state=queued  run_at=+0s
        claim    W1  J1  lease=L1
        complete W1  J1  lease=L1
        journal  J1  opened  claimed:L1  succeeded:L1
    ";
    story(&t, &[script]).await;
}

/// Canceled: it stays so.
pub async fn a_canceled_waiting_job_cannot_be_opened(t: Fixture) {
    let script = "
        enqueue  J1  waiting
        cancel   J1
        open     J1  -> conflict naming J1
        show     J1  state=canceled
        claim    W1  -> nothing
        journal  J1  canceled
    ";
    story(&t, &[script]).await;
}

/// Unknown id.
pub async fn an_unknown_job_cannot_be_opened(t: Fixture) {
    story(&t, &["open J9 -> not_found"]).await;
}

/// Reply lost: the second one is told that the job does not wait.
pub async fn an_opening_sent_twice_is_written_once(t: Fixture) {
    let script = "
        enqueue  J1  waiting
        open     J1
        advance  1m
        open     J1  -> conflict
        show     J1  state=queued  run_at=-1m
        journal  J1  opened
    ";
    story(&t, &[script]).await;
}

/// Wrong tenant: there is no such job.
pub async fn a_job_of_another_tenant_cannot_be_opened(t: Fixture) {
    let script = "
        enqueue  J1  waiting  tenant=acme
        open     J1  sight=zoo  -> not_found
        show     J1  state=waiting
        open     J1  sight=acme
    ";
    story(&t, &[script]).await;
}

/// Concurrent twin.
pub async fn of_two_openings_one_wins(t: Fixture) {
    for _ in 0..ROUNDS {
        let job = NewJob { due: Due::WhenOpened, ..t.new_job() };
        let id = job.id;
        t.store.enqueue_jobs(vec![job]).await.expect("enqueue");
        let (first, second) = (t.store.clone(), t.store.clone());
        let answers =
            both(async move { first.open_job(open(id)).await }, async move { second.open_job(open(id)).await }).await;
        assert!(
            matches!(answers, (Ok(()), Err(StoreError::Conflict(_))) | (Err(StoreError::Conflict(_)), Ok(()))),
            "{answers:?}"
        );
        assert_eq!(t.show(id).await.summary.state, State::Queued);
    }
}

/// Concurrent twin: what was opened can be canceled, what was canceled cannot be opened.
pub async fn an_opening_that_meets_a_cancel_does_not_revive_the_job(t: Fixture) {
    for _ in 0..ROUNDS {
        let job = NewJob { due: Due::WhenOpened, ..t.new_job() };
        let id = job.id;
        t.store.enqueue_jobs(vec![job]).await.expect("enqueue");
        let (first, second) = (t.store.clone(), t.store.clone());
        let (opened, canceled) = both(async move { first.open_job(open(id)).await }, async move {
            second.cancel_job(cancel(id, false)).await.expect("cancel")
        })
        .await;
        assert!(matches!(opened, Ok(()) | Err(StoreError::Conflict(_))), "{opened:?}");
        assert_eq!(t.show(id).await.summary.state, State::Canceled, "after {opened:?} and {canceled:?}");
    }
}

fn open(job: JobId) -> OpenJob {
    OpenJob { sight: Sight::All, job, word: Word::default() }
}
