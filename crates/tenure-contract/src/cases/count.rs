//! Counts: how attempts ended lately, and how long the longest wait of a queue is.

use std::time::Duration;

use tenure_core::name::{KindName, QueueName};
use tenure_core::new_job::Due;
use tenure_core::{How, JobId, Json, NewJob, Priority, Timestamp};
use tenure_store::StoreError;
use tenure_store::lease::Ending;
use tenure_store::record::{QueueRecord, Sight};
use tenure_store::usage::{UsageFilter, UsageTotal};

use super::situation::story;
use crate::fixture::{Fixture, cancel};

const HOUR: Duration = Duration::from_secs(3_600);

async fn count(t: &Fixture, within: Duration) -> Vec<(String, String, How, u64)> {
    let counts = t.store.count_endings(within).await.expect("count");
    counts.into_iter().map(|it| (it.queue.to_string(), it.kind.to_string(), it.how, it.count)).collect()
}

async fn used(t: &Fixture, sight: Sight, since: Timestamp) -> Vec<(u64, String, String, String, f64, u64)> {
    let filter = UsageFilter { sight, kind: None, since, after: None, limit: 100 };
    let totals = t.store.sum_usage(&filter).await.expect("sum");
    let days = |day: Timestamp| day.since(crate::fixture::START).as_secs() / 86_400;
    totals
        .into_iter()
        .map(|it| (days(it.day), it.tenant.to_string(), it.kind.to_string(), it.name, it.amount, it.attempts))
        .collect()
}

/// A job of this tenant and kind that used something.
async fn use_up(t: &Fixture, tenant: &str, kind: &str, usage: &str) {
    let worker = t.worker("one").await;
    let job = NewJob { tenant: tenant.parse().expect("a name"), kind: kind.parse().expect("a name"), ..t.new_job() };
    t.store.enqueue_jobs(vec![job]).await.expect("enqueue");
    let (lease, job) = t.claim_one(worker).await;
    let usage = Some(Json::parse("usage", usage).expect("JSON"));
    // Said twice, counted once.
    for _ in 0..2 {
        t.end(worker, lease, job, Ending::Succeeded { result: None, usage: usage.clone() }).await;
    }
}

/// By day, tenant, kind and name; the same before and after they are added up.
pub async fn usage_is_summed_by_day_tenant_kind_and_name(t: Fixture) {
    use_up(&t, "acme", "b", r#"{"bytes": 1000, "calls": 2}"#).await;
    use_up(&t, "acme", "b", r#"{"bytes": 24.5, "note": "no number", "deep": {"bytes": 9}}"#).await;
    use_up(&t, "rival", "a", r#"{"bytes": 7}"#).await;
    use_up(&t, "rival", "a", "[1, 2]").await;
    t.advance(24 * HOUR);
    use_up(&t, "acme", "b", r#"{"bytes": 1}"#).await;
    let row = |day: u64, tenant: &str, kind: &str, name: &str, amount: f64, attempts: u64| {
        (day, tenant.to_owned(), kind.to_owned(), name.to_owned(), amount, attempts)
    };
    let all = [
        row(1, "acme", "b", "bytes", 1.0, 1),
        row(0, "acme", "b", "bytes", 1024.5, 2),
        row(0, "acme", "b", "calls", 2.0, 1),
        row(0, "rival", "a", "bytes", 7.0, 1),
    ];
    let start = crate::fixture::START;
    for _ in 0..3 {
        assert_eq!(used(&t, Sight::All, start).await, all);
        t.store.fold_usage().await.expect("fold");
    }
    assert_eq!(t.store.fold_usage().await.expect("fold"), 0, "nothing is left");
    let rival = Sight::Tenant("rival".parse().expect("a name"));
    assert_eq!(used(&t, rival, start).await, all[3..]);
    assert_eq!(used(&t, Sight::All, start.plus(24 * HOUR)).await, all[..1]);
    use_up(&t, "acme", "b", r#"{"bytes": 2}"#).await;
    assert_eq!(used(&t, Sight::All, t.clock.now()).await, [row(1, "acme", "b", "bytes", 3.0, 2)]);
    let only = UsageFilter {
        sight: Sight::All,
        kind: Some("a".parse().expect("a name")),
        since: start,
        after: None,
        limit: 1,
    };
    assert_eq!(t.store.sum_usage(&only).await.expect("sum").len(), 1);
    let none = t.store.sum_usage(&UsageFilter { limit: 0, ..only }).await;
    assert!(matches!(none, Err(StoreError::Invalid(_))), "{none:?}");
}

/// Each total once, in the order of the whole list, whatever the names are made of.
pub async fn usage_is_listed_page_by_page(t: Fixture) {
    for tenant in ["acme", "rival"] {
        for kind in ["a", "b-b"] {
            use_up(&t, tenant, kind, r#"{"z": 1, "a b": 2, "A": 3, "ö": 4, "_": 5}"#).await;
        }
    }
    t.advance(24 * HOUR);
    use_up(&t, "acme", "a", r#"{"z": 1, "A": 2}"#).await;
    let start = crate::fixture::START;
    let page = async |after, limit| {
        let filter = UsageFilter { sight: Sight::All, kind: None, since: start, after, limit };
        t.store.sum_usage(&filter).await.expect("sum")
    };
    let all = page(None, 100).await;
    assert_eq!(all.len(), 22);
    for _ in 0..2 {
        let mut seen: Vec<UsageTotal> = Vec::new();
        loop {
            let found = page(seen.last().map(UsageTotal::place), 3).await;
            if found.is_empty() {
                break;
            }
            seen.extend(found);
        }
        assert_eq!(seen, all);
        while t.store.fold_usage().await.expect("fold") > 0 {}
    }
    for total in &all {
        assert_eq!(total.place().to_string().parse(), Ok(total.place()));
    }
}

/// By its first job, or by somebody who sets it.
pub async fn a_queue_is_there_when_somebody_named_it(t: Fixture) {
    let (mail, other): (QueueName, QueueName) = ("mail".parse().expect("a name"), "other".parse().expect("a name"));
    assert!(!t.store.has_queue(&mail).await.expect("ask"));
    t.store.enqueue_jobs(vec![NewJob { queue: mail.clone(), ..t.new_job() }]).await.expect("enqueue");
    assert!(t.store.has_queue(&mail).await.expect("ask"));
    assert!(!t.store.has_queue(&other).await.expect("ask"));
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
    assert_eq!((record.waiting, record.retryable), (1, 0));
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
