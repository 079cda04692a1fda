//! Jobs by the time they were created, and by what is in their payload.

use std::time::Duration;

use tenure_core::{JobId, Json, NewJob};
use tenure_store::StoreError;
use tenure_store::record::{JobFilter, JobsFound, SEARCHED_MAX, SEARCHED_PAGE, Sight};

use crate::fixture::Fixture;

const HOUR: Duration = Duration::from_secs(3_600);

fn with_payload(t: &Fixture, json: &str) -> NewJob {
    NewJob { payload: Json::parse("payload", json).expect("JSON"), ..t.new_job() }
}

async fn enqueue(t: &Fixture, json: &str) -> JobId {
    let job = with_payload(t, json);
    let id = job.id;
    t.store.enqueue_jobs(vec![job]).await.expect("enqueue");
    id
}

async fn search(t: &Fixture, filter: &JobFilter, text: &str) -> JobsFound {
    t.store.search_jobs(filter, text).await.expect("search")
}

fn ids(found: &JobsFound) -> Vec<JobId> {
    found.jobs.iter().map(|job| job.id).collect()
}

/// From the first moment on, up to the last one: in any state, and page by page.
pub async fn jobs_are_listed_by_the_time_they_were_created(t: Fixture) {
    let begin = t.clock.now();
    let mut made = Vec::new();
    for _ in 0..6 {
        made.push(t.enqueue().await);
        t.advance(HOUR);
    }
    let worker = t.worker("one").await;
    t.claim_one(worker).await;
    t.store.cancel_job(crate::fixture::cancel(made[1], false)).await.expect("cancel");
    let at = |hours: u32| Some(begin.plus(HOUR * hours));
    let list = async |filter: JobFilter| {
        let jobs = t.store.list_jobs(&filter).await.expect("list");
        jobs.iter().map(|job| made.iter().position(|id| *id == job.id).expect("ours")).collect::<Vec<_>>()
    };
    let all = JobFilter::default();
    assert_eq!(list(JobFilter { since: at(2), ..all.clone() }).await, [5, 4, 3, 2]);
    assert_eq!(list(JobFilter { until: at(2), ..all.clone() }).await, [1, 0]);
    let both = JobFilter { since: at(1), until: at(4), ..all.clone() };
    assert_eq!(list(both.clone()).await, [3, 2, 1]);
    assert_eq!(list(JobFilter { before: Some(made[3]), ..both.clone() }).await, [2, 1]);
    assert_eq!(list(JobFilter { limit: 1, ..both.clone() }).await, [3]);
    for (state, wanted) in [
        (tenure_core::State::Queued, vec![3, 2]),
        (tenure_core::State::Canceled, vec![1]),
        (tenure_core::State::Running, vec![]),
        (tenure_core::State::Succeeded, vec![]),
    ] {
        assert_eq!(list(JobFilter { state: Some(state), ..both.clone() }).await, wanted, "{state:?}");
    }
    let kind = Some("noop".parse().expect("a name"));
    assert_eq!(list(JobFilter { kind, ..both.clone() }).await, [3, 2, 1]);
    assert_eq!(list(JobFilter { queue: Some(Default::default()), ..both.clone() }).await, [3, 2, 1]);
    assert_eq!(list(JobFilter { sight: Sight::Tenant(Default::default()), ..both }).await, [3, 2, 1]);
    assert_eq!(list(JobFilter { since: at(3), until: at(3), ..all }).await, [] as [usize; 0]);
}

