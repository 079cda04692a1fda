//! Errors that will be the same the next time: the job is FAILED at once, with its code.

use kit::testing::Place;
use passport::code::Code;
use passport::halt::Halt;
use passport::jobs::{ParseFacts, ParseFactsJob, SignPassport, SignPassportJob};
use passport::orders::{self, Order};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tenure::{Job, JobState, row};

use crate::plant::{BILL, KEYS, Plant, kept};

kit::on_each_store! { passport::TABLES;
    a_snapshot_that_is_open_is_not_compiled,
    rules_that_are_a_draft_are_not_used,
    a_malformed_payload_or_document_is_a_validation_error,
    a_rule_that_compares_two_types_is_a_type_error,
    a_passport_that_is_too_large_is_refused,
    a_missing_key_is_a_permanent_error_until_somebody_adds_it,
    a_permanent_error_on_the_last_attempt_is_failed_and_not_dead,
}

fn failed(code: &str) -> (JobState, u16, String) {
    (JobState::Failed, 1, code.to_owned())
}

/// Shows: S4.26 S4.32
async fn a_snapshot_that_is_open_is_not_compiled(place: Place) {
    let plant = Plant::open(place).await;
    let order = plant.order().await;
    let uploaded = plant.upload(BILL, None).await;
    let early = orders::seal(&plant.app, &plant.tenant, uploaded.snapshot_id).await.unwrap_err();
    assert!(matches!(early, Halt::Refused(refusal) if refusal.code == Code::SnapshotNotReady), "not parsed yet");
    plant.run().await;
    let (_, job) = kept(orders::compile(&plant.app, &plant.tenant, uploaded.snapshot_id, order).await);
    plant.run().await;
    assert_eq!(plant.ended(job).await, failed("SNAPSHOT_NOT_READY"));
    assert_eq!(plant.place.count("select count(*) as n from passport_version").await, 0);
}

