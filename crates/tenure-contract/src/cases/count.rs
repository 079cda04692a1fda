//! Counts: how attempts ended lately, and how long the longest wait of a queue is.

use std::time::Duration;

use tenure_core::name::{KindName, QueueName};
use tenure_core::new_job::Due;
use tenure_core::{How, JobId, NewJob, Priority};
use tenure_store::StoreError;
use tenure_store::record::QueueRecord;

use super::situation::story;
use crate::fixture::{Fixture, cancel};

const HOUR: Duration = Duration::from_secs(3_600);

async fn count(t: &Fixture, within: Duration) -> Vec<(String, String, How, u64)> {
    let counts = t.store.count_endings(within).await.expect("count");
    counts.into_iter().map(|it| (it.queue.to_string(), it.kind.to_string(), it.how, it.count)).collect()
}

/// Every ending counts, final or not, a job's several ones too; what is older than asked for does not.
pub async fn endings_are_counted_by_queue_kind_and_way(t: Fixture) {
    assert_eq!(count(&t, HOUR).await, []);
    let old = "
        enqueue  J1  J2  kind=b  backoff=none
        claim    W1  J1 J2  lease=L1
        complete W1  J1  lease=L1
        fail     W1  J2  lease=L1  -> retry
        advance  30m
        # Upper case goes first, on every store.
        enqueue  J3  J4  kind=Z  queue=mail
        claim    W1  J3 J4  queue=mail  lease=L2
        complete W1  J3 J4  lease=L2
        claim    W1  J2  lease=L3
        fail     W1  J2  lease=L3  -> retry
        claim    W1  J2  lease=L4
        snooze   W1  J2  lease=L4
        enqueue  J5  kind=a
        cancel   J5
        enqueue  J6  kind=a
        claim    W1  J2 J6  lease=L5
        release  W1  J2  lease=L5
    ";
    story(&t, &[old]).await;
    let row = |queue: &str, kind: &str, how, count| (queue.to_owned(), kind.to_owned(), how, count);
    let late = [
        row("default", "a", How::Canceled, 1),
        row("default", "b", How::Retry, 1),
        row("default", "b", How::Snoozed, 1),
        row("default", "b", How::Released, 1),
        row("mail", "Z", How::Succeeded, 2),
    ];
    assert_eq!(count(&t, HOUR / 2).await, late);
    let all = [
        row("default", "a", How::Canceled, 1),
        row("default", "b", How::Succeeded, 1),
        row("default", "b", How::Retry, 2),
        row("default", "b", How::Snoozed, 1),
        row("default", "b", How::Released, 1),
        row("mail", "Z", How::Succeeded, 2),
    ];
    assert_eq!(count(&t, HOUR).await, all);
    t.advance(HOUR);
    assert_eq!(count(&t, HOUR).await, []);
    for within in [Duration::ZERO, HOUR * 24 * 7 + Duration::from_millis(1)] {
        let refused = t.store.count_endings(within).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
    assert_eq!(count(&t, HOUR * 24 * 7).await, all);
}

async fn store(t: &Fixture, queue: &str, priority: Priority, due: Due) -> JobId {
    let kind = KindName::new("noop").expect("a name");
    let queue = queue.parse().expect("a name");
    let job = NewJob { queue, priority, kind, due, ..t.new_job() };
    let id = job.id;
    t.store.enqueue_jobs(vec![job]).await.expect("enqueue");
    id
}

async fn queue(t: &Fixture, name: &str) -> QueueRecord {
    let queues = t.store.list_queues().await.expect("list queues");
    let name: QueueName = name.parse().expect("a name");
    queues.into_iter().find(|queue| queue.name == name).expect("the queue")
}

/// The job that waits longest, of whatever priority; neither the future nor what waits to be opened counts, nor another
/// queue, nor what runs.
pub async fn the_longest_wait_of_a_queue_is_told(t: Fixture) {
    let start = t.clock.now();
    let minute = Duration::from_secs(60);
    let in_an_hour = store(&t, "mail", Priority::CRITICAL, Due::After(HOUR)).await;
    store(&t, "mail", Priority::CRITICAL, Due::WhenOpened).await;
    store(&t, "other", Priority::CRITICAL, Due::Now).await;
    assert_eq!(queue(&t, "mail").await.oldest_due, None);
    assert_eq!(queue(&t, "other").await.oldest_due, Some(start));
    t.advance(minute);
    let low = store(&t, "mail", Priority::LOW, Due::Now).await;
    t.advance(minute);
    let urgent = store(&t, "mail", Priority::CRITICAL, Due::Now).await;
    t.advance(minute);
    let record = queue(&t, "mail").await;
    assert_eq!((record.due, record.scheduled, record.oldest_due), (2, 2, Some(start.plus(minute))));
    t.store.cancel_job(cancel(low, false)).await.expect("cancel");
    assert_eq!(queue(&t, "mail").await.oldest_due, Some(start.plus(2 * minute)));
    t.store.cancel_job(cancel(urgent, false)).await.expect("cancel");
    assert_eq!(queue(&t, "mail").await.oldest_due, None);
    t.advance(HOUR);
    assert_eq!(queue(&t, "mail").await.oldest_due, Some(start.plus(HOUR)));
    let worker = t.worker("one").await;
    let claim = tenure_store::lease::ClaimJobs::new(worker, "mail".parse().expect("a name"), 10);
    let claimed = t.store.claim_jobs(claim).await.expect("claim").expect("a job is due");
    assert_eq!(claimed.jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [in_an_hour]);
    assert_eq!(queue(&t, "mail").await.oldest_due, None);
}
