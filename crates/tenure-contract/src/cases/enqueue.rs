//! `enqueue` in every situation.

use std::time::Duration;

use tenure_core::name::{KindName, QueueName, TenantName};
use tenure_core::new_job::Due;
use tenure_core::unique::{Policy, Unique};
use tenure_core::{JobId, Json, NewJob, Priority, Rules, State};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_store::operate::PruneJobs;

use super::situation::{ROUNDS, both, story};
use crate::fixture::{Fixture, START, success};

/// Fresh: all that a producer says comes back as it was said.
pub async fn a_new_job_is_stored_with_everything_it_said(t: Fixture) {
    let payload = r#"{"order":42,"name":"Straße 7 / 東京","deep":[[[1.5,null,true]]]}"#;
    let job = NewJob {
        tenant: TenantName::new("acme").expect("a name"),
        queue: QueueName::new("mail/out").expect("a name"),
        kind: KindName::new("invoice.send").expect("a name"),
        payload: Json::parse("payload", payload).expect("json"),
        priority: Priority::HIGH,
        due: Due::At(START.plus(Duration::from_secs(90))),
        rules: Rules { max_attempts: 7, max_losses: 2, backoff: "steps 1s 10s 5m".parse().expect("a policy") },
        unique: Some(Unique::new("Rechnung 42 'ä'", Policy::Forever)),
        idempotency_key: Some("order 42".into()),
        trace: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        ..t.new_job()
    };
    let stored = t.store.enqueue_jobs(vec![job.clone()]).await.expect("enqueue");
    assert_eq!(stored, [Enqueued::Created(job.id)]);
    let record = t.show(job.id).await;
    let seen = &record.summary;
    assert_eq!((seen.id, seen.state, seen.attempt), (job.id, State::Queued, 0));
    assert_eq!((&seen.tenant, &seen.queue, &seen.kind), (&job.tenant, &job.queue, &job.kind));
    assert_eq!((seen.priority, seen.max_attempts), (job.priority, 7));
    assert_eq!((seen.run_at, seen.created_at), (START.plus(Duration::from_secs(90)), START));
    assert_eq!((&record.rules, &record.trace), (&job.rules, &job.trace));
    assert_same_json(&record.payload, payload);
    assert_eq!((record.lease, record.attempts.len(), record.losses), (None, 0, 0));
}

/// Databases may write white space and the order of keys in their own way.
fn assert_same_json(stored: &Json, said: &str) {
    let sorted = |text: &str| {
        let mut chars: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
        chars.sort_unstable();
        chars
    };
    assert_eq!(sorted(stored.as_str()), sorted(said), "{stored} is not {said}");
}

/// Expired: a job whose lease is over still runs, as far as anybody knows.
pub async fn a_key_is_held_by_a_job_whose_lease_expired(t: Fixture) {
    let script = "
        enqueue  J1  unique=k:while_active
        claim    W1  J1  lease=L1
        advance  10m
        enqueue  J2  unique=k:while_active  -> found J1 running
        reclaim  J1
        enqueue  J3  unique=k:while_active  -> found J1 queued
    ";
    story(&t, &[script]).await;
}

/// Canceled: its key is free, its id is not.
pub async fn a_canceled_job_lets_its_key_go_but_not_its_id(t: Fixture) {
    let script = "
        enqueue  J1  unique=k:while_active
        cancel   J1
        enqueue  J1  unique=k:while_active  -> found J1 canceled
        enqueue  J2  unique=k:while_active  -> created
        show     J1  state=canceled
        show     J2  state=queued
    ";
    story(&t, &[script]).await;
}

