//! From a bill of materials to a label, and what happens when anything of it is done twice.

use kit::testing::Place;
use passport::code::Code;
use passport::digest::Digest;
use passport::evidence;
use passport::halt::Halt;
use passport::jobs::{CompilePassport, CompilePassportJob, GenerateQr, GenerateQrJob, SignPassport, SignPassportJob};
use passport::orders::{self, Order};
use passport::qr::{self, Label};
use passport::records::version::StoredVersion;
use serde_json::json;
use tenure::{JobFilter, JobId, JobState, row};

use crate::plant::{BILL, KEYS, Plant, kept};

kit::on_each_store! { passport::TABLES;
    a_bill_of_materials_becomes_a_signed_labeled_and_told_passport,
    it_goes_step_by_step_as_well,
    the_same_order_is_one_version_and_another_moment_another,
    what_is_done_twice_changes_nothing,
    a_fact_that_two_documents_state_is_kept_once,
    a_passport_that_somebody_changed_is_found_out,
    what_somebody_changed_before_it_was_signed_is_not_signed,
    a_version_that_was_not_signed_goes_on_when_it_is_ordered_again,
    a_document_is_read_once,
}

impl Plant {
    /// What is wrong with the passport of this label.
    async fn wrong(&self, label: &Label) -> Vec<&'static str> {
        let findings = kept(evidence::check(&self.place.database, self.app.keys(), None, label).await).unwrap();
        findings.into_iter().filter(|finding| finding.wrong.is_some()).map(|finding| finding.what).collect()
    }

    /// A version that is COMPILED, because the key that should sign it is not there; and the job that should have.
    pub(crate) async fn unsigned(place: Place) -> (Self, StoredVersion, JobId) {
        let plant = Self::with(place, &[("BPC_SIGNING_KEY_ID", "prod-1")]).await;
        let version = plant.passport().await;
        assert_eq!(version.status, "COMPILED");
        let kind = Some("SIGN_PASSPORT".parse().unwrap());
        let jobs = plant.client.store().list_jobs(&JobFilter { kind, ..JobFilter::default() }).await.unwrap();
        (plant, version, jobs[0].id)
    }
}

