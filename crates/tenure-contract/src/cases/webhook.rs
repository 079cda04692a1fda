//! Webhooks: endpoints, the cursor, deliveries.

mod deliveries;

use std::time::Duration;

use tenure_core::journal::JournalEvent;
use tenure_core::{EndpointId, Events, JobId, Json, TenantName};
use tenure_store::StoreError;
use tenure_store::access::SetTenant;
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::webhook::{
    ChangeEndpoint, Cursor, DeliveryFilter, DeliveryState, EndpointFilter, EndpointRecord, NewDelivery, NewEndpoint,
    OperateEndpoint, PutDeliveries, RecordTry, ResendDeliveries, Tried,
};

use crate::fixture::Fixture;

pub use deliveries::*;

const HOUR: Duration = Duration::from_secs(3_600);

fn tenant(name: &str) -> TenantName {
    name.parse().expect("a name")
}

fn sight(name: &str) -> Sight {
    Sight::Tenant(tenant(name))
}

fn new_endpoint(t: &Fixture, owner: &str) -> NewEndpoint {
    NewEndpoint {
        id: EndpointId::from_uuid(*t.new_id().as_uuid()),
        tenant: tenant(owner),
        url: Some("https://example.com/hook".into()),
        events: "job.*,webhook.disabled".parse().expect("events"),
        prefix: "X-Acme-".into(),
        secret: vec![1, 2, 3],
        word: Word { actor: Some("ann".into()), reason: Some("to see".into()) },
    }
}

async fn endpoint(t: &Fixture, owner: &str) -> EndpointRecord {
    let request = SetTenant { tenant: tenant(owner), quota: None, word: Word::default() };
    t.store.set_tenant(request).await.expect("a tenant");
    t.store.create_endpoint(new_endpoint(t, owner)).await.expect("an endpoint")
}

async fn found(t: &Fixture, endpoint: EndpointId) -> EndpointRecord {
    t.store.show_endpoint(&Sight::All, endpoint).await.expect("it is there")
}

fn change(endpoint: EndpointId) -> ChangeEndpoint {
    ChangeEndpoint::new(Sight::All, endpoint, Word::default())
}

fn operate(sight: Sight, endpoint: EndpointId) -> OperateEndpoint {
    OperateEndpoint { sight, endpoint, word: Word::default() }
}

/// A delivery of row 7 of the journal.
fn delivery(t: &Fixture, to: EndpointId, subject: JobId) -> NewDelivery {
    NewDelivery {
        job: t.new_id(),
        endpoint: to,
        journal: 7,
        subject: subject.to_string(),
        event_id: format!("evt_7_{subject}"),
        event_type: "job.succeeded".into(),
        callback_url: None,
        trace: None,
        body: "{\"event_id\":\"ü\"}".into(),
    }
}

/// Stores these, wherever the cursor stands.
async fn put(t: &Fixture, deliveries: Vec<NewDelivery>) {
    let from = t.store.find_cursor().await.expect("a cursor");
    let to = Cursor { after: from.after + 1, ..from };
    let put = PutDeliveries { from, to, deliveries, failed: Vec::new() };
    assert!(t.store.put_deliveries(put).await.expect("put"), "nobody else moves it");
}

async fn put_one(t: &Fixture, to: EndpointId) -> JobId {
    let new = delivery(t, to, t.new_id());
    let job = new.job;
    put(t, vec![new]).await;
    job
}

async fn listed(t: &Fixture, filter: DeliveryFilter) -> Vec<JobId> {
    t.store.list_deliveries(&filter).await.expect("list").into_iter().map(|delivery| delivery.job).collect()
}

async fn state(t: &Fixture, delivery: JobId) -> DeliveryState {
    t.store.show_delivery(&Sight::All, delivery).await.expect("it is there").summary.state
}

fn tried(job: JobId, tried: Tried) -> RecordTry {
    let entry = Json::parse("entry", "{\"status\":500}").expect("JSON");
    RecordTry { job, entry, tried, gone: None, give_up_after: 24 * HOUR }
}

fn is_missing<T: std::fmt::Debug>(answer: &Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::NotFound(_))), "{answer:?}");
}

fn is_conflict<T: std::fmt::Debug>(answer: &Result<T, StoreError>) {
    assert!(matches!(answer, Err(StoreError::Conflict(_))), "{answer:?}");
}

