//! Unique and idempotency keys.

use std::time::Duration;

use tenure_core::unique::Policy;
use tenure_core::{JobId, Json, NewJob, State, Unique};
use tenure_store::enqueue::Enqueued;
use tenure_store::operate::{PruneJobs, RequeueJob};
use tenure_store::record::Sight;
use tenure_store::{AdminStore, JobStore, StoreError};

use crate::fixture::{Fixture, failed, new_job, succeeded, word};

fn keyed(fixture: &Fixture, policy: Policy) -> NewJob {
    NewJob { unique: Some(Unique::new("k", policy)), ..new_job(fixture.clock.now()) }
}

async fn put(fixture: &Fixture, job: NewJob) -> Enqueued {
    fixture.store.enqueue_jobs(vec![job]).await.unwrap()[0]
}

async fn run(fixture: &Fixture, job: JobId, ending: tenure_store::lease::Ending) {
    let claimed = fixture.claim(1).await.unwrap();
    assert_eq!(claimed.jobs[0].id, job);
    fixture.end(claimed.lease, job, ending).await;
}

async fn requeue(fixture: &Fixture, job: JobId) -> Result<(), StoreError> {
    fixture.store.requeue_job(RequeueJob { sight: Sight::All, job, word: word() }).await
}

#[tokio::test]
async fn a_key_is_held_by_its_policy_and_taken_over_after() {
    let cases = [
        (Policy::WhileActive, succeeded(), true),
        (Policy::UnlessFailed, succeeded(), false),
        (Policy::UnlessFailed, failed(), true),
        (Policy::Forever, failed(), false),
        (Policy::Window(Duration::from_secs(60)), succeeded(), false),
    ];
    for (policy, ending, free) in cases {
        let fixture = Fixture::memory().await;
        let first = put(&fixture, keyed(&fixture, policy)).await.job();
        let again = put(&fixture, keyed(&fixture, policy)).await;
        assert_eq!(again, Enqueued::Found { job: first, state: Some(State::Queued) }, "{policy:?}");
        run(&fixture, first, ending.clone()).await;
        let after = put(&fixture, keyed(&fixture, policy)).await;
        assert_eq!(matches!(after, Enqueued::Created(_)), free, "{policy:?} {ending:?}");
        fixture.clock.advance(Duration::from_secs(60));
        let later = put(&fixture, keyed(&fixture, policy)).await;
        assert_eq!(matches!(later, Enqueued::Created(_)), policy.window().is_some(), "{policy:?}");
    }
}

#[tokio::test]
async fn one_batch_finds_its_own_keys() {
    let fixture = Fixture::memory().await;
    let (a, b, plain) =
        (keyed(&fixture, Policy::Forever), keyed(&fixture, Policy::Forever), new_job(fixture.clock.now()));
    let found = Enqueued::Found { job: a.id, state: Some(State::Queued) };
    let answers = fixture.store.enqueue_jobs(vec![a.clone(), b, plain.clone(), plain.clone()]).await.unwrap();
    let twice = Enqueued::Found { job: plain.id, state: Some(State::Queued) };
    assert_eq!(answers, [Enqueued::Created(a.id), found, Enqueued::Created(plain.id), twice]);
}

#[tokio::test]
async fn a_refused_job_keeps_the_whole_batch_out() {
    let fixture = Fixture::memory().await;
    let with_key = |payload: &str| NewJob {
        idempotency_key: Some("req-1".into()),
        payload: Json::parse("payload", payload).unwrap(),
        ..new_job(fixture.clock.now())
    };
    let (plain, first, second) = (new_job(fixture.clock.now()), with_key("1"), with_key("2"));
    let refused = fixture.store.enqueue_jobs(vec![plain, first, second]).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))));
    assert!(fixture.claim(10).await.is_none());
}

#[tokio::test]
async fn an_idempotency_key_is_one_request_for_seven_days() {
    let fixture = Fixture::memory().await;
    let request = || NewJob { idempotency_key: Some("req-1".into()), ..new_job(fixture.clock.now()) };
    let first = put(&fixture, request()).await.job();
    assert_eq!(put(&fixture, request()).await, Enqueued::Found { job: first, state: Some(State::Queued) });
    let other = NewJob { payload: Json::null(), ..request() };
    let other_id = other.id;
    let Err(StoreError::Conflict(text)) = fixture.store.enqueue_jobs(vec![other]).await else { panic!("accepted") };
    for named in ["req-1".to_owned(), first.to_string(), other_id.to_string()] {
        assert!(text.contains(&named), "{text}");
    }
    run(&fixture, first, succeeded()).await;
    fixture.prune().await;
    assert_eq!(put(&fixture, request()).await, Enqueued::Found { job: first, state: None });
    fixture.clock.advance(Duration::from_secs(7 * 86_400));
    assert!(matches!(put(&fixture, request()).await, Enqueued::Created(_)));
}

#[tokio::test]
async fn a_pruned_job_keeps_the_key_it_holds_and_no_other() {
    for (policy, ending, free) in [
        (Policy::WhileActive, succeeded(), true),
        (Policy::UnlessFailed, succeeded(), false),
        (Policy::UnlessFailed, failed(), true),
        (Policy::Forever, failed(), false),
    ] {
        let fixture = Fixture::memory().await;
        let first = put(&fixture, keyed(&fixture, policy)).await.job();
        run(&fixture, first, ending).await;
        assert_eq!(fixture.prune().await, 1);
        let after = put(&fixture, keyed(&fixture, policy)).await;
        let found = Enqueued::Found { job: first, state: None };
        assert_eq!(after == found, !free, "{policy:?} {after:?}");
    }
}

#[tokio::test]
async fn a_requeue_is_refused_while_another_job_has_the_key() {
    let fixture = Fixture::memory().await;
    let first = put(&fixture, keyed(&fixture, Policy::WhileActive)).await.job();
    run(&fixture, first, failed()).await;
    let second = put(&fixture, keyed(&fixture, Policy::WhileActive)).await.job();
    let Err(StoreError::Conflict(text)) = requeue(&fixture, first).await else { panic!("two active jobs") };
    assert!(text.contains(&second.to_string()), "{text}");
    // Also when that one has ended, until it is gone.
    run(&fixture, second, succeeded()).await;
    assert!(matches!(requeue(&fixture, first).await, Err(StoreError::Conflict(_))));
    fixture.clock.advance(Duration::from_secs(1));
    let oldest = PruneJobs { older_than: Duration::from_secs(1), dead_too: false, limit: 1 };
    assert_eq!(fixture.store.prune_jobs(oldest).await.unwrap(), 1);
    requeue(&fixture, first).await.unwrap();
    let third = put(&fixture, keyed(&fixture, Policy::WhileActive)).await;
    assert_eq!(third, Enqueued::Found { job: first, state: Some(State::Queued) });
    assert!(matches!(requeue(&fixture, second).await, Err(StoreError::NotFound(_))));
}
