//! `GET /metrics`: what is printed is what happened, and what docs/METRICS.md tells of.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tenure_contract::postgres_server::psql;
use tenure_core::{JobId, Json, NewJob, RunId};
use tenure_store::run::{Members, NewPartition, NewRun};

use crate::on_each_store;
use crate::place::Place;

on_each_store! {
    figures_are_what_the_store_holds,
}

/// The value of a sample, written as it is printed.
#[track_caller]
fn value(text: &str, sample: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample).and_then(|rest| rest.strip_prefix(' ')));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{sample} is not in\n{text}"))
}

async fn figures_are_what_the_store_holds(place: Place) {
    place.enqueue(json!({ "kind": "a" })).await;
    place.enqueue(json!({ "kind": "a" })).await;
    let worker = place.worker().await;
    place.enqueue(json!({ "kind": "b", "queue": "mail", "delay_ms": 900_000 })).await;
    place.root.post("/v1/queues/mail/pause", json!({})).await.ok(200);
    place.root.post("/v1/gates/source:ebay/trip", json!({})).await.ok(200);
    let mut job = NewJob::new(place.new_id(), "page".parse().unwrap(), Json::parse("payload", "{}").unwrap());
    job.queue = "pages".parse().unwrap();
    let id = RunId::from_uuid(*JobId::from_parts(place.clock.now(), [5; 10]).as_uuid());
    let partition = NewPartition { name: "a-f".parse().unwrap(), job, offset: 0, limit: 30, expected: None };
    let members = Members { partitions: vec![partition], items: Vec::new() };
    place.store.create_run(NewRun { members, ..NewRun::new(id) }).await.expect("create a run");
    let hook = json!({ "url": "http://127.0.0.1:9/", "events": [], "tenant": "default" });
    let hook = place.root.post("/v1/webhooks", hook).await.ok(201);
    place
        .root
        .patch(&format!("/v1/webhooks/{}", hook["id"].as_str().unwrap()), json!({ "enabled": false }))
        .await
        .ok(200);
    place.clock.advance(Duration::from_secs(700));
    let claim = json!({ "queues": ["default"], "limit": 1, "wait_ms": 0 });
    worker.post("/v1/leases", claim).await.ok(200);
    assert_eq!(place.root.get("/nowhere").await.status, 404);

    let page = place.root.get("/metrics").await;
    assert!(page.head.contains("content-type: text/plain; version=0.0.4"), "{}", page.head);
    for (sample, expected) in [
        ("tenure_up", 1.0),
        ("tenure_queue_jobs{queue=\"default\",state=\"due\"}", 1.0),
        ("tenure_queue_jobs{queue=\"default\",state=\"running\"}", 1.0),
        ("tenure_queue_jobs{queue=\"mail\",state=\"scheduled\"}", 1.0),
        ("tenure_queue_oldest_due_seconds{queue=\"mail\"}", 0.0),
        ("tenure_queue_paused{queue=\"mail\"}", 1.0),
        ("tenure_queue_paused{queue=\"default\"}", 0.0),
        ("tenure_dead_jobs", 0.0),
        ("tenure_gate_open{gate=\"source:ebay\"}", 1.0),
        ("tenure_gate_permits_in_use{gate=\"source:ebay\"}", 0.0),
        ("tenure_workers{state=\"gone\"}", 1.0),
        ("tenure_runs_open", 1.0),
        ("tenure_partitions{state=\"queued\"}", 1.0),
        ("tenure_partitions_stuck", 1.0),
        ("tenure_pages_due", 1.0),
        ("tenure_webhook_endpoints", 1.0),
        ("tenure_webhook_endpoints_disabled", 1.0),
        ("tenure_http_requests_total{route=\"/v1/jobs\",method=\"POST\",status=\"2xx\"}", 3.0),
        ("tenure_http_requests_total{route=\"unmatched\",method=\"GET\",status=\"4xx\"}", 1.0),
        ("tenure_http_request_seconds_count{route=\"/v1/jobs\",method=\"POST\"}", 3.0),
        ("tenure_http_request_seconds_bucket{route=\"/v1/jobs\",method=\"POST\",le=\"+Inf\"}", 3.0),
    ] {
        assert_eq!(value(&page.text, sample), expected, "{sample}");
    }
    assert!(value(&page.text, "tenure_queue_oldest_due_seconds{queue=\"default\"}") >= 700.0);
    assert!(value(&page.text, "tenure_journal_unsealed_seconds") >= 700.0);

    // Five seconds long nobody asks the store again; requests are counted at once.
    place.enqueue(json!({ "kind": "a" })).await;
    let again = place.root.get("/metrics").await.text;
    assert_eq!(value(&again, "tenure_queue_jobs{queue=\"default\",state=\"due\"}"), 1.0);
    assert_eq!(value(&again, "tenure_http_requests_total{route=\"/v1/jobs\",method=\"POST\",status=\"2xx\"}"), 4.0);
}

/// A tenant's key reads only what is the tenant's; figures are everybody's.
#[tokio::test]
async fn figures_are_for_operators_who_may_read() {
    let place = Place::sqlite().await;
    assert_eq!(place.nobody().get("/metrics").await.code(401), "unauthorized");
    assert_eq!(place.key(Some("acme"), "read").await.get("/metrics").await.code(403), "forbidden");
    assert_eq!(place.key(None, "read").await.get("/metrics").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_fails_is_told_of_and_figures_of_the_process_go_on() {
    let place = Place::postgres().await;
    place.root.get("/v1/queues").await.ok(200);
    psql(place.url(), "drop schema tenure cascade").expect("drop");
    assert!(place.root.send("GET", "/v1/queues", None).await.status >= 500);
    let text = place.root.get("/metrics").await.text;
    assert_eq!(value(&text, "tenure_up"), 0.0);
    assert!(!text.contains("tenure_queue_jobs"), "{text}");
    let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("tenure_store_errors_total{")).collect();
    assert!(errors.len() == 1 && errors[0].ends_with(" 1"), "{errors:?}");
    assert_eq!(value(&text, "tenure_http_requests_total{route=\"/v1/queues\",method=\"GET\",status=\"5xx\"}"), 1.0);
}

/// The lines of a table of docs/METRICS.md: names and types.
fn documented() -> BTreeMap<String, String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/METRICS.md");
    let page = std::fs::read_to_string(path).expect("docs/METRICS.md");
    let server = page.split("\n## ").find(|part| part.starts_with("The server")).expect("a part about the server");
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows = server.lines().filter(|line| line.starts_with("| `")).map(cells);
    rows.map(|row| {
        assert!(row.len() == 7 && row[3..6].iter().all(|cell| !cell.is_empty()), "a row has a hole: {row:?}");
        (row[1].trim_matches('`').to_owned(), row[2].clone())
    })
    .collect()
}

#[tokio::test]
async fn every_metric_that_is_printed_is_documented_and_the_other_way_round() {
    let place = Place::sqlite().await;
    let text = place.root.get("/metrics").await.text;
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let printed: BTreeMap<String, String> = kinds.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect();
    assert_eq!(printed, documented());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
        assert!(printed.contains_key(family), "{line}");
    }
}
