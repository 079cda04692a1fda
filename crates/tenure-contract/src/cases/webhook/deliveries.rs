//! What the journal made, and what came of it.

use std::time::Duration;

use tenure_core::journal::JournalEvent;
use tenure_core::webhook::{DELIVERY_KIND, OWN_QUEUE};
use tenure_core::{Json, NewJob, QueueName};
use tenure_store::lease::{ClaimJobs, Ending};
use tenure_store::operate::{PruneJobs, Word};
use tenure_store::record::Sight;
use tenure_store::webhook::{
    ChangeEndpoint, Cursor, DeliveryFilter, DeliveryState, NewDelivery, NewEndpoint, PutDeliveries, RecordTry,
    ResendDeliveries, Tried,
};

use super::{
    HOUR, change, delivery, endpoint, found, is_conflict, is_missing, listed, new_endpoint, operate, put, put_one,
    sight, state, tenant, tried,
};
use crate::fixture::{Fixture, success};

/// A job of the endpoint's tenant, behind the endpoint's gate; an event that is there already is left out.
pub async fn a_delivery_is_stored_once_with_its_job(t: Fixture) {
    let (made, off) = (endpoint(&t, "acme").await, endpoint(&t, "bolt").await);
    let disable = ChangeEndpoint { enabled: Some(false), ..change(off.id) };
    t.store.change_endpoint(disable).await.expect("disable");
    let subject = t.new_id();
    let (first, twice) = (delivery(&t, made.id, subject), delivery(&t, made.id, subject));
    let deliveries = vec![first.clone(), twice.clone(), delivery(&t, off.id, subject)];
    let (from, to) = (Cursor::at(1), Cursor { seal: 1, after: 7 });
    let request = PutDeliveries { from, to, deliveries, failed: Vec::new() };
    assert!(t.store.put_deliveries(request.clone()).await.expect("put"));
    assert_eq!(t.store.find_cursor().await.expect("a cursor"), to);
    assert!(!t.store.put_deliveries(request).await.expect("again"), "it stands elsewhere now");
    put(&t, vec![twice]).await;

    assert_eq!(listed(&t, DeliveryFilter::new(Sight::All, 10)).await, [first.job]);
    let record = t.store.show_delivery(&sight("acme"), first.job).await.expect("it is there");
    assert_eq!((record.body.as_str(), record.tries.as_str()), (first.body.as_str(), "[]"));
    let summary = record.summary;
    assert_eq!((summary.endpoint, summary.tenant), (made.id, made.tenant.clone()));
    assert_eq!(
        (summary.event_id, summary.event_type, summary.subject),
        (first.event_id, first.event_type, first.subject)
    );
    assert_eq!((summary.state, summary.created_at, summary.finished_at), (DeliveryState::Pending, t.clock.now(), None));

    let job = t.show(first.job).await.summary;
    assert_eq!((job.kind.as_str(), job.queue.as_str(), job.tenant), (DELIVERY_KIND, OWN_QUEUE, made.tenant));
    assert_eq!(job.gate.expect("a gate").as_str(), format!("{DELIVERY_KIND}/acme"));
    let claim = ClaimJobs::new(t.worker("w").await, QueueName::new(OWN_QUEUE).expect("a name"), 10);
    assert_eq!(t.store.claim_jobs(claim).await.expect("claim").expect("a job").jobs.len(), 1);
}

