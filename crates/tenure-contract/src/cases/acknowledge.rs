//! `acknowledge` (the holder ends a job as canceled) in every situation.

use tenure_store::lease::Ending;

use super::situation::{
    EXPIRED, FENCED, HELD, REFUSED, STAYS_CANCELED, SUCCESSOR_RUNS, one_of_two_reports_is_written, story,
};
use crate::fixture::Fixture;

/// Fresh: the holder may decide so by itself.
pub async fn a_holder_cancels_its_own_job(t: Fixture) {
    let acknowledge = "
        acknowledge W1  J1  lease=L1  -> canceled
        show     J1  state=canceled  attempt=1  lease=none  attempts=canceled  finished_at=+0s
        claim    W1  -> nothing
        journal  J1  claimed:L1  canceled:L1
    ";
    story(&t, &[HELD, acknowledge]).await;
}

/// Stale fence: the successor was not asked.
pub async fn a_stale_worker_cannot_acknowledge_while_its_successor_runs(t: Fixture) {
    story(&t, &[SUCCESSOR_RUNS, "acknowledge W1 J1 lease=L1 -> lease_lost:lost", REFUSED]).await;
}

/// Expired: what nobody took back is still its holder's.
pub async fn an_expired_lease_may_still_acknowledge(t: Fixture) {
    let acknowledge = "
        acknowledge W1  J1  lease=L1  -> canceled
        reclaim  -> nothing
        show     J1  state=canceled  attempts=canceled
    ";
    story(&t, &[EXPIRED, acknowledge]).await;
}

/// Canceled: fenced by force, it is what the holder says anyway.
pub async fn an_acknowledgement_after_a_forced_cancel_was_done_before(t: Fixture) {
    story(
        &t,
        &[FENCED, "acknowledge W1 J1 lease=L1 -> before:canceled", STAYS_CANCELED, "journal J1 claimed:L1 canceled:L1"],
    )
    .await;
}

/// Unknown id: a job that the lease does not list.
pub async fn an_acknowledgement_of_a_job_the_lease_does_not_list_is_lost(t: Fixture) {
    let acknowledge = "
        enqueue  J2
        acknowledge W1  J2  lease=L1  -> lease_lost
        acknowledge W1  J9  lease=L1  -> lease_lost:gone
        show     J2  state=queued  attempts=none
        complete W1  J1  lease=L1
    ";
    story(&t, &[HELD, acknowledge]).await;
}

/// Reply lost: also after somebody revived the job, who is not stopped by it.
pub async fn an_acknowledgement_sent_twice_is_written_once(t: Fixture) {
    let acknowledge = "
        acknowledge W1  J1  lease=L1  -> canceled
        acknowledge W1  J1  lease=L1  -> before:canceled
        requeue  J1
        claim    W2  J1  lease=L2
        acknowledge W1  J1  lease=L1  -> before:canceled
        show     J1  state=running  lease=L2  attempts=canceled
        complete W2  J1  lease=L2
        journal  J1  claimed:L1  canceled:L1  requeued  claimed:L2  succeeded:L2
    ";
    story(&t, &[HELD, acknowledge]).await;
}

/// Wrong tenant: the lease of another worker.
pub async fn a_worker_cannot_acknowledge_under_the_lease_of_another(t: Fixture) {
    let acknowledge = "
        acknowledge W2  J1  lease=L1  -> lease_lost
        show     J1  state=running  lease=L1  attempts=none
        complete W1  J1  lease=L1
    ";
    story(&t, &[HELD, acknowledge]).await;
}

/// Concurrent twin.
pub async fn of_two_acknowledgements_one_is_written(t: Fixture) {
    one_of_two_reports_is_written(t, Ending::Canceled { error: None }).await;
}