/// A job is found by the beginning of its id, in every state, and another tenant does not see it.
pub async fn jobs_are_listed_by_the_beginning_of_their_id(t: Fixture) {
    let mut made = Vec::new();
    for _ in 0..4 {
        made.push(t.enqueue().await);
        t.advance(HOUR);
    }
    let (wanted, text) = (made[1], made[1].to_string());
    let list = async |filter: JobFilter, beginning: &str| {
        let (first, after) = JobId::beginning(beginning).expect("a beginning");
        let filter = JobFilter { from: Some(first), before: after, ..filter };
        let jobs = t.store.list_jobs(&filter).await.expect("list");
        jobs.iter().map(|job| job.id).collect::<Vec<_>>()
    };
    let all = JobFilter::default();
    for digits in [8, 13, 36] {
        assert_eq!(list(all.clone(), &text[..digits]).await, [wanted], "{digits}");
    }
    let own = JobFilter { sight: Sight::Tenant(Default::default()), ..all.clone() };
    assert_eq!(list(own, &text[..8]).await, [wanted]);
    let other = JobFilter { sight: Sight::Tenant("acme".parse().expect("a name")), ..all.clone() };
    assert_eq!(list(other, &text).await, []);
    t.store.cancel_job(crate::fixture::cancel(wanted, false)).await.expect("cancel");
    let canceled = JobFilter { state: Some(tenure_core::State::Canceled), ..all.clone() };
    assert_eq!(list(canceled.clone(), &text[..8]).await, [wanted]);
    assert_eq!(list(canceled, &made[2].to_string()[..8]).await, []);
    let queued = JobFilter { state: Some(tenure_core::State::Queued), ..all.clone() };
    assert_eq!(list(queued.clone(), &text[..8]).await, []);
    assert_eq!(list(queued, &made[2].to_string()[..8]).await, [made[2]]);
    let from = JobFilter { from: Some(made[2]), ..all };
    let jobs = t.store.list_jobs(&from).await.expect("list");
    assert_eq!(jobs.iter().map(|job| job.id).collect::<Vec<_>>(), [made[3], made[2]], "the first one included");
}

/// In either case, in keys and in values, and nothing in it is a wildcard.
pub async fn jobs_are_found_by_a_text_in_their_payload(t: Fixture) {
    let order = enqueue(&t, r#"{"Order": "A-100%_x"}"#).await;
    let list = enqueue(&t, r#"["order", {"of": ["Grüße"]}]"#).await;
    let none = enqueue(&t, "null").await;
    let all = JobFilter::default();
    for (text, wanted) in [
        ("ORDER", vec![list, order]),
        ("a-100%_X", vec![order]),
        ("a%x", vec![]),
        ("a-100%__", vec![]),
        ("_", vec![order]),
        ("grüße", vec![list]),
        ("null", vec![none]),
        ("\"of\"", vec![list]),
        ("\\", vec![]),
    ] {
        let found = search(&t, &all, text).await;
        assert_eq!((ids(&found), found.looked_at, found.next), (wanted, 3, None), "{text}");
    }
    for (filter, wanted) in [
        (JobFilter { before: Some(list), ..all.clone() }, vec![order]),
        (JobFilter { state: Some(tenure_core::State::Dead), ..all.clone() }, vec![]),
        (JobFilter { kind: Some("other".parse().expect("a name")), ..all.clone() }, vec![]),
        (JobFilter { sight: Sight::Tenant("acme".parse().expect("a name")), ..all.clone() }, vec![]),
        (JobFilter { until: Some(t.clock.now()), ..all.clone() }, vec![]),
    ] {
        assert_eq!(ids(&search(&t, &filter, "order").await), wanted, "{filter:?}");
    }
    for bad in ["", "a\0b"] {
        let refused = t.store.search_jobs(&all, bad).await;
        assert!(matches!(&refused, Err(StoreError::Invalid(invalid)) if invalid.field == "text"), "{refused:?}");
    }
}

/// A search stops when it has enough, and goes on where it stopped: each job is found once.
pub async fn a_search_goes_on_where_it_stopped(t: Fixture) {
    let mut jobs = Vec::new();
    for number in 0..SEARCHED_PAGE + 20 {
        let word = if number % 10 == 0 { "needle" } else { "hay" };
        jobs.push(with_payload(&t, &format!(r#"{{"{word}": {number}}}"#)));
    }
    let mut wanted: Vec<JobId> = jobs.iter().step_by(10).map(|job| job.id).collect();
    wanted.reverse();
    t.store.enqueue_jobs(jobs).await.expect("enqueue");
    let (mut seen, mut looked_at) = (Vec::new(), 0);
    let mut filter = JobFilter { limit: 4, ..JobFilter::default() };
    loop {
        let found = search(&t, &filter, "needle").await;
        assert!(found.jobs.len() <= 4 && found.looked_at <= SEARCHED_MAX, "{found:?}");
        seen.extend(ids(&found));
        looked_at += found.looked_at;
        filter.before = found.next;
        if found.next.is_none() {
            break;
        }
    }
    assert_eq!(seen, wanted);
    assert_eq!(looked_at, SEARCHED_PAGE + 20, "each was looked into once");
    let found = search(&t, &JobFilter::default(), "nowhere").await;
    assert_eq!((found.jobs.len(), found.looked_at, found.next), (0, SEARCHED_PAGE + 20, None));
}