/// Shows: S4.35 S4.37 S4.43 S4.45 S4.46 S4.47
async fn a_bill_of_materials_becomes_a_signed_labeled_and_told_passport(place: Place) {
    let plant = Plant::open(place).await;
    plant.tell().await;
    let version = plant.passport().await;

    assert_eq!(version.status, "LABELED");
    let payload: serde_json::Value = serde_json::from_str(&version.payload).unwrap();
    assert_eq!(payload["mass_total_mg"], 95_200_500);
    let verdicts: Vec<&str> =
        payload["outcomes"].as_array().unwrap().iter().map(|outcome| outcome["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["passed", "failed", "passed"], "a rule that does not hold is told, and is no error");
    let text = version.qr_text.clone().unwrap();
    let picture = kept(StoredVersion::picture(&plant.place.database, &plant.tenant, version.id).await);
    assert_eq!(picture, Some(qr::png(&text).unwrap()));
    let label = Label::parse(&text).unwrap();
    assert_eq!(label.passport_version_id, version.id);
    assert_eq!(plant.wrong(&label).await, [""; 0]);

    let happened =
        ["FACTS_PARSED", "PASSPORT_COMPILED", "PASSPORT_SIGNED", "QR_GENERATED", "RULES_PUBLISHED", "SNAPSHOT_SEALED"];
    assert_eq!(plant.events().await, happened);
    let received = plant.receiver.received();
    let mut told: Vec<&str> = received.iter().map(|call| call.header("x-bpc-event-type")).collect();
    told.sort_unstable();
    assert_eq!(told, happened, "each event was told once");
    for call in &received {
        assert!(call.is_genuine, "X-BPC-Signature is sha256= and the HMAC of the raw body");
        assert_eq!((call.method.as_str(), call.header("content-type")), ("POST", "application/json"));
        assert_eq!(call.header("x-bpc-delivery-id").len(), 36);
    }
    let signed = received.iter().find(|call| call.header("x-bpc-event-type") == "PASSPORT_SIGNED").unwrap().json();
    let members: Vec<&String> = signed.as_object().unwrap().keys().collect();
    assert_eq!(members.len(), 6, "{members:?}");
    assert_eq!(signed["event_type"], "PASSPORT_SIGNED");
    assert_eq!(signed["aggregate_type"], "PassportVersion");
    assert_eq!(signed["aggregate_id"], version.id.to_string());
    assert_eq!(signed["payload"], json!({"passport_version_id": version.id, "key_id": "dev-key-1"}));
    assert_eq!(signed["occurred_at"], plant.place.clock.now().to_string());
    assert_eq!(signed["event_id"].as_str().unwrap().len(), 36);
}

async fn it_goes_step_by_step_as_well(place: Place) {
    let plant = Plant::open(place).await;
    let order = plant.order().await;
    let uploaded = plant.upload(BILL, None).await;
    plant.run().await;
    assert_eq!(plant.events().await, ["FACTS_PARSED", "RULES_PUBLISHED"], "nobody has vouched for it yet");
    kept(orders::seal(&plant.app, &plant.tenant, uploaded.snapshot_id).await);
    kept(orders::seal(&plant.app, &plant.tenant, uploaded.snapshot_id).await);
    let (version, job) = kept(orders::compile(&plant.app, &plant.tenant, uploaded.snapshot_id, order).await);
    plant.run().await;
    assert_eq!(plant.show(job).await.summary.state, JobState::Succeeded);
    assert_eq!(plant.version(version).await.status, "LABELED");
}

/// Shows: S4.54
async fn the_same_order_is_one_version_and_another_moment_another(place: Place) {
    let plant = Plant::open(place).await;
    let first = plant.passport().await;
    let now = plant.place.clock.now();
    let order = Order { issued_at: Some(now), ..plant.order().await };
    let (again, job) = kept(orders::compile(&plant.app, &plant.tenant, first.key.snapshot_id, order.clone()).await);
    plant.run().await;
    assert_eq!((again, plant.show(job).await.summary.state), (first.id, JobState::Succeeded));
    assert_eq!(plant.version(again).await, first, "it was there already and stays");
    assert_eq!(plant.place.count("select count(*) as n from passport_version").await, 1);

    let later = Order { issued_at: Some(now.plus(std::time::Duration::from_secs(1))), ..order };
    let (other, _) = kept(orders::compile(&plant.app, &plant.tenant, first.key.snapshot_id, later).await);
    plant.run().await;
    assert_ne!(other, first.id);
    assert_eq!(plant.place.count("select count(*) as n from passport_version").await, 2);
}

/// Shows: S4.55 S4.56
async fn what_is_done_twice_changes_nothing(place: Place) {
    let plant = Plant::open(place).await;
    let first = plant.passport().await;
    let events = plant.events().await;
    let key = first.key.clone();
    let compile = CompilePassport {
        passport_id: key.passport_id,
        snapshot_id: first.key.snapshot_id,
        rules_id: first.key.rules_id,
        build_id: key.build_id.as_str().to_owned(),
        issued_at: key.issued_at.to_string(),
        key_id: "dev-key-1".to_owned(),
    };
    let sign = SignPassport { passport_version_id: first.id, key_id: "dev-key-1".to_owned() };
    let label = GenerateQr { passport_version_id: first.id };
    let jobs = [
        plant.client.enqueue(CompilePassportJob::from(compile)).await.unwrap().job(),
        plant.client.enqueue(SignPassportJob::from(sign)).await.unwrap().job(),
        plant.client.enqueue(GenerateQrJob::from(label)).await.unwrap().job(),
        plant.upload(BILL, None).await.job_id,
    ];
    plant.run().await;
    for job in jobs {
        assert_eq!(plant.ended(job).await, (JobState::Succeeded, 1, String::new()));
    }
    assert_eq!(plant.version(first.id).await, first);
    assert_eq!(plant.events().await, events);
    let all = plant.client.store().list_jobs(&JobFilter { limit: 100, ..JobFilter::default() }).await.unwrap();
    assert_eq!(all.len(), 4 + jobs.len(), "nothing follows from what was there already");
    assert_eq!(plant.place.count("select count(*) as n from passport_fact").await, 3);
}

/// Shows: S4.53
async fn a_fact_that_two_documents_state_is_kept_once(place: Place) {
    let plant = Plant::open(place).await;
    let other = BILL.replace("4800,12.5", "4900,12.5");
    let [first, second] = [plant.upload(BILL, None).await, plant.upload(&other, None).await];
    plant.run().await;
    assert_ne!(first.document_version_id, second.document_version_id);
    assert_eq!(plant.place.count("select count(*) as n from passport_fact").await, 4, "two are the same, one changed");
    assert_eq!(plant.place.count("select count(*) as n from passport_document_fact").await, 6);
    let same = plant.upload(BILL, None).await;
    assert_eq!(same.document_version_id, first.document_version_id, "the same text is the same version");
}

async fn a_passport_that_somebody_changed_is_found_out(place: Place) {
    let plant = Plant::open(place).await;
    let version = plant.passport().await;
    let label = Label::parse(version.qr_text.as_deref().unwrap()).unwrap();
    let change = async |sql: &'static str| plant.place.database.execute(sql, row![]).await.unwrap();
    assert_eq!(plant.wrong(&label).await, [""; 0]);
    change("update passport_fact set payload = replace(payload, '4800000', '4800001')").await;
    assert_eq!(plant.wrong(&label).await, ["proof root", "payload"]);
    change("update passport_fact set payload = replace(payload, '4800001', '4800000')").await;
    change("update passport_version set payload = replace(payload, '4800000', '4800001')").await;
    assert_eq!(plant.wrong(&label).await, ["payload hash", "payload"]);
    change("update passport_version set payload = replace(payload, '4800001', '4800000')").await;
    change("update passport_version set signature = replace(signature, '0', '1')").await;
    assert_eq!(plant.wrong(&label).await, ["signature"]);
    let unknown = Label { passport_version_id: uuid::Uuid::nil(), ..label };
    assert!(kept(evidence::check(&plant.place.database, plant.app.keys(), None, &unknown).await).is_none());
}

async fn what_somebody_changed_before_it_was_signed_is_not_signed(place: Place) {
    let (plant, version, job) = Plant::unsigned(place).await;
    // Cobalt with too little that was recycled is made to pass, and every hash is made to fit.
    let failed = r#""path":"material.cobalt.recycled_bp","verdict":"failed""#;
    let payload = version.payload.replace(failed, &failed.replace("failed", "passed"));
    assert_ne!(payload, version.payload);
    let mut receipt = version.checked_receipt().unwrap().0;
    receipt.payload_hash = Digest::of(payload.as_bytes());
    let text = receipt.canonical().unwrap();
    let update = "update passport_version set payload = $1, payload_hash = $2, receipt = $3, receipt_hash = $4";
    let row = row![payload, receipt.payload_hash.to_hex(), text.as_str(), text.hash().to_hex()];
    plant.place.database.execute(update, row).await.unwrap();

    let both = format!("{KEYS},prod-1={}", "07".repeat(32));
    let plant = plant.again(&[("BPC_SIGNING_KEYS", &both)]);
    plant.client.requeue(job).await.unwrap();
    plant.run().await;
    assert_eq!(plant.ended(job).await, (JobState::Failed, 1, "VALIDATION_ERROR".to_owned()));
    let error = plant.show(job).await.summary.error.unwrap();
    assert!(error.as_str().contains("was changed: its payload is not what its facts and rules make of it"), "{error}");
    assert_eq!(plant.version(version.id).await.status, "COMPILED");
    // Who signed it all the same would be found out.
    let (payload_hash, proof_root) = (receipt.payload_hash, receipt.proof_root);
    let label = Label { passport_version_id: version.id, payload_hash, proof_root, receipt_hash: text.hash() };
    assert_eq!(plant.wrong(&label).await, ["payload", "signature"]);
}

async fn a_version_that_was_not_signed_goes_on_when_it_is_ordered_again(place: Place) {
    let (plant, version, _) = Plant::unsigned(place).await;
    let key = &version.key;
    let order = |key_id: &str| Order {
        passport_id: key.passport_id,
        rules_id: key.rules_id,
        issued_at: Some(key.issued_at),
        key_id: Some(key_id.to_owned()),
    };
    let unnamed = orders::compile(&plant.app, &plant.tenant, key.snapshot_id, order("no key")).await.unwrap_err();
    assert!(matches!(unnamed, Halt::Refused(refusal) if refusal.code == Code::ValidationError), "refused at once");
    let again = orders::compile(&plant.app, &plant.tenant, key.snapshot_id, order("dev-key-1")).await;
    assert_eq!(kept(again).0, version.id);
    plant.run().await;
    let version = plant.version(version.id).await;
    assert_eq!((version.status.as_str(), version.key_id.as_deref()), ("LABELED", Some("dev-key-1")));
    let events = plant.events().await;
    assert_eq!(events[1..4], ["PASSPORT_COMPILED", "PASSPORT_SIGNED", "QR_GENERATED"], "each happened once");
}

async fn a_document_is_read_once(place: Place) {
    let plant = Plant::open(place).await;
    let version = plant.passport().await;
    // As if another build read more in it.
    let more = format!("{BILL}housing,steel,1,,,\n");
    let update = "update passport_document_version set content = $1";
    plant.place.database.execute(update, row![more.into_bytes()]).await.unwrap();
    let job = plant.upload(BILL, None).await.job_id;
    plant.run().await;
    assert_eq!(plant.ended(job).await, (JobState::Succeeded, 1, String::new()));
    assert_eq!(plant.place.count("select count(*) as n from passport_document_fact").await, 3);
    assert_eq!(plant.wrong(&Label::parse(version.qr_text.as_deref().unwrap()).unwrap()).await, [""; 0]);
}
