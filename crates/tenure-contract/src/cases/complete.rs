//! `complete` in every situation.

use std::time::Duration;

use tenure_core::{How, Json, State};
use tenure_store::lease::{Ended, Ending};

use super::situation::{
    EXPIRED, FENCED, HELD, REFUSED, ROUNDS, STAYS_CANCELED, SUCCESSOR_RUNS, both, one_of_two_reports_is_written, story,
};
use crate::fixture::{Fixture, cancel, success};

/// Fresh: it is done.
pub async fn a_holder_completes_its_job(t: Fixture) {
    let complete = "
        complete W1  J1  lease=L1  result='{\"ok\":true}'  -> completed
        show     J1  state=succeeded  attempt=1  lease=none  holder=none  attempts=succeeded  result='{\"ok\":true}'
        journal  J1  claimed:L1  succeeded:L1
    ";
    story(&t, &[HELD, complete]).await;
}

/// Stale fence: the successor goes on, and its result is the one that stays.
pub async fn a_stale_worker_cannot_complete_while_its_successor_runs(t: Fixture) {
    story(&t, &[SUCCESSOR_RUNS, "complete W1 J1 lease=L1 -> lease_lost:lost", REFUSED]).await;
}

/// Expired: what nobody took back is still its holder's.
pub async fn an_expired_lease_may_still_complete(t: Fixture) {
    let complete = "
        complete W1  J1  lease=L1  -> completed
        reclaim  -> nothing
        show     J1  state=succeeded  attempts=succeeded
        claim    W2  -> nothing
    ";
    story(&t, &[EXPIRED, complete]).await;
}

/// Canceled: fenced by force, the result is dropped.
pub async fn a_completion_after_a_forced_cancel_is_lost(t: Fixture) {
    story(
        &t,
        &[
            FENCED,
            "complete W1 J1 lease=L1 -> lease_lost:canceled",
            STAYS_CANCELED,
            "journal J1 claimed:L1 canceled:L1 refused:L1",
        ],
    )
    .await;
}

/// Unknown id: a job that the lease does not list.
pub async fn a_completion_of_a_job_the_lease_does_not_list_is_lost(t: Fixture) {
    let complete = "
        enqueue  J2
        complete W1  J2  lease=L1  -> lease_lost
        complete W1  J9  lease=L1  -> lease_lost:gone
        show     J2  state=queued  attempts=none
        show     J9  -> not_found
        complete W1  J1  lease=L1
        # J2 is a job and J9 is none: the record cannot be filled with invented ids.
        journal  J2  refused:L1
        journal  J9
    ";
    story(&t, &[HELD, complete]).await;
}

/// Reply lost: the answer says that it was done before.
pub async fn a_completion_sent_twice_is_answered_as_done_before(t: Fixture) {
    let complete = "
        complete W1  J1  lease=L1  result=1  -> completed
        complete W1  J1  lease=L1  result=1  -> before:succeeded
        drop     W1  lease=L1
        complete W1  J1  lease=L1  result=1  -> before:succeeded
        show     J1  state=succeeded  attempts=succeeded  result=1
        journal  J1  claimed:L1  succeeded:L1
        # And while a sibling keeps the lease alive.
        enqueue  J2  J3
        claim    W1  J2 J3  lease=L2
        complete W1  J2  lease=L2  -> completed
        complete W1  J2 J3  lease=L2  -> before:succeeded succeeded
        journal  J2  claimed:L2  succeeded:L2
    ";
    story(&t, &[HELD, complete]).await;
}

/// Wrong tenant: the lease of another worker.
pub async fn a_worker_cannot_complete_under_the_lease_of_another(t: Fixture) {
    let complete = "
        complete W2  J1  lease=L1  -> lease_lost
        show     J1  state=running  lease=L1  holder=W1  attempts=none
        complete W1  J1  lease=L1  -> completed
        journal  J1  claimed:L1  refused:L1  succeeded:L1
    ";
    story(&t, &[HELD, complete]).await;
}

/// Concurrent twin: the same report twice.
pub async fn of_two_completions_one_is_written(t: Fixture) {
    one_of_two_reports_is_written(t, success()).await;
}

/// Concurrent twin: two reports that say different things.
pub async fn a_completion_and_a_failure_cannot_both_win(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        let (lease, _) = t.claim_one(worker).await;
        let (first, second) = (t.clone(), t.clone());
        let failed = Ending::Failed { error: Json::null() };
        let answers = both(async move { first.end(worker, lease, job, success()).await }, async move {
            second.end(worker, lease, job, failed).await
        })
        .await;
        let how = match answers {
            (Ended::Now(won), Ended::LeaseLost { how: Some(how) })
            | (Ended::LeaseLost { how: Some(how) }, Ended::Now(won))
                if won == how =>
            {
                how
            }
            other => panic!("{other:?}"),
        };
        let record = t.show(job).await;
        assert_eq!((record.summary.state, record.attempts.len()), (how.leads_to(), 1));
    }
}

/// Concurrent twin: a report and the reclaim of its lease meet on the same grant.
pub async fn a_completion_and_a_reclaim_cannot_both_win(t: Fixture) {
    let worker = t.worker("one").await;
    for _ in 0..ROUNDS {
        let job = t.enqueue().await;
        let (lease, _) = t.claim_one(worker).await;
        t.advance(Duration::from_secs(61));
        let (reporter, reclaimer) = (t.clone(), t.store.clone());
        let (answer, reclaimed) = both(async move { reporter.end(worker, lease, job, success()).await }, async move {
            reclaimer.reclaim_jobs(None, 10).await.expect("reclaim")
        })
        .await;
        let record = t.show(job).await;
        let state = record.summary.state;
        match (answer, reclaimed.len()) {
            (Ended::Now(How::Succeeded), 0) => assert_eq!(state, State::Succeeded),
            (Ended::LeaseLost { how: Some(How::Lost) }, 1) => {
                assert_eq!((state, record.losses), (State::Queued, 1));
                t.store.cancel_job(cancel(job, false)).await.expect("cancel");
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(record.attempts.len(), 1);
    }
}
