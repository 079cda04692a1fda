//! From the journal to deliveries: each event exactly once, to those it concerns.

use std::collections::BTreeSet;

use tenure_core::name::TenantName;
use tenure_core::{EndpointId, Json, RunId};
use tenure_store::lease::Ending;
use tenure_store::operate::{CancelJob, Word};
use tenure_store::record::Sight;
use tenure_store::run::{CancelRun, NewRun};
use tenure_store::webhook::{ChangeEndpoint, DeliveryState, DeliverySummary, OperateEndpoint, VALUE_BYTES_MAX};

use crate::stage::{Stage, success};

fn types(log: &[DeliverySummary]) -> Vec<&str> {
    log.iter().map(|delivery| delivery.event_type.as_str()).collect()
}

fn to(log: &[DeliverySummary], endpoint: EndpointId) -> Vec<&str> {
    let mine = log.iter().filter(|delivery| delivery.endpoint == endpoint);
    mine.map(|delivery| delivery.event_type.as_str()).collect()
}

#[tokio::test]
async fn an_event_is_told_once_and_not_before_it_is_sealed() {
    let stage = Stage::new(&[]).await;
    stage.endpoint("acme", "job.*").await;
    let job = stage.new_job("acme");
    stage.store.enqueue_jobs(vec![job.clone()]).await.unwrap();
    assert_eq!(stage.tell().await, []);
    stage.work(Vec::new(), &success()).await;
    let log = stage.tell().await;
    assert_eq!(types(&log), ["job.claimed", "job.succeeded"]);
    assert!(log.iter().all(|delivery| delivery.subject == job.id.to_string()));
    let claimed: serde_json::Value = serde_json::from_str(&stage.delivery(log[0].job).await.body).unwrap();
    assert!(claimed["payload"]["result"].is_null() && claimed["payload"]["ended_at"].is_null(), "{claimed}");
    let again = tokio::join!(stage.teller.tell_all(), stage.teller.tell_all());
    assert!(again.0.is_ok() && again.1.is_ok());
    assert_eq!(stage.log().await, log);
}

#[tokio::test]
async fn two_tellers_at_once_tell_every_event_once() {
    let stage = Stage::new(&[]).await;
    stage.endpoint("acme", "job.succeeded").await;
    // More than fit into one page of jobs, in rows of 256, and more than fit into one seal.
    let jobs: Vec<_> = (0..2_500).map(|_| stage.new_job("acme")).collect();
    let mut wanted: Vec<String> = jobs.iter().map(|job| job.id.to_string()).collect();
    for jobs in jobs.chunks(1_000) {
        stage.work(jobs.to_vec(), &success()).await;
    }
    let (one, two) = tokio::join!(stage.teller.tell_all(), stage.teller.tell_all());
    assert!(one.is_ok() && two.is_ok());
    let mut told: Vec<String> = stage.log().await.into_iter().map(|delivery| delivery.subject).collect();
    told.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(told, wanted);
}

#[tokio::test]
async fn an_endpoint_hears_what_it_asked_for_of_its_own_tenant_from_then_on() {
    let stage = Stage::new(&[]).await;
    let (first, _) = stage.endpoint("acme", "job.succeeded").await;
    stage.work(vec![stage.new_job("acme")], &success()).await;
    stage.advance(1);
    let (late, _) = stage.endpoint("acme", "*").await;
    let (other, _) = stage.endpoint("bolt", "*").await;
    let log = stage.tell().await;
    assert_eq!((to(&log, first), to(&log, late), to(&log, other)), (vec!["job.succeeded"], vec![], vec![]));
    stage.work(vec![stage.new_job("acme"), stage.new_job("default")], &success()).await;
    let log = stage.tell().await;
    assert_eq!(to(&log, first), ["job.succeeded"; 2]);
    assert_eq!(to(&log, late), ["job.claimed", "job.succeeded"]);
    assert_eq!(to(&log, other), [""; 0]);
}