/// Those of tenants that listen, and the jobs that deliver; each with the attempt that was asked for.
pub async fn an_event_concerns_those_who_listen(t: Fixture) {
    let made = endpoint(&t, "acme").await;
    let sent = put_one(&t, made.id).await;
    let (callback_url, trace) = (Some("https://a.b/c".into()), Some("00-1-2-01".to_owned()));
    let mine = NewJob { tenant: tenant("acme"), callback_url, trace: trace.clone(), ..t.new_job() };
    let other = t.new_job();
    t.store.enqueue_jobs(vec![mine.clone(), other.clone()]).await.expect("enqueue");
    let worker = t.worker("w").await;
    let claimed = t.claim(worker, 2).await.expect("jobs");
    let failure = Json::parse("error", "{\"message\":\"no\"}").expect("JSON");
    t.end(worker, claimed.lease, mine.id, Ending::Failed { error: failure.clone() }).await;
    let lease = Some(claimed.lease);
    let asked = vec![(mine.id, lease), (other.id, lease), (sent, None), (t.new_id(), None), (mine.id, None)];
    let subjects = t.store.list_subjects(asked).await.expect("subjects");
    let told: Vec<_> = subjects.iter().map(|subject| (subject.job, subject.lease)).collect();
    assert_eq!(told, [(mine.id, lease), (sent, None), (mine.id, None)]);
    assert_eq!(subjects[0].callback_url.as_deref(), Some("https://a.b/c"));
    // The job that sends a delivery belongs to the trace of what it tells.
    assert_eq!((&subjects[0].trace, &subjects[1].trace), (&trace, &None));
    let traced = NewDelivery { trace: trace.clone(), ..delivery(&t, made.id, mine.id) };
    put(&t, vec![traced.clone()]).await;
    assert_eq!((t.show(traced.job).await.trace, t.show(sent).await.trace), (trace, None));
    assert_eq!((&subjects[0].tenant, &subjects[0].kind), (&mine.tenant, &mine.kind));
    let attempt = subjects[0].attempt.clone().expect("it ended");
    assert_eq!((attempt, None), (t.show(mine.id).await.attempts[0].clone(), subjects[2].attempt.clone()));
    assert_eq!(t.show(mine.id).await.callback_url.as_deref(), Some("https://a.b/c"));
}

/// A receiver that says it is gone gets nothing more; nor does one that took nothing for too long.
pub async fn a_try_is_written_down_and_may_disable_its_endpoint(t: Fixture) {
    let made = endpoint(&t, "acme").await;
    let sent = put_one(&t, made.id).await;
    assert!(!t.store.record_try(tried(sent, Tried::Again)).await.expect("again"));
    assert_eq!(state(&t, sent).await, DeliveryState::Pending);
    assert!(!t.store.record_try(tried(sent, Tried::Failed)).await.expect("failed"));
    let since = t.clock.now();
    let record = t.store.show_delivery(&Sight::All, sent).await.expect("it is there");
    assert_eq!((record.summary.state, record.summary.finished_at), (DeliveryState::Failed, Some(since)));
    assert_eq!((record.summary.tries, record.tries.as_str().matches("500").count()), (2, 2));
    assert_eq!(found(&t, made.id).await.failing_since, Some(since));

    t.advance(25 * HOUR);
    let good = put_one(&t, made.id).await;
    t.store.record_try(tried(good, Tried::Delivered)).await.expect("delivered");
    assert_eq!((state(&t, good).await, found(&t, made.id).await.failing_since), (DeliveryState::Delivered, None));
    for late in [Tried::Again, Tried::Failed] {
        assert!(!t.store.record_try(tried(good, late)).await.expect("late"));
        assert_eq!((state(&t, good).await, found(&t, made.id).await.failing_since), (DeliveryState::Delivered, None));
    }
    for (hours, disables) in [(0, false), (23, false), (1, true)] {
        t.advance(hours * HOUR);
        let bad = put_one(&t, made.id).await;
        assert_eq!(t.store.record_try(tried(bad, Tried::Failed)).await.expect("failed"), disables, "{hours}");
    }
    let (at, why) = found(&t, made.id).await.disabled.expect("disabled");
    assert!(at == t.clock.now() && why.contains("1d"), "{why}");

    let on = ChangeEndpoint { enabled: Some(true), ..change(made.id) };
    assert_eq!(t.store.change_endpoint(on).await.expect("enable").failing_since, None);
    let bad = put_one(&t, made.id).await;
    let gone = RecordTry { gone: Some("410".into()), ..tried(bad, Tried::Failed) };
    assert!(t.store.record_try(gone.clone()).await.expect("gone"));
    assert!(!t.store.record_try(gone).await.expect("once"), "told once");
    let disabled = t.journal().await.into_iter().filter(|row| row.event == JournalEvent::EndpointDisabled).count();
    assert_eq!(disabled, 2);
    is_missing(&t.store.record_try(tried(t.new_id(), Tried::Again)).await);
}

/// It has many receivers, and one of them is not all.
pub async fn an_endpoint_for_callbacks_is_not_disabled_by_a_receiver(t: Fixture) {
    endpoint(&t, "acme").await;
    let new = NewEndpoint { url: None, ..new_endpoint(&t, "acme") };
    let made = t.store.create_endpoint(new).await.expect("create");
    let sent = put_one(&t, made.id).await;
    let gone = RecordTry { gone: Some("410".into()), give_up_after: Duration::ZERO, ..tried(sent, Tried::Failed) };
    assert!(!t.store.record_try(gone).await.expect("gone"));
    assert_eq!(found(&t, made.id).await.disabled, None);
}

