//! Webhook endpoints and deliveries over HTTP. How deliveries are made and sent is tested in `tenure-webhooks`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenure_core::TenantName;
use tenure_store::record::Sight;
use tenure_store::webhook::DeliveryFilter;
use tenure_webhooks::{Endpoints, Teller};

use crate::http::{Caller, text};
use crate::on_each_store;
use crate::place::{Place, options};

on_each_store! {
    endpoints_are_made_changed_and_removed,
    a_secret_is_shown_once_and_another_takes_its_place,
    deliveries_are_seen_and_sent_again,
    a_callback_needs_somebody_who_signs_it,
}

const HOOK: &str = "http://127.0.0.1:9/hook";

/// An endpoint of acme's.
async fn endpoint(shop: &Caller, events: Value) -> String {
    let made = shop.post("/v1/webhooks", json!({ "url": HOOK, "events": events })).await.ok(201);
    text(&made["id"]).to_owned()
}

async fn endpoints_are_made_changed_and_removed(place: Place) {
    let shop = place.key(Some("acme"), "admin,operate,read").await;
    let body = json!({ "url": HOOK, "events": ["job.*"], "header_prefix": "X-Acme-", "reason": "to know" });
    let made = shop.post("/v1/webhooks", body).await.ok(201);
    assert_eq!((&made["tenant"], &made["events"]), (&json!("acme"), &json!(["job.*"])));
    assert!(text(&made["secret"]).starts_with("whsec_"), "{made}");
    let path = format!("/v1/webhooks/{}", text(&made["id"]));
    let seen = shop.get(&path).await.ok(200);
    assert_eq!(
        (&seen["url"], &seen["header_prefix"], &seen["secret"]),
        (&json!(HOOK), &json!("X-Acme-"), &Value::Null)
    );
    let changed =
        shop.patch(&path, json!({ "events": ["run.ended"], "enabled": false, "reason": "loud" })).await.ok(200);
    assert_eq!((&changed["events"], &changed["disabled_why"]), (&json!(["run.ended"]), &json!("loud")));
    assert_eq!(shop.post(&format!("{path}/ping"), json!({})).await.code(409), "conflict");
    assert_eq!(shop.patch(&path, json!({ "enabled": true })).await.ok(200)["disabled_at"], Value::Null);
    assert_eq!(shop.post(&format!("{path}/ping"), json!({})).await.status, 202);
    place.clock.advance(Duration::from_secs(1));
    let other = endpoint(&shop, json!([])).await;
    let page = shop.get("/v1/webhooks?limit=1").await.ok(200);
    let next = shop.get(&format!("/v1/webhooks?limit=1&cursor={}", text(&page["next"]))).await.ok(200);
    assert_eq!((&page["items"][0]["id"], &next["items"][0]["id"]), (&made["id"], &json!(other)));
    for (field, bad) in [
        ("url", json!({ "url": "http://169.254.169.254/" })),
        ("url", json!({ "url": "javascript:alert(1)" })),
        ("events", json!({ "url": HOOK, "events": ["job.exploded"] })),
        ("header prefix", json!({ "url": HOOK, "header_prefix": "Content-" })),
        ("secret", json!({ "url": HOOK, "secret": "hunter2" })),
    ] {
        let refused = shop.post("/v1/webhooks", bad.clone()).await;
        assert_eq!((refused.code(422), refused.body["field"].as_str()), ("invalid", Some(field)), "{bad}");
        assert!(!refused.text.contains("hunter2"));
    }
    assert_eq!(shop.patch(&path, json!({ "url": "http://10.0.0.1/" })).await.code(422), "invalid");
    assert_eq!(shop.delete(&path).await.status, 204);
    assert_eq!(shop.get(&path).await.code(404), "not_found");
}

async fn a_secret_is_shown_once_and_another_takes_its_place(place: Place) {
    let shop = place.key(Some("acme"), "admin").await;
    let made = shop.post("/v1/webhooks", json!({ "url": HOOK })).await.ok(201);
    let path = format!("/v1/webhooks/{}/rotate", text(&made["id"]));
    let rotated = shop.post(&path, json!({ "overlap_ms": 60_000 })).await.ok(200);
    assert_ne!(rotated["secret"], made["secret"]);
    assert!(rotated["rotating_until"].is_string());
    assert_eq!(shop.post(&path, json!({ "overlap_ms": 99_999_999_999_u64 })).await.code(422), "invalid");
    let everything = format!("{}{}", shop.get("/v1/webhooks").await.text, place.root.get("/v1/audit").await.text);
    for secret in [&made["secret"], &rotated["secret"]] {
        assert!(!everything.contains(text(secret).trim_start_matches("whsec_")), "{everything}");
    }
}

/// A job of acme's is done and told.
async fn told(place: &Place, shop: &Caller) -> Value {
    let job = text(&shop.post("/v1/jobs", json!({ "kind": "a" })).await.ok(201)["id"]).to_owned();
    let worker = place.worker().await;
    let claim = json!({ "queues": ["default"], "limit": 1, "wait_ms": 0 });
    let lease = worker.post("/v1/leases", claim).await.ok(200)["lease"]["lease"].clone();
    worker.post(&format!("/v1/leases/{lease}/jobs/{job}/complete"), json!({ "result": { "ok": true } })).await.ok(200);
    place.store.seal_journal().await.expect("seal");
    Teller::new(Arc::clone(&place.store)).tell_all().await.expect("tell");
    shop.get("/v1/deliveries?limit=1").await.ok(200)["items"][0].clone()
}

