//! Operations and dead letters over HTTP, done by a real worker.

use std::sync::Arc;

use serde_json::{Value, json};
use tenure_server::operation::operate;
use tenure_worker::Worker;

use crate::http::{Caller, text};
use crate::on_each_store;
use crate::place::Place;

on_each_store! {
    dead_letters_are_grouped_and_a_group_is_revived,
    an_operation_goes_on_where_it_was_and_touches_nothing_newer,
    a_tenant_operates_on_its_own,
}

/// Stores jobs and lets them die of these messages.
async fn die(place: &Place, of: &Caller, messages: &[&str]) -> Vec<String> {
    let worker = place.worker().await;
    let mut ids = Vec::new();
    for message in messages {
        ids.push(text(&of.post("/v1/jobs", json!({ "kind": "a", "max_attempts": 1 })).await.ok(201)["id"]).to_owned());
        let claimed =
            worker.post("/v1/leases", json!({ "queues": ["default"], "limit": 1, "wait_ms": 0 })).await.ok(200);
        let (lease, job) = (&claimed["lease"]["lease"], text(&claimed["lease"]["jobs"][0]["id"]).to_owned());
        let error = json!({ "class": "dead", "message": message });
        worker.post(&format!("/v1/leases/{lease}/jobs/{job}/fail"), error).await.ok(200);
    }
    ids
}

/// Does what waits in the server's own queue.
async fn work(place: &Place) {
    let store = Arc::clone(&place.store);
    let worker = Worker::builder(&store).name("server").handle(operate).build().expect("a worker");
    worker.run_until_idle().await.expect("run");
}

async fn count(of: &Caller, state: &str) -> usize {
    let jobs = of.get(&format!("/v1/jobs?kind=a&state={state}&limit=200")).await.ok(200);
    jobs["items"].as_array().expect("a list").len()
}

async fn dead_letters_are_grouped_and_a_group_is_revived(place: Place) {
    let root = &place.root;
    die(&place, root, &["user 1 not found", "user 2 not found", "disk full"]).await;
    let dead = root.get("/v1/dead").await.ok(200);
    let groups: Vec<(u64, &str)> = dead["groups"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|group| (group["count"].as_u64().unwrap_or_default(), text(&group["error"])))
        .collect();
    assert_eq!(groups, [(2, "user <n> not found"), (1, "disk full")]);
    assert_eq!((&dead["looked_at"], &dead["complete"]), (&json!(3), &json!(true)));
    let body = json!({ "act": "requeue", "state": "dead", "group": dead["groups"][0]["group"], "reason": "fixed" });
    let reply = root.post("/v1/operations", body).await;
    assert!(reply.head.contains("location: /v1/operations/"), "{}", reply.head);
    let begun = reply.ok(202);
    assert_eq!(
        (&begun["name"], &begun["total"], &begun["finished_at"]),
        (&json!("requeue dead"), &Value::Null, &Value::Null)
    );
    work(&place).await;
    let path = format!("/v1/operations/{}", text(&begun["id"]));
    let ended = root.get(&path).await.ok(200);
    assert_eq!((&ended["total"], &ended["done"], &ended["refused"]), (&json!(2), &json!(2), &json!(0)));
    assert!(ended["finished_at"].is_string());
    assert_eq!((count(root, "queued").await, count(root, "dead").await), (2, 1));
    assert_eq!(root.get("/v1/operations").await.ok(200)["items"][0], ended);
    for bad in [
        json!({ "act": "burn", "state": "dead" }),
        json!({ "act": "requeue", "state": "queued" }),
        json!({ "act": "cancel", "state": "dead" }),
        json!({ "act": "requeue", "state": "dead", "group": "x" }),
        json!({ "act": "requeue", "state": "failed", "group": "4f1c2a9e" }),
    ] {
        assert_eq!(root.post("/v1/operations", bad.clone()).await.code(422), "invalid", "{bad}");
    }
}

async fn an_operation_goes_on_where_it_was_and_touches_nothing_newer(place: Place) {
    let root = &place.root;
    // More than one page of them.
    let jobs: Vec<Value> = (0..450).map(|_| json!({ "kind": "a" })).collect();
    root.post("/v1/jobs/batch", json!({ "jobs": jobs })).await.ok(200);
    let begun = root.post("/v1/operations", json!({ "act": "cancel", "state": "queued", "kind": "a" })).await.ok(202);
    let later = place.enqueue(json!({ "kind": "a" })).await;
    work(&place).await;
    let ended = root.get(&format!("/v1/operations/{}", text(&begun["id"]))).await.ok(200);
    assert_eq!((&ended["total"], &ended["done"]), (&json!(450), &json!(450)));
    assert_eq!(root.get(&format!("/v1/jobs/{later}")).await.ok(200)["state"], "queued");

    // Everybody's jobs are meant, and not what the server does for itself.
    let own = tenure_store::webhook::delivery_job(
        place.new_id(),
        tenure_core::EndpointId::from_uuid(uuid::Uuid::nil()),
        Default::default(),
        None,
    );
    let own = own.expect("a job");
    place.store.enqueue_jobs(vec![own.clone()]).await.expect("enqueue");
    let begun = root.post("/v1/operations", json!({ "act": "cancel", "state": "queued" })).await.ok(202);
    work(&place).await;
    let ended = root.get(&format!("/v1/operations/{}", text(&begun["id"]))).await.ok(200);
    assert_eq!((&ended["done"], ended["finished_at"].is_string()), (&json!(1), true));
    assert_eq!(root.get(&format!("/v1/jobs/{}", own.id)).await.ok(200)["state"], "queued");

    // One that is stopped before it began does nothing, and says so by being unfinished.
    let begun = root.post("/v1/operations", json!({ "act": "requeue", "state": "canceled" })).await.ok(202);
    let path = format!("/v1/operations/{}", text(&begun["id"]));
    root.post(&format!("{path}/cancel"), json!({ "reason": "a mistake" })).await.ok(200);
    work(&place).await;
    let stopped = root.get(&path).await.ok(200);
    assert_eq!((&stopped["done"], &stopped["finished_at"]), (&json!(0), &Value::Null));
}

async fn a_tenant_operates_on_its_own(place: Place) {
    let acme = place.key(Some("acme"), "enqueue,read,operate").await;
    let rival = place.key(Some("rival"), "enqueue,read,operate").await;
    die(&place, &rival, &["no"]).await;
    die(&place, &acme, &["no"]).await;
    let begun = acme.post("/v1/operations", json!({ "act": "requeue", "state": "dead" })).await.ok(202);
    assert_eq!(begun["tenant"], "acme");
    let path = format!("/v1/operations/{}", text(&begun["id"]));
    assert_eq!(rival.get(&path).await.code(404), "not_found");
    assert_eq!(rival.post(&format!("{path}/cancel"), json!({})).await.code(404), "not_found");
    assert_eq!(rival.get("/v1/operations").await.ok(200)["items"], json!([]));
    work(&place).await;
    assert_eq!((count(&acme, "dead").await, count(&rival, "dead").await), (0, 1));
    assert_eq!(rival.get("/v1/dead").await.ok(200)["looked_at"], 1);
}