#[tokio::test]
async fn a_callback_is_told_how_its_job_ended() {
    let stage = Stage::new(&[]).await;
    let (callbacks, secret) = stage.wish("acme", "*", None).await;
    let url = format!("http://{}/back/7", stage.receiver.address);
    let asking = tenure_core::NewJob { callback_url: Some(url.clone()), ..stage.new_job("acme") };
    let silent = stage.new_job("acme");
    stage.work(vec![asking.clone(), silent], &success()).await;
    let log = stage.tell().await;
    assert_eq!(to(&log, callbacks), ["job.succeeded"]);
    assert_eq!((log[0].callback_url.as_deref(), &log[0].subject), (Some(url.as_str()), &asking.id.to_string()));
    stage.send().await;
    let taken = stage.taken();
    assert_eq!((taken.len(), taken[0].first_line()), (1, "POST /back/7 HTTP/1.1"));
    assert_eq!(taken[0].verified(&secret, stage.clock.now()), Ok(()));
    assert_eq!(taken[0].json()["payload"]["job"], asking.id.to_string());
}

#[tokio::test]
async fn runs_and_endpoints_are_told_of_too() {
    let stage = Stage::new(&[]).await;
    let (listener, _) = stage.endpoint("acme", "run.*,webhook.disabled").await;
    let (quiet, _) = stage.endpoint("acme", "job.dead").await;
    let (broken, _) = stage.endpoint("acme", "job.dead").await;
    let id = RunId::from_uuid(*stage.new_job("acme").id.as_uuid());
    let run = NewRun { tenant: "acme".parse::<TenantName>().unwrap(), ..NewRun::new(id) };
    stage.store.create_run(run).await.unwrap();
    let word = Word { actor: Some("ann".into()), reason: Some("enough".into()) };
    stage.store.cancel_run(CancelRun { sight: Sight::All, run: id, word: word.clone() }).await.unwrap();
    let off = ChangeEndpoint { enabled: Some(false), ..ChangeEndpoint::new(Sight::All, broken, word.clone()) };
    stage.store.change_endpoint(off).await.unwrap();
    stage.store.ping_endpoint(OperateEndpoint { sight: Sight::All, endpoint: quiet, word }).await.unwrap();
    stage.seal().await;
    let log = stage.tell().await;
    assert_eq!(to(&log, listener), ["run.created", "run.canceled", "webhook.disabled"]);
    assert_eq!((to(&log, quiet), to(&log, broken)), (vec!["webhook.pinged"], vec![]));
    let disabled = stage.delivery(log.iter().find(|told| told.event_type == "webhook.disabled").unwrap().job).await;
    let body: serde_json::Value = serde_json::from_str(&disabled.body).unwrap();
    assert_eq!((&body["aggregate_id"], &body["payload"]["why"]), (&broken.to_string().into(), &"enough".into()));
}

#[tokio::test]
async fn deliveries_tell_nobody_of_themselves_and_one_that_was_canceled_has_failed() {
    let stage = Stage::new(&[]).await;
    stage.endpoint("acme", "*").await;
    stage.seal().await;
    stage.tell().await;
    stage.work(vec![stage.new_job("acme")], &success()).await;
    let log = stage.tell().await;
    assert_eq!(types(&log), ["job.claimed", "job.succeeded"]);
    let cancel = CancelJob { sight: Sight::All, job: log[1].job, force: false, word: Word::default() };
    stage.store.cancel_job(cancel).await.unwrap();
    stage.send().await;
    stage.seal().await;
    let after = stage.tell().await;
    assert_eq!(types(&after), types(&log));
    assert_eq!((after[0].state, after[1].state), (DeliveryState::Delivered, DeliveryState::Failed));
}