/// Unknown id: one that the store cannot place in time is refused, and everything that came with it.
pub async fn an_id_off_the_clock_is_refused_with_its_whole_batch(t: Fixture) {
    let good = t.new_job();
    let two_days = Duration::from_secs(2 * 86_400);
    let late = JobId::from_parts(START.plus(two_days), [7; 10]);
    let early = JobId::from_parts(START.minus(two_days), [7; 10]);
    let v4 = "7f1d3c1e-55c5-4ac5-a5ac-8d3f4e5b6c7d".parse().expect("a uuid");
    for bad in [late, early, v4] {
        let batch = vec![good.clone(), NewJob { id: bad, ..t.new_job() }];
        let refused = t.store.enqueue_jobs(batch).await;
        assert!(matches!(&refused, Err(StoreError::Invalid(why)) if why.field == "id"), "{refused:?}");
    }
    let worker = t.worker("one").await;
    assert!(t.claim(worker, 10).await.is_none(), "a part of a refused batch was stored");
    assert_eq!(t.store.enqueue_jobs(vec![good.clone()]).await.expect("enqueue"), [Enqueued::Created(good.id)]);
}

/// Wrong tenant: another tenant's keys are out of sight.
pub async fn a_tenant_does_not_meet_the_keys_of_another(t: Fixture) {
    let script = "
        enqueue  J1  tenant=acme  unique=k:forever
        enqueue  J2  tenant=zoo   unique=k:forever  -> created
        enqueue  J3  tenant=acme  idempotency=i  payload=1
        enqueue  J4  tenant=zoo   idempotency=i  payload=2  -> created
        enqueue  J5  tenant=zoo   unique=k:forever  -> found J2
    ";
    story(&t, &[script]).await;
}

/// Wrong tenant: the id of somebody else's job tells nothing about it, with a key and without.
pub async fn an_id_that_another_tenant_uses_is_refused(t: Fixture) {
    let theirs = NewJob { tenant: TenantName::new("acme").expect("a name"), ..t.new_job() };
    t.store.enqueue_jobs(vec![theirs.clone()]).await.expect("enqueue");
    for unique in [None, Some(Unique::new("k", Policy::Forever))] {
        let mine = NewJob { tenant: TenantName::new("zoo").expect("a name"), unique, ..theirs.clone() };
        let refused = t.store.enqueue_jobs(vec![t.new_job(), mine]).await;
        assert!(matches!(&refused, Err(StoreError::Invalid(why)) if *why == theirs.id.in_use()), "{refused:?}");
    }
    assert_eq!(t.store.list_jobs(&Default::default()).await.expect("list").len(), 1, "all or none");
}

/// Concurrent twin: the loser of a race for a key hears who won it.
pub async fn of_two_enqueues_of_one_key_one_creates(t: Fixture) {
    for round in 0..ROUNDS {
        let unique = Some(Unique::new(format!("k{round}"), Policy::WhileActive));
        let (one, two) = (NewJob { unique: unique.clone(), ..t.new_job() }, NewJob { unique, ..t.new_job() });
        let (a, b) = twin(&t, one.clone(), two.clone()).await;
        let won = match (a, b) {
            (Enqueued::Created(winner), Enqueued::Found { job, state }) => (winner, job, state),
            (Enqueued::Found { job, state }, Enqueued::Created(winner)) => (winner, job, state),
            both => panic!("{both:?}"),
        };
        assert_eq!(won, (won.0, won.0, Some(State::Queued)));
    }
}

/// Concurrent twin: an enqueue sent twice at the same moment is one job, with its id or with its idempotency key.
pub async fn an_enqueue_sent_twice_at_once_is_one_job(t: Fixture) {
    for round in 0..ROUNDS {
        let job = t.new_job();
        let (a, b) = twin(&t, job.clone(), job.clone()).await;
        assert_one_created(a, b);
        let key = Some(format!("i{round}"));
        let one = NewJob { idempotency_key: key.clone(), ..t.new_job() };
        let two = NewJob { idempotency_key: key, ..t.new_job() };
        let (a, b) = twin(&t, one, two).await;
        assert_one_created(a, b);
        assert_eq!(a.job(), b.job());
    }
}

/// A job that a batch names twice is stored once, and where its unique key is another's both are answered with that one.
pub async fn a_job_named_twice_in_one_call_has_one_answer(t: Fixture) {
    let unique = || Some(Unique::new("k", Policy::WhileActive));
    let job = NewJob { unique: unique(), idempotency_key: Some("i1".to_owned()), ..t.new_job() };
    let stored = t.store.enqueue_jobs(vec![job.clone(), job.clone()]).await.expect("stored once");
    assert_one_created(stored[0], stored[1]);
    let late = NewJob { unique: unique(), idempotency_key: Some("i2".to_owned()), ..t.new_job() };
    let found = t.store.enqueue_jobs(vec![late.clone(), late]).await.expect("found");
    assert_eq!(found, [Enqueued::Found { job: job.id, state: Some(State::Queued) }; 2]);
}

