//! The store itself: its schema, its registry, its limits, its wake-ups.

use std::time::Duration;

use tenure_core::Json;
use tenure_core::name::QueueName;
use tenure_store::StoreError;
use tenure_store::lease::{EndJob, EndJobs, Ending, LEASE_JOBS_MAX, RESULT_BYTES_MAX};
use tenure_store::operate::{CancelJob, SetQueue, Word};
use tenure_store::record::{JobFilter, Sight};

use crate::fixture::{Fixture, success};

/// Every migration is there, and running them again does nothing.
pub async fn a_migrated_store_has_nothing_left_to_migrate(t: Fixture) {
    assert_eq!(t.store.migrate().await.expect("migrate"), []);
    let all = t.store.list_migrations().await.expect("list");
    assert!(!all.is_empty() && all.iter().all(|step| step.applied), "{all:?}");
    assert!(all.windows(2).all(|pair| pair[0].version < pair[1].version), "{all:?}");
}

/// Two starts of one program are two workers.
pub async fn every_start_of_a_worker_gets_its_own_number(t: Fixture) {
    let (one, two) = (t.worker("host-1").await, t.worker("host-1").await);
    assert_ne!(one, two);
    let job = t.enqueue().await;
    let (lease, _) = t.claim_one(one).await;
    let lost = t.end(two, lease, job, success()).await;
    assert!(matches!(lost, tenure_store::lease::Ended::LeaseLost { .. }), "{lost:?}");
    assert_eq!(t.show(job).await.summary.locked_by.as_deref(), Some("host-1"));
}

/// What cannot be stored is refused before anything is written.
pub async fn a_report_out_of_bounds_is_refused_whole(t: Fixture) {
    let worker = t.worker("one").await;
    let (job, other) = (t.enqueue().await, t.enqueue().await);
    let lease = t.claim(worker, 2).await.expect("jobs are due").lease;
    let done = |job| EndJob::new(job, success());
    let huge = Json::from_store(format!("\"{}\"", "x".repeat(RESULT_BYTES_MAX)));
    let too_large = Ending::Succeeded { result: Some(huge), usage: None };
    for jobs in [
        vec![done(job), done(other), done(job)],
        vec![done(job), EndJob::new(other, too_large)],
        Vec::new(),
        (0..=LEASE_JOBS_MAX).map(|_| done(t.new_id())).collect(),
    ] {
        let refused = t.store.end_jobs(EndJobs { worker, lease, jobs }).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
    assert_eq!(t.show(job).await.lease, Some(lease));
    assert_eq!(t.show(other).await.lease, Some(lease));
}

/// Words of operators, settings and pages have limits too.
pub async fn settings_and_words_out_of_bounds_are_refused(t: Fixture) {
    let job = t.enqueue().await;
    for reason in ["", "a\0b", &"x".repeat(501)] {
        let word = Word { actor: None, reason: Some(reason.to_owned()) };
        let refused = t.store.cancel_job(CancelJob { sight: Sight::All, job, force: false, word }).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
    for lease_ttl in [Duration::ZERO, Duration::from_millis(999), Duration::from_secs(86_401)] {
        let refused = t.store.set_queue(SetQueue::new(QueueName::default(), lease_ttl)).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
    for limit in [0, 1_001] {
        let refused = t.store.list_jobs(&JobFilter { limit, ..JobFilter::default() }).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
    assert_eq!(t.show(job).await.summary.state, tenure_core::State::Queued);
}

/// The largest batch is one lease, and every job of it can end in one report.
pub async fn a_batch_of_256_is_one_lease_and_one_report(t: Fixture) {
    let worker = t.worker("one").await;
    let batch: Vec<_> = (0..300).map(|_| t.new_job()).collect();
    t.store.enqueue_jobs(batch).await.expect("enqueue");
    let claimed = t.claim(worker, LEASE_JOBS_MAX).await.expect("jobs are due");
    assert_eq!(claimed.jobs.len(), 256);
    assert!(claimed.jobs.windows(2).all(|pair| pair[0].id < pair[1].id), "the older first");
    let jobs = claimed.jobs.iter().map(|job| EndJob::new(job.id, success())).collect();
    let ended = t.store.end_jobs(EndJobs { worker, lease: claimed.lease, jobs }).await.expect("end");
    assert_eq!(ended.len(), 256);
    assert!(ended.iter().all(|answer| *answer == tenure_store::lease::Ended::Now(tenure_core::How::Succeeded)));
    assert_eq!(t.store.drop_leases(worker, vec![claimed.lease]).await.expect("drop"), [claimed.lease]);
    assert_eq!(t.claim(worker, LEASE_JOBS_MAX).await.expect("jobs are due").jobs.len(), 44);
}

/// An idle worker that waits is woken by an enqueue, or looks by itself after a while.
pub async fn an_idle_worker_is_woken_by_an_enqueue(t: Fixture) {
    let queue = QueueName::default();
    t.store.push_idle(&queue).await.expect("push idle");
    let waiter = t.store.clone();
    let mut waiting = tokio::spawn(async move { waiter.wait_for_work(&[QueueName::default()]).await });
    for _ in 0..200 {
        // The wait may begin after this enqueue: a wake-up may come too early, so there is always another.
        t.enqueue().await;
        t.store.push_idle(&queue).await.expect("push idle");
        if let Ok(woken) = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await {
            return woken.expect("the waiter").expect("a wake-up");
        }
    }
    panic!("nobody woke it in ten seconds");
}