/// Every member; and the reply that was lost is answered again.
pub async fn an_endpoint_is_found_as_it_was_made(t: Fixture) {
    is_missing(&t.store.create_endpoint(new_endpoint(&t, "acme")).await);
    t.store.create_endpoint(new_endpoint(&t, "default")).await.expect("that one is always there");
    endpoint(&t, "acme").await;
    let new = new_endpoint(&t, "acme");
    let made = t.store.create_endpoint(new.clone()).await.expect("create");
    let wanted = EndpointRecord {
        id: new.id,
        tenant: new.tenant.clone(),
        url: new.url.clone(),
        events: new.events.clone(),
        prefix: new.prefix.clone(),
        secret: new.secret.clone(),
        previous: None,
        created_at: t.clock.now(),
        listens_since: t.clock.now(),
        disabled: None,
        failing_since: None,
    };
    assert_eq!((made, found(&t, new.id).await), (wanted.clone(), wanted.clone()));
    t.advance(HOUR);
    assert_eq!(t.store.create_endpoint(new.clone()).await.expect("again"), wanted);
    is_conflict(&t.store.create_endpoint(NewEndpoint { url: None, ..new.clone() }).await);
    let callbacks = NewEndpoint { url: None, ..new_endpoint(&t, "acme") };
    t.store.create_endpoint(callbacks).await.expect("one for callbacks");
    is_conflict(&t.store.create_endpoint(NewEndpoint { url: None, ..new_endpoint(&t, "acme") }).await);
    for bad in [
        NewEndpoint { url: Some("ftp://example.com".into()), ..new_endpoint(&t, "acme") },
        NewEndpoint { secret: Vec::new(), ..new_endpoint(&t, "acme") },
        NewEndpoint { prefix: String::new(), ..new_endpoint(&t, "acme") },
    ] {
        let refused = t.store.create_endpoint(bad).await;
        assert!(matches!(refused, Err(StoreError::Invalid(_))), "{refused:?}");
    }
}

/// Secrets overlap, a repetition changes nothing, and each change is told once.
pub async fn an_endpoint_changes_and_a_repetition_does_not(t: Fixture) {
    let made = endpoint(&t, "acme").await;
    let changed = ChangeEndpoint {
        url: Some("https://example.org/".into()),
        events: Some(Events::default()),
        prefix: Some("X-B-".into()),
        secret: Some((vec![9], HOUR)),
        ..change(made.id)
    };
    let after = t.store.change_endpoint(changed.clone()).await.expect("change");
    let wanted = EndpointRecord {
        url: Some("https://example.org/".into()),
        events: Events::default(),
        prefix: "X-B-".into(),
        secret: vec![9],
        previous: Some((vec![1, 2, 3], t.clock.now().plus(HOUR))),
        ..made.clone()
    };
    assert_eq!((after, found(&t, made.id).await), (wanted.clone(), wanted.clone()));
    let rows = t.journal().await.len();
    t.advance(HOUR);
    assert_eq!(t.store.change_endpoint(changed).await.expect("again"), wanted);
    assert_eq!(t.store.change_endpoint(change(made.id)).await.expect("nothing"), wanted);
    assert_eq!(t.journal().await.len(), rows, "nothing more is told");

    let word = Word { actor: None, reason: Some("too loud".into()) };
    let off = ChangeEndpoint { enabled: Some(false), ..ChangeEndpoint::new(Sight::All, made.id, word) };
    for _ in 0..2 {
        let disabled = t.store.change_endpoint(off.clone()).await.expect("disable").disabled;
        assert_eq!(disabled, Some((t.clock.now(), "too loud".to_owned())));
    }
    is_conflict(&t.store.ping_endpoint(operate(Sight::All, made.id)).await);
    let on = ChangeEndpoint { enabled: Some(true), ..change(made.id) };
    let wanted = EndpointRecord { listens_since: t.clock.now(), ..wanted };
    assert_eq!(t.store.change_endpoint(on).await.expect("enable"), wanted);
    t.store.ping_endpoint(operate(Sight::All, made.id)).await.expect("ping");
    t.store.remove_endpoint(operate(Sight::All, made.id)).await.expect("remove");
    is_missing(&t.store.show_endpoint(&Sight::All, made.id).await);

    let told: Vec<_> = t.journal().await.into_iter().map(|row| row.event).collect();
    use JournalEvent::{EndpointDisabled, EndpointPinged, EndpointRemoved, EndpointSet, TenantSet};
    assert_eq!(
        told,
        [TenantSet, EndpointSet, EndpointSet, EndpointDisabled, EndpointSet, EndpointPinged, EndpointRemoved]
    );
    let details = t.journal().await.remove(3).details.expect("details");
    assert!(details.as_str().contains("too loud") && details.as_str().contains(&made.id.to_string()), "{details}");
}

