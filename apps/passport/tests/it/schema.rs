//! What the database itself refuses, whoever writes.

use kit::testing::Place;
use tenure::{StoreError, row};

use crate::plant::{BILL, Plant};

kit::on_each_store! { passport::TABLES;
    a_second_row_of_the_same_key_is_refused,
    orphans_and_unknown_states_are_refused,
    events_are_added_and_never_changed,
    what_is_sealed_or_published_stays_as_it_is,
    states_go_forward,
}

/// Shows: S4.53 S4.54
async fn a_second_row_of_the_same_key_is_refused(place: Place) {
    let plant = Plant::open(place).await;
    plant.passport().await;
    let copies = [
        "insert into passport_fact select * from passport_fact",
        "insert into passport_version (tenant_id, passport_version_id, passport_id, snapshot_id, rules_id, build_id, \
           issued_at, status, payload, payload_hash, proof_root, receipt, receipt_hash, compiled_at) \
         select tenant_id, 'another id', passport_id, snapshot_id, rules_id, build_id, \
           issued_at, 'COMPILED', payload, payload_hash, proof_root, receipt, receipt_hash, compiled_at \
         from passport_version",
        "insert into passport_event select * from passport_event",
    ];
    for copy in copies {
        let refused = plant.place.database.execute(copy, row![]).await.unwrap_err();
        assert!(matches!(refused, StoreError::Conflict(_)), "{copy}: {refused}");
    }
}

/// Shows: S4.58
async fn orphans_and_unknown_states_are_refused(place: Place) {
    let plant = Plant::open(place).await;
    plant.tell().await;
    plant.passport().await;
    let refused = async |sql: &'static str| plant.place.database.execute(sql, row![]).await.unwrap_err();
    for orphan in [
        "insert into passport_snapshot (tenant_id, snapshot_id, document_version_id, status) \
         values ('acme', 'x', 'no document', 'OPEN')",
        "update passport_version set snapshot_id = 'no snapshot'",
        // Another tenant's document is no document.
        "insert into passport_snapshot (tenant_id, snapshot_id, document_version_id, status) \
         select 'volt', 'x', document_version_id, 'OPEN' from passport_document_version",
        "delete from passport_battery",
        "delete from passport_webhook_endpoint",
    ] {
        assert!(matches!(refused(orphan).await, StoreError::Conflict(_)), "{orphan}");
    }
    for unknown in [
        "insert into passport_snapshot (tenant_id, snapshot_id, document_version_id, status) \
         select 'acme', 'x', document_version_id, 'CLOSED' from passport_document_version",
        "insert into passport_rule_package (tenant_id, rules_id, status, rules) values ('acme', 'x', 'RETIRED', '{}')",
        "update passport_version set status = 'PRINTED'",
        // Signed without a signature, labeled without a label, delivered without a time.
        "update passport_version set signature = null, key_id = null",
        "update passport_version set qr_text = null, qr_png = null",
        "update passport_webhook_delivery set status = 'LOST'",
        "update passport_webhook_delivery set delivered_at = null",
    ] {
        assert!(matches!(refused(unknown).await, StoreError::Invalid(_)), "{unknown}");
    }
}

async fn events_are_added_and_never_changed(place: Place) {
    let plant = Plant::open(place).await;
    plant.upload(BILL, None).await;
    plant.run().await;
    let mut writes = vec!["update passport_event set event_type = 'NOTHING_HAPPENED'", "delete from passport_event"];
    if plant.place.database.is_postgres() {
        writes.push("truncate passport_event cascade");
    } else {
        writes.push(
            "insert or replace into passport_event \
             select tenant_id, event_id, 'NOTHING_HAPPENED', aggregate_type, aggregate_id, occurred_at, payload, job_id, fence \
             from passport_event",
        );
        writes.push(
            "insert or replace into passport_event \
             select tenant_id, 'another', event_type, aggregate_type, aggregate_id, occurred_at, payload, job_id, fence \
             from passport_event",
        );
    }
    for write in writes {
        let refused = plant.place.database.execute(write, row![]).await.unwrap_err();
        assert!(refused.to_string().contains("events are added and never"), "{write}: {refused}");
    }
    assert_eq!(plant.events().await, ["FACTS_PARSED"]);
}

async fn what_is_sealed_or_published_stays_as_it_is(place: Place) {
    let plant = Plant::open(place).await;
    plant.passport().await;
    let mut writes = vec![
        "update passport_snapshot set status = 'OPEN', sealed_at = null",
        "update passport_rule_package set status = 'DRAFT', published_at = null",
        "update passport_rule_package set rules = '{\"rules\":[]}'",
        "update passport_document_fact set line = line + 1",
        "delete from passport_document_fact",
        "insert into passport_document_fact \
         select tenant_id, document_version_id, fact_type, 'another', schema_version, payload_hash, line \
         from passport_document_fact",
    ];
    if plant.place.database.is_postgres() {
        writes.push("truncate passport_snapshot cascade");
        writes.push("truncate passport_rule_package cascade");
        writes.push("truncate passport_document_fact");
    } else {
        writes.push("insert or replace into passport_snapshot select tenant_id, snapshot_id, document_version_id, 'OPEN', null from passport_snapshot");
        writes.push("insert or replace into passport_rule_package select tenant_id, rules_id, 'DRAFT', '{}', null from passport_rule_package");
    }
    for write in writes {
        let refused = plant.place.database.execute(write, row![]).await.unwrap_err();
        assert!(refused.to_string().contains("stays as it is"), "{write}: {refused}");
    }
    // What nobody vouches for is still the worker's.
    plant.upload(&BILL.replace("4800", "4900"), None).await;
    plant.run().await;
    assert_eq!(plant.place.count("select count(*) as n from passport_document_fact").await, 6);
}

/// Shows: S4.58
async fn states_go_forward(place: Place) {
    let plant = Plant::open(place).await;
    plant.tell().await;
    plant.passport().await;
    let mut steps = vec![
        "update passport_version set status = 'SIGNED', qr_text = null, qr_png = null",
        "update passport_version set status = 'COMPILED', key_id = null, signature = null, qr_text = null, qr_png = null",
        "update passport_webhook_delivery set status = 'PENDING', delivered_at = null",
        "update passport_webhook_delivery set status = 'FAILED', delivered_at = null",
    ];
    if !plant.place.database.is_postgres() {
        steps.push(
            "insert or replace into passport_webhook_delivery (tenant_id, webhook_delivery_id, webhook_endpoint_id, \
               event_id, job_id, status, attempts, fence, created_at) \
             select tenant_id, webhook_delivery_id, webhook_endpoint_id, event_id, job_id, 'PENDING', 0, 0, created_at \
             from passport_webhook_delivery",
        );
    }
    for step in steps {
        let refused = plant.place.database.execute(step, row![]).await.unwrap_err();
        assert!(matches!(refused, StoreError::Invalid(_)), "{step}: {refused}");
        assert!(refused.to_string().contains("goes from"), "{step}: {refused}");
    }
    // Nor is a step left out.
    let (plant, _, _) = Plant::unsigned(Place::sqlite(passport::TABLES).await).await;
    let skip =
        "update passport_version set status = 'LABELED', key_id = 'k', signature = $1, qr_text = '', qr_png = $2";
    let refused = plant.place.database.execute(skip, row!["0".repeat(128), vec![1_u8]]).await.unwrap_err();
    assert!(refused.to_string().contains("goes from COMPILED to SIGNED"), "{refused}");
}