/// By endpoint, by state, by time; the same events again, as new deliveries.
pub async fn deliveries_are_listed_and_sent_again(t: Fixture) {
    let (one, two) = (endpoint(&t, "acme").await, endpoint(&t, "acme").await);
    let first = put_one(&t, one.id).await;
    t.advance(HOUR);
    let (second, third) = (put_one(&t, one.id).await, put_one(&t, two.id).await);
    t.store.record_try(tried(first, Tried::Failed)).await.expect("failed");
    let all = DeliveryFilter::new(Sight::All, 10);
    assert_eq!(listed(&t, all.clone()).await, [third, second, first]);
    let until = Some(t.clock.now());
    assert_eq!(listed(&t, DeliveryFilter { endpoint: Some(one.id), ..all.clone() }).await, [second, first]);
    assert_eq!(listed(&t, DeliveryFilter { state: Some(DeliveryState::Failed), ..all.clone() }).await, [first]);
    assert_eq!(listed(&t, DeliveryFilter { since: until, ..all.clone() }).await, [third, second]);
    assert_eq!(listed(&t, DeliveryFilter { until, ..all.clone() }).await, [first]);
    assert_eq!(listed(&t, DeliveryFilter { before: Some(third), limit: 1, ..all.clone() }).await, [second]);

    let again = t.new_id();
    let deliveries = vec![(first, again), (t.new_id(), t.new_id())];
    let resend = ResendDeliveries { sight: sight("acme"), deliveries, word: Word::default() };
    for _ in 0..2 {
        assert_eq!(t.store.resend_deliveries(resend.clone()).await.expect("resend"), 1);
    }
    assert_eq!(listed(&t, all.clone()).await, [again, third, second, first]);
    let (old, new) = (t.store.show_delivery(&Sight::All, first), t.store.show_delivery(&Sight::All, again));
    let (old, new) = (old.await.expect("the old one"), new.await.expect("the new one"));
    assert_eq!((&new.body, &new.summary.event_id), (&old.body, &old.summary.event_id));
    assert_eq!((new.summary.state, new.summary.resend_of), (DeliveryState::Pending, Some(first)));
    let resent = t.journal().await.into_iter().filter(|row| row.event == JournalEvent::DeliveriesResent).count();
    assert_eq!(resent, 1, "a repetition is not told");
    let off = ChangeEndpoint { enabled: Some(false), ..change(one.id) };
    t.store.change_endpoint(off).await.expect("disable");
    let deliveries = vec![(first, t.new_id())];
    is_conflict(&t.store.resend_deliveries(ResendDeliveries { deliveries, ..resend }).await);
}

/// Also one whose job ended behind its back; and nothing is left of an endpoint that was removed.
pub async fn a_delivery_ends_with_its_job_and_goes_with_it(t: Fixture) {
    let made = endpoint(&t, "acme").await;
    let (lost, sent) = (put_one(&t, made.id).await, put_one(&t, made.id).await);
    t.store.record_try(tried(sent, Tried::Delivered)).await.expect("delivered");
    let from = t.store.find_cursor().await.expect("a cursor");
    let request = PutDeliveries { from, to: Cursor::at(9), deliveries: Vec::new(), failed: vec![lost, sent] };
    assert!(t.store.put_deliveries(request).await.expect("put"));
    assert_eq!((state(&t, lost).await, state(&t, sent).await), (DeliveryState::Failed, DeliveryState::Delivered));

    let worker = t.worker("w").await;
    let claim = ClaimJobs::new(worker, QueueName::new(OWN_QUEUE).expect("a name"), 10);
    let lease = t.store.claim_jobs(claim).await.expect("claim").expect("jobs").lease;
    for job in [lost, sent] {
        t.end(worker, lease, job, success()).await;
    }
    t.store.drop_leases(worker, vec![lease]).await.expect("drop");
    t.advance(HOUR);
    let prune = PruneJobs { older_than: Duration::from_secs(60), dead_too: false, limit: 100 };
    assert_eq!(t.store.prune_jobs(prune).await.expect("prune"), 2);
    is_missing(&t.store.show_delivery(&Sight::All, sent).await);
    let sent = put_one(&t, made.id).await;
    t.store.remove_endpoint(operate(Sight::All, made.id)).await.expect("remove");
    is_missing(&t.store.show_delivery(&Sight::All, sent).await);
    is_missing(&t.store.record_try(tried(sent, Tried::Delivered)).await);
}
