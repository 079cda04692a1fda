//! One worker, many tenants, and nobody sees another's.

use std::time::Duration;

use kit::testing::Place;
use kit::{Running, until};
use passport::bom::Format;
use passport::jobs::{ParseFacts, ParseFactsJob};
use passport::orders::{self, Order};
use passport::records::document::Document;
use passport::records::endpoint;
use passport::records::version::StoredVersion;
use passport::settings::Settings;
use passport::worker;
use serde_json::json;
use tenure::{JobState, TenantName};

use crate::plant::{BILL, Plant, RULES, battery, kept, settings};

kit::on_each_store! { passport::TABLES;
    one_worker_serves_many_tenants_and_keeps_them_apart,
    nobody_reaches_into_another_tenant,
    a_flood_of_one_tenant_keeps_no_other_waiting,
    a_receiver_that_hangs_does_not_hold_every_slot,
}

fn volt() -> TenantName {
    TenantName::new("volt").unwrap()
}

/// Shows: S4.18
async fn one_worker_serves_many_tenants_and_keeps_them_apart(place: Place) {
    let plant = Plant::open(place).await;
    plant.tell().await;
    let (app, other) = (&plant.app, volt());
    let passport_id = kept(orders::register(app, &other, battery("SN-1")).await);
    let rules_id = kept(orders::draft(app, &other, RULES).await);
    kept(orders::publish(app, &other, rules_id).await);
    let order = Order { passport_id, rules_id, issued_at: None, key_id: None };
    let theirs = kept(orders::upload(app, &other, Format::Csv, BILL.into(), Some(order)).await);
    let ours = plant.passport().await;

    let theirs = theirs.passport_version_id.unwrap();
    assert_ne!(theirs, ours.id, "the same document, battery and rules, and another tenant");
    let version = kept(StoredVersion::find(&plant.place.database, &other, theirs).await).unwrap();
    assert_eq!(version.status, "LABELED");
    for (tenant, id) in [(&plant.tenant, theirs), (&other, ours.id)] {
        assert_eq!(kept(StoredVersion::find(&plant.place.database, tenant, id).await), None);
    }
    assert_eq!(plant.place.count("select count(*) as n from passport_fact").await, 6, "three each");
    // acme's receiver heard of acme alone.
    let about: Vec<String> = plant.receiver.received().iter().map(|call| call.json().to_string()).collect();
    assert_eq!(about.len(), 6);
    assert!(about.iter().all(|body| !body.contains(&theirs.to_string())));
}

/// Shows: S4.18
async fn nobody_reaches_into_another_tenant(place: Place) {
    let plant = Plant::open(place).await;
    let uploaded = plant.upload(BILL, None).await;
    plant.run().await;
    let (id, other) = (uploaded.document_version_id, volt());
    assert_eq!(kept(Document::find(&plant.place.database, &other, id).await), None);
    assert!(orders::seal(&plant.app, &other, uploaded.snapshot_id).await.is_err());
    let job = ParseFactsJob::from(ParseFacts { document_version_id: id, then: None });
    let theirs = plant.app.client(&other);
    let job = theirs.enqueue(job).await.unwrap().job();
    plant.run().await;
    assert_eq!(theirs.show(job).await.unwrap().summary.state, JobState::Failed);
    assert!(plant.client.show(job).await.is_err(), "and their job is not seen either");
    let endpoint = plant.tell().await;
    assert!(kept(endpoint::rotate(&plant.app, &other, endpoint).await).is_none());
}

/// Shows: S4.18
async fn a_flood_of_one_tenant_keeps_no_other_waiting(place: Place) {
    let plant = Plant::open(place).await;
    for mass in 0..20 {
        plant.upload(&BILL.replace("4800", &format!("{}", 4_800 + mass)), None).await;
    }
    let theirs = kept(orders::upload(&plant.app, &volt(), Format::Csv, BILL.into(), None).await).job_id;
    let mut first = Vec::new();
    for _ in 0..2 {
        first.push(plant.claim("worker-a", 1).await.1.unwrap().jobs[0].id);
    }
    assert!(first.contains(&theirs), "it came last, and each tenant has its turn");
}

async fn a_receiver_that_hangs_does_not_hold_every_slot(place: Place) {
    let patient = Settings { webhook_timeout: Duration::from_secs(300), ..settings(&[]) };
    let plant = Plant::of(place, patient).await;
    plant.tell().await;
    plant.receiver.valve().close();
    // More to tell than there are slots.
    for limit in 0..6 {
        let rule = json!({"id": "r", "path": "components", "op": ">=", "value": limit});
        plant.rules(&json!({"rules": [rule]}).to_string()).await;
    }
    let running = Running::start(worker::worker(plant.place.worker(), &plant.app).build().unwrap());
    until("acme's receiver hangs", async || Ok((plant.receiver.traffic().calls() >= 2).then_some(()))).await.unwrap();
    let (app, other) = (&plant.app, volt());
    let passport_id = kept(orders::register(app, &other, battery("SN-1")).await);
    let rules_id = kept(orders::draft(app, &other, RULES).await);
    kept(orders::publish(app, &other, rules_id).await);
    let order = Order { passport_id, rules_id, issued_at: None, key_id: None };
    let theirs = kept(orders::upload(app, &other, Format::Csv, BILL.into(), Some(order)).await);
    until("volt's passport", async || {
        let found = StoredVersion::find(&plant.place.database, &other, theirs.passport_version_id.unwrap()).await;
        Ok(kept(found).filter(|version| version.status == "LABELED"))
    })
    .await
    .unwrap();
    assert_eq!(plant.receiver.traffic().calls(), 2, "the other slots were free all the time");
    plant.receiver.valve().open();
    running.stop().await.unwrap();
}