#[tokio::test]
async fn an_endpoint_that_is_enabled_hears_nothing_of_the_time_before() {
    let stage = Stage::new(&[]).await;
    let (endpoint, _) = stage.endpoint("acme", "job.succeeded").await;
    let (other, _) = stage.endpoint("acme", "job.dead").await;
    let switch = |enabled| ChangeEndpoint {
        enabled: Some(enabled),
        ..ChangeEndpoint::new(Sight::All, endpoint, Word::default())
    };
    stage.store.change_endpoint(switch(false)).await.unwrap();
    stage.work(vec![stage.new_job("acme")], &success()).await;
    stage.advance(1);
    // Somebody else listens all the time, so the cursor stands where it was: the teller is behind.
    stage.store.change_endpoint(switch(true)).await.unwrap();
    assert_eq!(stage.tell().await, []);
    stage.work(vec![stage.new_job("acme")], &success()).await;
    let log = stage.tell().await;
    assert_eq!((to(&log, endpoint), to(&log, other)), (vec!["job.succeeded"], vec![]));
}

/// More rows than a page, each of one job: what is cut off a page is told by the next one.
#[tokio::test]
async fn full_pages_are_told_whole() {
    let stage = Stage::new(&[]).await;
    stage.endpoint("acme", "job.canceled").await;
    let jobs: Vec<_> = (0..1_100).map(|_| stage.new_job("acme")).collect();
    for jobs in jobs.chunks(1_000) {
        stage.store.enqueue_jobs(jobs.to_vec()).await.unwrap();
    }
    for job in &jobs {
        let cancel = CancelJob { sight: Sight::All, job: job.id, force: false, word: Word::default() };
        stage.store.cancel_job(cancel).await.unwrap();
    }
    stage.seal().await;
    let told: BTreeSet<String> = stage.tell().await.into_iter().map(|delivery| delivery.subject).collect();
    assert!(
        told.len() == 1_100 && jobs.iter().all(|job| told.contains(&job.id.to_string())),
        "{} are told",
        told.len()
    );
}

/// Bodies of more than a page may hold, in two rows of one seal: each row is told, and none is left out.
#[tokio::test]
async fn a_page_of_large_bodies_is_told_in_parts() {
    let stage = Stage::new(&[]).await;
    for _ in 0..4 {
        stage.endpoint("acme", "job.succeeded").await;
    }
    let text = |bytes: usize| Json::parse("result", format!("\"{}\"", "x".repeat(bytes - 2))).unwrap();
    for (jobs, bytes, omitted) in [(300, VALUE_BYTES_MAX, "[]"), (5, VALUE_BYTES_MAX + 1, "[\"result\"]")] {
        let ending = Ending::Succeeded { result: Some(text(bytes)), usage: None };
        let jobs: Vec<_> = (0..jobs).map(|_| stage.new_job("acme")).collect();
        let ids: BTreeSet<String> = jobs.iter().map(|job| job.id.to_string()).collect();
        stage.work(jobs, &ending).await;
        let told: Vec<_> = stage.tell().await.into_iter().filter(|told| ids.contains(&told.subject)).collect();
        assert_eq!(told.len(), 4 * ids.len(), "each to each, once");
        for delivery in told.iter().step_by(97) {
            let body = stage.delivery(delivery.job).await.body;
            assert!(body.contains(&format!("\"omitted\":{omitted}")) && (body.len() > bytes) == (omitted == "[]"));
        }
    }
}

/// Who operates on a tenant's jobs, and why, is the operators' business.
#[tokio::test]
async fn what_operators_say_is_told_to_nobody() {
    let stage = Stage::new(&[]).await;
    stage.endpoint("acme", "*").await;
    let job = stage.new_job("acme");
    stage.store.enqueue_jobs(vec![job.clone()]).await.unwrap();
    let word = Word { actor: Some("key:opsopsopsops".into()), reason: Some("fraud suspect".into()) };
    let cancel = CancelJob { sight: Sight::All, job: job.id, force: false, word };
    stage.store.cancel_job(cancel).await.unwrap();
    stage.seal().await;
    let log = stage.tell().await;
    assert_eq!(types(&log), ["job.canceled"]);
    let body = stage.delivery(log[0].job).await.body;
    assert!(!body.contains("opsops") && !body.contains("fraud"), "{body}");
}
