//! `release` in every situation.

use std::time::Duration;

use tenure_store::lease::Ending;

use super::situation::{
    EXPIRED, FENCED, HELD, REFUSED, STAYS_CANCELED, SUCCESSOR_RUNS, one_of_two_reports_is_written, story,
};
use crate::fixture::Fixture;

/// Fresh: later, uncharged.
pub async fn a_holder_releases_its_job(t: Fixture) {
    let release = "
        release  W1  J1  lease=L1  delay=30s
        show     J1  state=queued  attempt=0  losses=0  run_at=+30s  lease=none  attempts=released
        claim    W1  -> nothing
        advance  30s
        claim    W1  J1  lease=L2  attempt=1
        complete W1  J1  lease=L2
    ";
    story(&t, &[HELD, release]).await;
}

/// Stale fence: the attempt number would be the same; the lease is not.
pub async fn a_stale_worker_cannot_release_while_its_successor_runs(t: Fixture) {
    story(&t, &[SUCCESSOR_RUNS, "release W1 J1 lease=L1 -> lease_lost:lost", REFUSED]).await;
}

/// Expired: uncharged, and no loss.
pub async fn an_expired_lease_may_still_release(t: Fixture) {
    let release = "
        release  W1  J1  lease=L1
        reclaim  -> nothing
        show     J1  state=queued  attempt=0  losses=0  run_at=+0s  attempts=released
        claim    W2  J1  lease=L2  attempt=1
        complete W2  J1  lease=L2
    ";
    story(&t, &[EXPIRED, release]).await;
}

/// Canceled: it is not put back.
pub async fn a_release_after_a_forced_cancel_changes_nothing(t: Fixture) {
    story(
        &t,
        &[FENCED, "release W1 J1 lease=L1 -> before:canceled", STAYS_CANCELED, "journal J1 claimed:L1 canceled:L1"],
    )
    .await;
}

/// Unknown id: a job that the lease does not list.
pub async fn a_release_of_a_job_the_lease_does_not_list_is_lost(t: Fixture) {
    let release = "
        enqueue  J2
        release  W1  J2  lease=L1  delay=1h  -> lease_lost
        release  W1  J9  lease=L1  -> lease_lost:gone
        show     J2  state=queued  run_at=+0s  attempts=none
        complete W1  J1  lease=L1
    ";
    story(&t, &[HELD, release]).await;
}

/// Reply lost: put back once, and never again once somebody else has it.
pub async fn a_release_sent_twice_is_put_back_once(t: Fixture) {
    let release = "
        release  W1  J1  lease=L1
        release  W1  J1  lease=L1  -> before:released
        show     J1  state=queued  attempt=0  attempts=released
        claim    W2  J1  lease=L2  attempt=1
        release  W1  J1  lease=L1  -> before:released
        show     J1  state=running  lease=L2
        claim    W2  limit=10  -> nothing
        complete W2  J1  lease=L2
        journal  J1  claimed:L1  released:L1  claimed:L2  succeeded:L2
    ";
    story(&t, &[HELD, release]).await;
}

/// Wrong tenant: the lease of another worker.
pub async fn a_worker_cannot_release_under_the_lease_of_another(t: Fixture) {
    let release = "
        release  W2  J1  lease=L1  -> lease_lost
        show     J1  state=running  lease=L1  attempts=none
        complete W1  J1  lease=L1
    ";
    story(&t, &[HELD, release]).await;
}

/// Concurrent twin.
pub async fn of_two_releases_one_is_written(t: Fixture) {
    one_of_two_reports_is_written(t, Ending::Released { delay: Duration::from_secs(5) }).await;
}