/// A key that is kept for ever keeps out its own job as well, once that is pruned, whatever other key comes along.
pub async fn a_pruned_job_with_a_key_for_ever_is_not_stored_again(t: Fixture) {
    let worker = t.worker("one").await;
    let job = NewJob { unique: Some(Unique::new("k", Policy::Forever)), ..t.new_job() };
    t.store.enqueue_jobs(vec![job.clone()]).await.expect("stored");
    let (lease, id) = t.claim_one(worker).await;
    t.end(worker, lease, id, success()).await;
    t.advance(Duration::from_secs(3_600));
    let old = PruneJobs { older_than: Duration::from_secs(5), dead_too: false, limit: 100 };
    assert_eq!(t.store.prune_jobs(old).await.expect("prune"), 1);
    let again = NewJob { idempotency_key: Some("i".to_owned()), ..job };
    let found = t.store.enqueue_jobs(vec![again]).await.expect("found");
    assert!(matches!(found.as_slice(), [Enqueued::Found { .. }]), "{found:?}");
}

/// A batch to a queue and of a tenant that nobody has named before, beside known ones, is stored whole.
pub async fn a_batch_with_a_new_name_in_it_is_stored_whole(t: Fixture) {
    t.enqueue().await;
    let queue = QueueName::new("never-seen").expect("a name");
    let tenant = TenantName::new("never-seen").expect("a name");
    let batch = vec![t.new_job(), NewJob { queue, ..t.new_job() }, NewJob { tenant, ..t.new_job() }, t.new_job()];
    let ids: Vec<JobId> = batch.iter().map(|job| job.id).collect();
    let stored = t.store.enqueue_jobs(batch.clone()).await.expect("stored");
    assert_eq!(stored, ids.iter().map(|id| Enqueued::Created(*id)).collect::<Vec<_>>());
    let again = t.store.enqueue_jobs(batch).await.expect("found");
    assert_eq!(
        again,
        ids.iter().map(|id| Enqueued::Found { job: *id, state: Some(State::Queued) }).collect::<Vec<_>>()
    );
}

async fn twin(t: &Fixture, one: NewJob, two: NewJob) -> (Enqueued, Enqueued) {
    let (first, second) = (t.store.clone(), t.store.clone());
    let answers =
        both(async move { first.enqueue_jobs(vec![one]).await }, async move { second.enqueue_jobs(vec![two]).await });
    let (a, b) = answers.await;
    (a.expect("the first enqueue")[0], b.expect("the second enqueue")[0])
}

fn assert_one_created(a: Enqueued, b: Enqueued) {
    let created = [a, b].iter().filter(|answer| matches!(answer, Enqueued::Created(_))).count();
    assert_eq!(created, 1, "{a:?} {b:?}");
}

/// Two bulk enqueues that meet the same keys in opposite order do not wait for each other for ever.
pub async fn bulk_enqueues_in_opposite_order_both_end(t: Fixture) {
    for round in 0..ROUNDS {
        let batch = |order: Vec<usize>| -> Vec<NewJob> {
            let unique = |key| Some(Unique::new(format!("k{round}-{key}"), Policy::WhileActive));
            order.into_iter().map(|key| NewJob { unique: unique(key), ..t.new_job() }).collect()
        };
        let (up, down) = (batch((0..10).collect()), batch((0..10).rev().collect()));
        let (first, second) = (t.store.clone(), t.store.clone());
        let (a, b) = both(async move { first.enqueue_jobs(up).await.expect("enqueue") }, async move {
            second.enqueue_jobs(down).await.expect("enqueue")
        })
        .await;
        for (one, two) in a.iter().zip(b.iter().rev()) {
            assert_eq!(one.job(), two.job());
            assert_one_created(*one, *two);
        }
    }
}
