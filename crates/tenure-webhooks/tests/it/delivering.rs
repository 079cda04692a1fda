//! From a delivery to its receiver: signed, tried again, written down, given up.

use std::time::Duration;

use tenure_core::State;
use tenure_core::{EndpointId, JobId};
use tenure_store::lease::Ending;
use tenure_store::operate::Word;
use tenure_store::record::{JobRecord, Sight};
use tenure_store::webhook::{ChangeEndpoint, DeliveryState, OperateEndpoint, RecordTry, Tried};
use tenure_webhooks::verify::NotGenuine;
use tenure_webhooks::{EndpointError, Endpoints, Guard, Secret};

use crate::stage::{Stage, success};

/// One event for one endpoint, told and not yet sent.
async fn told(answers: &[&'static str]) -> (Stage, EndpointId, Secret, JobId) {
    let stage = Stage::new(answers).await;
    let (endpoint, secret) = stage.endpoint("acme", "job.succeeded").await;
    let job = tell_another(&stage).await;
    (stage, endpoint, secret, job)
}

async fn tell_another(stage: &Stage) -> JobId {
    // Deliveries of one moment are in no order.
    stage.advance(1);
    stage.work(vec![stage.new_job("acme")], &success()).await;
    stage.tell().await.pop().unwrap().job
}

async fn job(stage: &Stage, job: JobId) -> JobRecord {
    stage.store.show_job(&Sight::All, job).await.unwrap()
}

async fn tries(stage: &Stage, delivery: JobId) -> Vec<serde_json::Value> {
    serde_json::from_str(stage.delivery(delivery).await.tries.as_str()).unwrap()
}

#[tokio::test]
async fn a_delivery_arrives_signed_in_both_families_and_is_written_down() {
    let (stage, _, secret, delivery) = told(&["200 OK\r\nServer: old\r\nSet-Cookie: a=b\r\n"]).await;
    stage.send().await;
    let taken = stage.taken();
    let [request] = taken.as_slice() else { panic!("{} requests", taken.len()) };
    assert_eq!(request.verified(&secret, stage.clock.now()), Ok(()));
    assert_eq!(request.verified(&Secret::generate(), stage.clock.now()), Err(NotGenuine::Signature));
    let summary = stage.delivery(delivery).await.summary;
    assert_eq!(request.header("webhook-id"), Some(summary.event_id.as_str()));
    assert_eq!(request.header("x-acme-event-type"), Some("job.succeeded"));
    assert_eq!(request.header("x-acme-delivery-id"), Some(delivery.to_string().as_str()));
    assert!(request.header("x-acme-signature").is_some_and(|value| value.starts_with("sha256=")));
    let body = request.json();
    assert_eq!((&body["event_id"], &body["aggregate_type"]), (&summary.event_id.into(), &"job".into()));
    assert_eq!((&body["payload"]["attempt"], &body["payload"]["usage"]["units"]), (&1.into(), &3.into()));
    assert!(body["payload"]["fence"].as_i64().is_some_and(|fence| fence > 0), "{body}");
    let text = stage.delivery(delivery).await.body;
    assert!(text.contains("12345678901234567890123"), "digit for digit: {text}");

    assert_eq!((summary.state, summary.finished_at), (DeliveryState::Delivered, Some(stage.clock.now())));
    let tries = tries(&stage, delivery).await;
    assert_eq!((tries.len(), &tries[0]["status"], &tries[0]["headers"]["server"]), (1, &200.into(), &"old".into()));
    assert!(tries[0]["headers"].get("set-cookie").is_none() && tries[0]["error"].is_null());
    assert_eq!(job(&stage, delivery).await.summary.state, State::Succeeded);
}

#[tokio::test]
async fn a_receiver_is_tried_again_with_the_same_event_until_it_takes_it() {
    let down = "503 Service Unavailable\r\nRetry-After: 900\r\n";
    let (stage, endpoint, secret, delivery) = told(&["500 Internal Server Error\r\n", down, "301 Moved\r\n"]).await;
    let (mut waits, mut ids) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        stage.send().await;
        let taken = stage.taken();
        assert_eq!((taken.len(), taken[0].verified(&secret, stage.clock.now())), (1, Ok(())));
        ids.push(taken[0].header("webhook-id").unwrap().to_owned());
        let wait = job(&stage, delivery).await.summary.run_at.since(stage.clock.now());
        waits.push(wait.as_secs());
        stage.clock.advance(wait + Duration::from_secs(1));
    }
    assert!((4..=6).contains(&waits[0]) && waits[1] == 900 && (96..=144).contains(&waits[2]), "{waits:?}");
    ids.dedup();
    assert_eq!(ids.len(), 1, "one event");
    assert_eq!(stage.delivery(delivery).await.summary.state, DeliveryState::Delivered);
    let statuses: Vec<_> = tries(&stage, delivery).await.iter().map(|entry| entry["status"].as_u64()).collect();
    assert_eq!(statuses, [Some(500), Some(503), Some(301), Some(204)]);
    let endpoint = stage.store.show_endpoint(&Sight::All, endpoint).await.unwrap();
    assert_eq!((endpoint.failing_since, endpoint.disabled), (None, None));
}