/// One for callbacks has no url that could change.
pub async fn an_endpoint_for_callbacks_gets_no_url(t: Fixture) {
    endpoint(&t, "acme").await;
    let new = NewEndpoint { url: None, ..new_endpoint(&t, "acme") };
    let made = t.store.create_endpoint(new).await.expect("create");
    is_conflict(&t.store.change_endpoint(ChangeEndpoint { url: Some("https://a.b".into()), ..change(made.id) }).await);
    is_conflict(&t.store.ping_endpoint(operate(Sight::All, made.id)).await);
}

/// In the same words as for an id that nobody has.
pub async fn endpoints_and_deliveries_of_another_tenant_do_not_exist(t: Fixture) {
    let (mine, other) = (endpoint(&t, "acme").await, endpoint(&t, "bolt").await);
    let sent = put_one(&t, other.id).await;
    let acme = sight("acme");
    is_missing(&t.store.show_endpoint(&acme, other.id).await);
    is_missing(&t.store.change_endpoint(ChangeEndpoint { sight: acme.clone(), ..change(other.id) }).await);
    is_missing(&t.store.remove_endpoint(operate(acme.clone(), other.id)).await);
    is_missing(&t.store.ping_endpoint(operate(acme.clone(), other.id)).await);
    is_missing(&t.store.show_delivery(&acme, sent).await);
    let filter = EndpointFilter { sight: acme.clone(), after: None, limit: 10 };
    let seen = t.store.list_endpoints(&filter).await.expect("list");
    assert_eq!(seen, std::slice::from_ref(&mine));
    assert_eq!(listed(&t, DeliveryFilter::new(acme.clone(), 10)).await, []);
    assert_eq!(listed(&t, DeliveryFilter::new(sight("bolt"), 10)).await, [sent]);
    let again = ResendDeliveries { sight: acme, deliveries: vec![(sent, t.new_id())], word: Word::default() };
    assert_eq!(t.store.resend_deliveries(again).await.expect("resend"), 0);
    let filter = EndpointFilter { sight: Sight::All, after: Some(mine.id), limit: 10 };
    assert_eq!(t.store.list_endpoints(&filter).await.expect("list"), [other]);
}

/// The first endpoint hears from now on, and so does the first that is enabled again.
pub async fn what_happened_while_nobody_listened_is_not_told(t: Fixture) {
    let worker = t.worker("w").await;
    t.enqueue().await;
    t.claim(worker, 1).await.expect("a job");
    assert_eq!(t.store.find_cursor().await.expect("a cursor"), Cursor::at(1));
    t.store.seal_journal().await.expect("seal").expect("a seal");
    let made = endpoint(&t, "acme").await;
    assert_eq!(t.store.find_cursor().await.expect("a cursor"), Cursor::at(2));
    t.store.seal_journal().await.expect("seal").expect("a seal");
    endpoint(&t, "bolt").await;
    assert_eq!(t.store.find_cursor().await.expect("a cursor"), Cursor::at(2), "somebody listens already");
    let filter = EndpointFilter { sight: Sight::All, after: None, limit: 10 };
    for endpoint in t.store.list_endpoints(&filter).await.expect("list") {
        let off = ChangeEndpoint { enabled: Some(false), ..change(endpoint.id) };
        t.store.change_endpoint(off).await.expect("disable");
    }
    t.store.seal_journal().await.expect("seal").expect("a seal");
    let on = ChangeEndpoint { enabled: Some(true), ..change(made.id) };
    t.store.change_endpoint(on).await.expect("enable");
    assert_eq!(t.store.find_cursor().await.expect("a cursor"), Cursor::at(4));
}