async fn deliveries_are_seen_and_sent_again(place: Place) {
    let shop = place.key(Some("acme"), "admin,operate,read,enqueue").await;
    let to = endpoint(&shop, json!(["job.succeeded"])).await;
    let line = told(&place, &shop).await;
    assert_eq!(
        (&line["event_type"], &line["state"], &line["tries"]),
        (&json!("job.succeeded"), &json!("pending"), &json!(0))
    );
    assert_eq!(line["endpoint"], to);
    let path = format!("/v1/deliveries/{}", text(&line["id"]));
    let whole = shop.get(&path).await.ok(200);
    let body: Value = serde_json::from_str(text(&whole["body"])).expect("JSON");
    assert_eq!((&body["event_id"], &body["payload"]["result"]["ok"]), (&line["event_id"], &json!(true)));
    assert_eq!(whole["log"], json!([]));
    let again = shop.post(&format!("{path}/resend"), json!({ "reason": "lost it" })).await.ok(201);
    assert_eq!((&again["resend_of"], &again["event_id"]), (&line["id"], &line["event_id"]));
    assert_eq!(shop.get("/v1/deliveries?state=pending").await.ok(200)["items"].as_array().expect("a list").len(), 2);
    assert_eq!(shop.get(&format!("/v1/deliveries?endpoint={to}&state=failed")).await.ok(200)["items"], json!([]));
    place.clock.advance(Duration::from_secs(1));
    let range = shop.post(&format!("/v1/webhooks/{to}/resend"), json!({ "state": "pending" })).await.ok(200);
    assert_eq!((&range["resent"], &range["more_before"]), (&json!(1), &Value::Null), "a repetition is not repeated");
    let none =
        shop.post(&format!("/v1/webhooks/{to}/resend"), json!({ "since": "2090-01-01T00:00:00Z" })).await.ok(200);
    assert_eq!(none["resent"], 0);
    for query in ["state=gone", "since=yesterday", "endpoint=7", "cursor=7", "order=desc"] {
        assert_eq!(shop.get(&format!("/v1/deliveries?{query}")).await.code(422), "invalid", "{query}");
    }
    let stranger = place.key(Some("bolt"), "admin,operate,read").await;
    assert_eq!(stranger.get(&path).await.code(404), "not_found");
    assert_eq!(stranger.post(&format!("{path}/resend"), json!({})).await.code(404), "not_found");
}

async fn a_callback_needs_somebody_who_signs_it(place: Place) {
    let shop = place.key(Some("acme"), "admin,read,enqueue").await;
    let asking = json!({ "kind": "a", "callback_url": "http://127.0.0.1:9/done" });
    let refused = shop.post("/v1/jobs", asking.clone()).await;
    assert_eq!((refused.code(422), refused.body["field"].as_str()), ("invalid", Some("callback_url")));
    let made = shop.post("/v1/webhooks", json!({})).await.ok(201);
    assert_eq!(made["url"], Value::Null);
    assert_eq!(shop.post("/v1/webhooks", json!({})).await.code(409), "conflict");
    let line = told(&place, &shop).await;
    assert_eq!(line, Value::Null, "a job without a callback tells nobody");
    let job = shop.post("/v1/jobs", asking).await.ok(201);
    let shown = shop.get(&format!("/v1/jobs/{}", text(&job["id"]))).await.ok(200);
    assert_eq!(shown["callback_url"], "http://127.0.0.1:9/done");
    let inside = json!({ "kind": "a", "callback_url": "http://169.254.169.254/" });
    assert_eq!(shop.post("/v1/jobs", inside).await.code(422), "invalid");
    // The server's own queue is not for tenants: what is in it is trusted.
    place.root.put("/v1/queues/tenure", json!({})).await.ok(200);
    let own = json!({ "kind": "tenure.webhook", "queue": "tenure" });
    assert_eq!(shop.post("/v1/jobs", own).await.code(422), "invalid");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_key_to_seal_with_there_are_no_endpoints() {
    let place = Place::sqlite_with(tenure_server::Options { webhooks: Endpoints::default(), ..options() }).await;
    let off = place.root.post("/v1/webhooks", json!({ "url": "https://example.com/" })).await;
    assert_eq!(off.code(409), "webhooks_off");
    assert_eq!(place.root.get("/v1/webhooks").await.ok(200)["items"], json!([]));
}

/// What the store keeps of a secret is sealed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_holds_no_secret() {
    let place = Place::sqlite().await;
    place.key(Some("acme"), "read").await;
    let made = place.root.post("/v1/webhooks", json!({ "url": HOOK, "tenant": "acme" })).await.ok(201);
    let id = text(&made["id"]).parse().expect("an id");
    let sight = Sight::Tenant("acme".parse::<TenantName>().expect("a name"));
    let kept = place.store.show_endpoint(&sight, id).await.expect("it is there").secret;
    assert!(!String::from_utf8_lossy(&kept).contains(text(&made["secret"])) && kept.len() > 60);
    assert!(place.store.list_deliveries(&DeliveryFilter::new(sight, 1)).await.expect("list").is_empty());
}