#[tokio::test]
async fn after_five_tries_a_delivery_is_dead_and_can_be_requeued() {
    let (stage, endpoint, _, delivery) = told(&["500 Internal Server Error\r\n"; 5]).await;
    for _ in 0..5 {
        stage.send().await;
        stage.advance(1_000);
    }
    assert_eq!(stage.taken().len(), 5);
    let dead = job(&stage, delivery).await;
    assert_eq!(
        (dead.summary.state, stage.delivery(delivery).await.summary.state),
        (State::Dead, DeliveryState::Failed)
    );
    assert!(stage.store.show_endpoint(&Sight::All, endpoint).await.unwrap().failing_since.is_some());
    // The receiver's address is its owner's business.
    let said = format!("{:?}{:?}", dead.attempts, stage.delivery(delivery).await.tries);
    assert!(said.contains("answered 500") && !said.contains("s3cret") && !said.contains("whsec"), "{said}");
    let word = Word::default();
    let requeue = tenure_store::operate::RequeueJob { sight: Sight::All, job: delivery, word };
    stage.store.requeue_job(requeue).await.unwrap();
    stage.send().await;
    assert_eq!(stage.delivery(delivery).await.summary.state, DeliveryState::Delivered);
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_called_no_more() {
    let (stage, endpoint, _, first) = told(&["410 Gone\r\n"]).await;
    let second = tell_another(&stage).await;
    stage.send().await;
    assert_eq!(stage.taken().len(), 1, "the second was not sent");
    for delivery in [first, second] {
        assert_eq!(stage.delivery(delivery).await.summary.state, DeliveryState::Failed);
    }
    let (_, why) = stage.store.show_endpoint(&Sight::All, endpoint).await.unwrap().disabled.unwrap();
    assert!(why.contains("410"), "{why}");
}

#[tokio::test]
async fn during_a_rotation_both_secrets_are_believed() {
    let (stage, endpoint, old, _) = told(&[]).await;
    let overlap = Duration::from_secs(3_600);
    let rotated = stage.endpoints.rotate(&*stage.store, Sight::All, endpoint, overlap, Word::default()).await;
    let new = rotated.unwrap().1;
    stage.send().await;
    let taken = stage.taken();
    for secret in [&old, &new] {
        assert_eq!(taken[0].verified(secret, stage.clock.now()), Ok(()));
    }
    stage.advance(3_601);
    tell_another(&stage).await;
    stage.send().await;
    let taken = stage.taken();
    assert_eq!(taken[0].verified(&new, stage.clock.now()), Ok(()));
    assert_eq!(taken[0].verified(&old, stage.clock.now()), Err(NotGenuine::Signature));
}

#[tokio::test]
async fn what_has_arrived_is_not_sent_again() {
    let (stage, _, _, delivery) = told(&[]).await;
    // A process wrote down that it had arrived, and died before it could say so of the job.
    let entry = tenure_core::Json::parse("entry", "{}").unwrap();
    let give_up_after = Duration::from_secs(1);
    let record = RecordTry { job: delivery, entry, tried: Tried::Delivered, gone: None, give_up_after };
    stage.store.record_try(record).await.unwrap();
    stage.send().await;
    assert_eq!((stage.receiver.connects(), job(&stage, delivery).await.summary.state), (0, State::Succeeded));
}

#[tokio::test]
async fn nothing_is_sent_to_an_endpoint_that_was_disabled_or_removed_meanwhile() {
    let (stage, endpoint, _, delivery) = told(&[]).await;
    let off = ChangeEndpoint { enabled: Some(false), ..ChangeEndpoint::new(Sight::All, endpoint, Word::default()) };
    stage.store.change_endpoint(off).await.unwrap();
    stage.send().await;
    assert_eq!(stage.delivery(delivery).await.summary.state, DeliveryState::Failed);
    let (other, _) = stage.endpoint("acme", "job.succeeded").await;
    let delivery = tell_another(&stage).await;
    let remove = OperateEndpoint { sight: Sight::All, endpoint: other, word: Word::default() };
    stage.store.remove_endpoint(remove).await.unwrap();
    stage.send().await;
    assert_eq!((stage.receiver.connects(), job(&stage, delivery).await.summary.state), (0, State::Canceled));
}

#[tokio::test]
async fn without_its_key_a_secret_stays_sealed_and_nothing_is_sent() {
    let (stage, _, _, delivery) = told(&[]).await;
    stage.send_with(None).await;
    let other = format!("other:{}", "77".repeat(32)).parse().unwrap();
    stage.advance(61);
    stage.send_with(Some(other)).await;
    assert_eq!(stage.receiver.connects(), 0);
    assert_eq!(tries(&stage, delivery).await, [] as [serde_json::Value; 0], "no try is spent");
    assert_eq!(job(&stage, delivery).await.summary.attempt, 0);
    stage.advance(61);
    stage.send().await;
    assert_eq!(stage.delivery(delivery).await.summary.state, DeliveryState::Delivered);
}

#[tokio::test]
async fn an_address_inside_is_refused_when_it_is_named_and_when_it_is_called() {
    let (stage, ..) = told(&[]).await;
    let wish = |url: &str| tenure_webhooks::Wish {
        tenant: "acme".parse().unwrap(),
        url: Some(url.to_owned()),
        events: Default::default(),
        prefix: Default::default(),
        secret: None,
        word: Word::default(),
    };
    for url in ["http://169.254.169.254/latest", "http://[::1]/", "ftp://a.b/", "https://user@example.com/"] {
        let refused = stage.endpoints.create(&*stage.store, wish(url)).await;
        assert!(matches!(refused, Err(EndpointError::Refused(_))), "{url}: {refused:?}");
    }
    let keyless = Endpoints::new(Guard::default(), None).create(&*stage.store, wish("https://example.com/")).await;
    assert!(matches!(keyless, Err(EndpointError::NoKeys)), "{keyless:?}");
    // A callback was not checked by whoever stored the job: the sender asks again.
    stage.wish("acme", "*", None).await;
    let url = Some("http://169.254.169.254/latest".to_owned());
    let asking = tenure_core::NewJob { callback_url: url, ..stage.new_job("acme") };
    stage.work(vec![asking], &Ending::Succeeded { result: None, usage: None }).await;
    let delivery = stage.tell().await.into_iter().find(|told| told.callback_url.is_some()).unwrap();
    stage.send().await;
    assert_eq!(stage.delivery(delivery.job).await.summary.state, DeliveryState::Failed);
    let entries = tries(&stage, delivery.job).await;
    assert!(entries.len() == 1 && entries[0]["error"].as_str().unwrap().contains("refused"), "{entries:?}");
}
