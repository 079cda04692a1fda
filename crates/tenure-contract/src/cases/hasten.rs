//! `hasten` in every situation.

use std::time::Duration;

use tenure_core::NewJob;
use tenure_core::journal::JournalEvent;
use tenure_core::new_job::Due;
use tenure_store::operate::{HastenJob, Word};
use tenure_store::record::Sight;

use super::situation::{EXPIRED, ROUNDS, SUCCESSOR_RUNS, SUCCESSOR_UNHARMED, both, story};
use crate::fixture::Fixture;

/// Fresh: a delayed job, one that waits for its next try, and one that waits to be opened, are due now. What was charged
/// stays so.
pub async fn a_hastened_job_is_due_now(t: Fixture) {
    let script = "
        enqueue  J1  delay=1h
        claim    W1  -> nothing
        advance  1m
        hasten   J1  actor=ops  reason=\"now, please\"
        show     J1  state=queued  run_at=+0s
        claim    W1  J1  lease=L1
        fail     W1  J1  lease=L1  -> retry
        show     J1  state=retryable  attempt=1
        hasten   J1
        show     J1  state=retryable  run_at=+0s  attempt=1
        claim    W1  J1  lease=L2
        complete W1  J1  lease=L2
        journal  J1  hastened  claimed:L1  retry:L1  hastened  claimed:L2  succeeded:L2
        enqueue  J2  waiting
        hasten   J2
        show     J2  state=queued  run_at=+0s
        journal  J2  opened
        claim    W1  J2  lease=L3
    ";
    story(&t, &[script]).await;
}

/// Who and why is written down; a job that is due already has no row.
pub async fn a_job_that_is_due_is_not_hastened(t: Fixture) {
    let script = "
        enqueue  J1
        hasten   J1  -> before
        enqueue  J2  delay=10s
        advance  10s
        hasten   J2  -> before
        show     J2  state=queued  run_at=+0s
    ";
    story(&t, &[script]).await;
    assert_eq!(t.journal().await, []);
    let delayed = NewJob { due: Due::After(Duration::from_secs(60)), ..t.new_job() };
    let job = delayed.id;
    t.store.enqueue_jobs(vec![delayed]).await.expect("enqueue");
    let word = Word { actor: Some("ann".into()), reason: Some("it is late".into()) };
    t.store.hasten_job(HastenJob { sight: Sight::All, job, word: word.clone() }).await.expect("hasten");
    let rows = t.journal().await;
    let said: Vec<_> = rows.iter().map(|row| (row.event, &row.actor, &row.reason, &row.jobs[..], row.at)).collect();
    assert_eq!(said, [(JournalEvent::Hastened, &word.actor, &word.reason, &[job][..], t.clock.now())]);
}

/// Stale fence: the successor runs it.
pub async fn a_running_job_cannot_be_hastened(t: Fixture) {
    story(&t, &[SUCCESSOR_RUNS, "hasten J1 -> conflict", SUCCESSOR_UNHARMED]).await;
}

/// Expired: it runs until it is taken back.
pub async fn a_job_under_an_expired_lease_cannot_be_hastened(t: Fixture) {
    story(&t, &[EXPIRED, "hasten J1 -> conflict\n show J1 state=running lease=L1"]).await;
}

/// Canceled: it stays so.
pub async fn a_job_that_has_ended_cannot_be_hastened(t: Fixture) {
    let script = "
        enqueue  J1  delay=1h
        cancel   J1
        hasten   J1  -> conflict
        show     J1  state=canceled
        journal  J1  canceled
    ";
    story(&t, &[script]).await;
}

/// Unknown id.
pub async fn an_unknown_job_cannot_be_hastened(t: Fixture) {
    story(&t, &["hasten J9 -> not_found"]).await;
}

/// Reply lost: the second one finds it due.
pub async fn a_job_hastened_twice_is_written_once(t: Fixture) {
    let script = "
        enqueue  J1  delay=1h
        hasten   J1
        advance  1m
        hasten   J1  -> before
        show     J1  state=queued  run_at=-1m
        journal  J1  hastened
    ";
    story(&t, &[script]).await;
}

/// Wrong tenant: there is no such job.
pub async fn a_job_of_another_tenant_cannot_be_hastened(t: Fixture) {
    let script = "
        enqueue  J1  delay=1h  tenant=acme
        hasten   J1  sight=zoo  -> not_found
        show     J1  state=queued  run_at=+1h
        hasten   J1  sight=acme
    ";
    story(&t, &[script]).await;
}

/// Concurrent twin.
pub async fn of_two_that_hasten_a_job_one_is_written(t: Fixture) {
    for round in 1..=ROUNDS {
        let job = NewJob { due: Due::After(Duration::from_secs(60)), ..t.new_job() };
        let id = job.id;
        t.store.enqueue_jobs(vec![job]).await.expect("enqueue");
        let hasten = || {
            let store = t.store.clone();
            let request = HastenJob { sight: Sight::All, job: id, word: Word::default() };
            async move { store.hasten_job(request).await.expect("hasten") }
        };
        let (first, second) = both(hasten(), hasten()).await;
        assert!(first != second, "one was first: {first}, {second}");
        assert_eq!(t.journal().await.len(), round);
    }
}
