//! `fail` in every situation.

use std::time::Duration;

use tenure_core::Json;
use tenure_store::lease::Ending;

use super::situation::{EXPIRED, FENCED, HELD, STAYS_CANCELED, SUCCESSOR_RUNS, one_of_two_reports_is_written, story};
use crate::fixture::Fixture;

/// Fresh: each class of error ends the attempt in its own way.
pub async fn a_holder_fails_its_job(t: Fixture) {
    let fail = "
        fail     W1  J1  lease=L1  class=transient  error=first  -> retry
        show     J1  state=retryable  attempt=1  error=first
        claim    W1  J1  lease=L2  attempt=2
        fail     W1  J1  lease=L2  class=permanent  error=second  -> failed
        show     J1  state=failed  attempt=2  error=second  attempts=retry,failed
        requeue  J1
        claim    W1  J1  lease=L3  attempt=1
        fail     W1  J1  lease=L3  class=dead  error=third  -> dead
        show     J1  state=dead  error=third  attempts=retry,failed,dead
    ";
    story(&t, &[HELD, fail]).await;
}

/// Stale fence: of no class.
pub async fn a_stale_worker_cannot_fail_while_its_successor_runs(t: Fixture) {
    let fail = "
        fail     W1  J1  lease=L1  class=transient  -> lease_lost:lost
        fail     W1  J1  lease=L1  class=permanent  -> lease_lost:lost
        fail     W1  J1  lease=L1  class=dead  -> lease_lost:lost
    ";
    let unharmed = "
        show     J1  state=running  attempt=1  losses=1  lease=L2  holder=W2  expires_at=+60s  attempts=lost
        complete W2  J1  lease=L2
        journal  J1  claimed:L1  lost:L1  claimed:L2  refused:L1  refused:L1  refused:L1  succeeded:L2
    ";
    story(&t, &[SUCCESSOR_RUNS, fail, unharmed]).await;
}

/// Expired: counted as a failure, not as a loss.
pub async fn an_expired_lease_may_still_fail(t: Fixture) {
    let fail = "
        fail     W1  J1  lease=L1  -> retry
        reclaim  -> nothing
        show     J1  state=retryable  attempt=1  losses=0  attempts=retry
        claim    W1  J1  lease=L2  attempt=2
        complete W1  J1  lease=L2
    ";
    story(&t, &[EXPIRED, fail]).await;
}

/// Canceled: fenced by force, the error is dropped; a retry hears that the job was canceled instead.
pub async fn a_failure_after_a_forced_cancel_changes_nothing(t: Fixture) {
    let fail = "
        fail     W1  J1  lease=L1  class=permanent  -> lease_lost:canceled
        fail     W1  J1  lease=L1  class=dead  -> lease_lost:canceled
        fail     W1  J1  lease=L1  class=transient  -> before:canceled
    ";
    story(&t, &[FENCED, fail, STAYS_CANCELED, "journal J1 claimed:L1 canceled:L1 refused:L1 refused:L1"]).await;
}

/// Unknown id: a job that the lease does not list.
pub async fn a_failure_of_a_job_the_lease_does_not_list_is_lost(t: Fixture) {
    let fail = "
        enqueue  J2
        fail     W1  J2  lease=L1  -> lease_lost
        fail     W1  J9  lease=L1  class=permanent  -> lease_lost:gone
        show     J2  state=queued  attempt=0  attempts=none
        complete W1  J1  lease=L1
    ";
    story(&t, &[HELD, fail]).await;
}

/// Reply lost: charged once, put back once.
pub async fn a_failure_sent_twice_is_charged_once(t: Fixture) {
    let fail = "
        fail     W1  J1  lease=L1  -> retry
        fail     W1  J1  lease=L1  -> before:retry
        show     J1  state=retryable  attempt=1  attempts=retry
        claim    W2  J1  lease=L2  attempt=2
        fail     W1  J1  lease=L1  -> before:retry
        show     J1  state=running  lease=L2
        claim    W2  limit=10  -> nothing
        fail     W2  J1  lease=L2  class=permanent  -> failed
        fail     W2  J1  lease=L2  class=permanent  -> before:failed
        journal  J1  claimed:L1  retry:L1  claimed:L2  failed:L2
    ";
    story(&t, &[HELD, fail]).await;
}

/// Wrong tenant: the lease of another worker.
pub async fn a_worker_cannot_fail_under_the_lease_of_another(t: Fixture) {
    let fail = "
        fail     W2  J1  lease=L1  -> lease_lost
        fail     W2  J1  lease=L1  class=dead  -> lease_lost
        show     J1  state=running  lease=L1  attempts=none
        complete W1  J1  lease=L1
    ";
    story(&t, &[HELD, fail]).await;
}

/// Concurrent twin.
pub async fn of_two_failures_one_is_written(t: Fixture) {
    let delay = Duration::from_secs(5);
    one_of_two_reports_is_written(t, Ending::Retry { delay, error: Json::null() }).await;
}