/// Shows: S4.27 S4.32
async fn rules_that_are_a_draft_are_not_used(place: Place) {
    let plant = Plant::open(place).await;
    let order = plant.order().await;
    let draft = kept(orders::draft(&plant.app, &plant.tenant, r#"{"rules": []}"#).await);
    let uploaded = plant.upload(BILL, Some(Order { rules_id: draft, ..order })).await;
    plant.run().await;
    let select = "select status from passport_snapshot where snapshot_id = $1";
    let snapshot = plant.place.database.query(select, row![uploaded.snapshot_id.to_string()]).await.unwrap();
    assert_eq!(snapshot[0].get::<String>("status").unwrap(), "SEALED", "that far it went");
    let jobs = plant.client.store().list_jobs(&Default::default()).await.unwrap();
    let compile = jobs.iter().find(|job| job.kind.as_str() == "COMPILE_PASSPORT").unwrap();
    assert_eq!(plant.ended(compile.id).await, failed("RULE_PKG_NOT_PUBLISHED"));
}

/// As somebody may write it by SQL.
#[derive(Serialize, Deserialize, Job)]
#[serde(transparent)]
#[job(kind = "PARSE_FACTS", queue = "passport")]
struct Anything(serde_json::Value);

/// Shows: S4.28 S4.32
async fn a_malformed_payload_or_document_is_a_validation_error(place: Place) {
    let plant = Plant::open(place).await;
    let unknown = ParseFactsJob::from(ParseFacts { document_version_id: uuid::Uuid::nil(), then: None });
    let jobs = [
        plant.client.enqueue(Anything(json!({}))).await.unwrap().job(),
        plant.client.enqueue(Anything(json!({"document_version_id": "seven"}))).await.unwrap().job(),
        plant.client.enqueue(Anything(json!([1, 2]))).await.unwrap().job(),
        plant.client.enqueue(unknown).await.unwrap().job(),
        plant.upload(&BILL.replace("38400.5", "38400,5"), None).await.job_id,
        plant.upload(&BILL.replace(",FI,", ",Finland,"), None).await.job_id,
    ];
    plant.run().await;
    for job in jobs {
        assert_eq!(plant.ended(job).await, failed("VALIDATION_ERROR"));
    }
    let comma = "line 2, mass_g `38400,5` is refused: a decimal has a point: write 38400.5";
    for (job, said) in [(jobs[4], comma), (jobs[5], "line 2, origin_country `Finland` is refused")] {
        let error = plant.show(job).await.summary.error.unwrap();
        assert!(error.as_str().contains(said), "{error}");
    }
    assert_eq!(plant.place.count("select count(*) as n from passport_fact").await, 0, "all of a document or nothing");
}

/// Shows: S4.29 S4.32
async fn a_rule_that_compares_two_types_is_a_type_error(place: Place) {
    let plant = Plant::open(place).await;
    let order = plant.order().await;
    let rules = r#"{"rules":[{"id":"heavy","op":"<=","path":"mass_total_mg","value":"light"}]}"#;
    let refused = orders::draft(&plant.app, &plant.tenant, rules).await.unwrap_err();
    assert!(matches!(refused, Halt::Refused(refusal) if refusal.code == Code::RuleTypeError), "not even as a draft");
    // An older build may have let it through.
    let insert = "insert into passport_rule_package (tenant_id, rules_id, status, rules, published_at) \
                  values ('acme', $1, 'PUBLISHED', $2, $3)";
    let id = uuid::Uuid::from_u128(7);
    plant.place.database.execute(insert, row![id.to_string(), rules, plant.place.clock.now()]).await.unwrap();
    plant.upload(BILL, Some(Order { rules_id: id, ..order })).await;
    plant.run().await;
    let jobs = plant.client.store().list_jobs(&Default::default()).await.unwrap();
    let compile = jobs.iter().find(|job| job.kind.as_str() == "COMPILE_PASSPORT").unwrap();
    assert_eq!(plant.ended(compile.id).await, failed("RULE_TYPE_ERROR"));
    let error = compile.error.as_ref().unwrap().as_str();
    assert!(error.contains("rule `heavy`") && error.contains("expects int, found text"), "{error}");
}

/// Shows: S4.30 S4.32
async fn a_passport_that_is_too_large_is_refused(place: Place) {
    let plant = Plant::open(place).await;
    let order = plant.order().await;
    let lines: String = (0..9_000).map(|i| format!("part number {i},nickel,1\n")).collect();
    let uploaded = plant.upload(&format!("component,material,mass_g\n{lines}"), Some(order)).await;
    plant.run().await;
    assert_eq!(plant.show(uploaded.job_id).await.summary.state, JobState::Succeeded, "its facts are stored");
    assert_eq!(plant.place.count("select count(*) as n from passport_fact").await, 9_000);
    let jobs = plant.client.store().list_jobs(&Default::default()).await.unwrap();
    let compile = jobs.iter().find(|job| job.kind.as_str() == "COMPILE_PASSPORT").unwrap();
    assert_eq!(plant.ended(compile.id).await, failed("PAYLOAD_TOO_LARGE"));
}

/// Shows: S4.31 S4.32
async fn a_missing_key_is_a_permanent_error_until_somebody_adds_it(place: Place) {
    let plant = Plant::with(place, &[("BPC_SIGNING_KEY_ID", "prod-1")]).await;
    let version = plant.passport().await;
    assert_eq!(version.status, "COMPILED");
    let jobs = plant.client.store().list_jobs(&Default::default()).await.unwrap();
    let sign = jobs.iter().find(|job| job.kind.as_str() == "SIGN_PASSPORT").unwrap().id;
    assert_eq!(plant.ended(sign).await, failed("SIGNING_KEY_MISSING"));

    let both = format!("{KEYS},prod-1={}", "07".repeat(32));
    let plant = plant.again(&[("BPC_SIGNING_KEY_ID", "prod-1"), ("BPC_SIGNING_KEYS", &both)]);
    plant.client.requeue(sign).await.unwrap();
    plant.run().await;
    assert_eq!(plant.ended(sign).await, (JobState::Succeeded, 1, String::new()));
    let version = plant.version(version.id).await;
    assert_eq!((version.status.as_str(), version.key_id.as_deref()), ("LABELED", Some("prod-1")));
}

/// Shows: S4.32
async fn a_permanent_error_on_the_last_attempt_is_failed_and_not_dead(place: Place) {
    let plant = Plant::open(place).await;
    let job = SignPassportJob::from(SignPassport { passport_version_id: uuid::Uuid::nil(), key_id: "k".to_owned() });
    let job = plant.client.enqueue(job).max_attempts(1).await.unwrap().job();
    plant.run().await;
    assert_eq!(plant.ended(job).await, failed("VALIDATION_ERROR"));
}
