//! Keys: who is let in, for what, and for how long.

use std::time::Duration;

use serde_json::json;

use crate::http::text;
use crate::on_each_store;
use crate::place::{ALL, Place};

on_each_store! {
    without_a_good_key_nobody_is_told_anything,
    a_key_is_made_used_rotated_and_revoked,
    a_key_makes_no_key_that_allows_more,
    a_tenant_enqueues_for_itself_alone,
    a_key_makes_none_that_outlives_it,
    a_queue_is_known_to_everybody_at_once,
    a_key_that_ended_elsewhere_ends_here_too,
}

async fn without_a_good_key_nobody_is_told_anything(place: Place) {
    let good = place.new_key(None, "read").await;
    let text_of = good.reveal().to_owned();
    let wrong_secret = {
        let mut random = [9; tenure_core::key::KEY_RANDOM_BYTES];
        random[..4].copy_from_slice(&1_u32.to_be_bytes());
        random[27] = 77;
        tenure_core::Credential::new_key(random).1.reveal().to_owned()
    };
    let mistyped = format!("{}a", &text_of[..text_of.len() - 1]);
    let mut bodies = Vec::new();
    for key in ["", "x", "tnk_", &mistyped, &wrong_secret, &"a".repeat(5_000)] {
        let reply = place.nobody().with("authorization", &format!("Bearer {key}")).get("/v1/jobs").await;
        assert_eq!(reply.code(401), "unauthorized", "{key}");
        assert!(reply.head.contains("www-authenticate: bearer"), "{}", reply.head);
        bodies.push(reply.text);
    }
    bodies.push(place.nobody().get("/v1/jobs").await.text);
    bodies.push(place.nobody().with("authorization", "Basic dTpw").get("/v1/jobs").await.text);
    assert!(bodies.iter().all(|body| *body == bodies[0]), "which of them it is is not told: {bodies:?}");
    place.nobody().with("authorization", &format!("Bearer {text_of}")).get("/v1/jobs").await.ok(200);
    for open in ["/v1/health/live", "/v1/health/ready", "/v1/openapi.json", "/v1/problems", "/v1/problems/lease_lost"] {
        place.nobody().get(open).await.ok(200);
    }
}

async fn a_key_is_made_used_rotated_and_revoked(place: Place) {
    place.root.put("/v1/tenants/acme", json!({})).await.ok(201);
    let body = json!({ "name": "shop", "tenant": "acme", "scopes": ["read", "enqueue"], "life_ms": 3_600_000 });
    let made = place.root.post("/v1/keys", body).await.ok(201);
    let shop = |key: &serde_json::Value| place.nobody().with("authorization", &format!("Bearer {}", text(key)));
    shop(&made["key"]).get("/v1/jobs").await.ok(200);
    let listed = place.root.get("/v1/keys?tenant=acme").await;
    assert!(!listed.text.contains(&text(&made["key"])[17..]), "secrets are nowhere: {}", listed.text);
    assert_eq!(listed.ok(200)["items"][0]["id"], made["id"]);
    // It ends by itself.
    place.clock.advance(Duration::from_secs(3_600));
    assert_eq!(shop(&made["key"]).get("/v1/jobs").await.code(401), "unauthorized");
    // A new one takes its place; another takes that one's.
    let rotate = format!("/v1/keys/{}/rotate", text(&made["id"]));
    assert_eq!(place.root.post(&rotate, json!({})).await.code(409), "conflict", "it hands nothing on");
    let body = json!({ "name": "shop", "tenant": "acme", "scopes": ["read"], "life_ms": 7_200_000 });
    let made = place.root.post("/v1/keys", body).await.ok(201);
    let rotate = format!("/v1/keys/{}/rotate", text(&made["id"]));
    let second = place.root.post(&rotate, json!({})).await.ok(201);
    for kept in ["tenant", "scopes", "name", "expires_at"] {
        assert_eq!(second[kept], made[kept], "{kept}");
    }
    let rotate = format!("/v1/keys/{}/rotate", text(&second["id"]));
    let third = place.root.post(&rotate, json!({ "overlap_ms": 60_000 })).await.ok(201);
    shop(&second["key"]).get("/v1/jobs").await.ok(200);
    place.clock.advance(Duration::from_secs(60));
    assert_eq!(shop(&second["key"]).get("/v1/jobs").await.code(401), "unauthorized");
    shop(&third["key"]).get("/v1/jobs").await.ok(200);
    let revoke = format!("/v1/keys/{}/revoke", text(&third["id"]));
    let revoked = place.root.post(&revoke, json!({ "reason": "leaked" })).await.ok(200);
    assert!(revoked["revoked_at"].is_string());
    assert_eq!(shop(&third["key"]).get("/v1/jobs").await.code(401), "unauthorized");
    let rotate = format!("/v1/keys/{}/rotate", text(&third["id"]));
    assert_eq!(place.root.post(&rotate, json!({})).await.code(409), "conflict");
}

async fn a_key_makes_no_key_that_allows_more(place: Place) {
    let admin = place.key(Some("acme"), "read,admin").await;
    let make = async |tenant: serde_json::Value, scopes: &[&str]| {
        admin.post("/v1/keys", json!({ "name": "x", "tenant": tenant, "scopes": scopes })).await
    };
    let own = make(json!(null), &["read"]).await.ok(201);
    assert_eq!(own["tenant"], "acme", "a tenant's admin makes no operators");
    assert_eq!(make(json!("acme"), &["operate"]).await.code(403), "forbidden");
    assert_eq!(make(json!("rival"), &["read"]).await.code(403), "forbidden");
    assert_eq!(make(json!(null), &["worker"]).await.code(403), "forbidden");
    assert_eq!(make(json!(null), &["root"]).await.code(422), "invalid");
    let operator = place.key(None, ALL).await;
    let of_tenant = json!({ "name": "x", "tenant": "acme", "scopes": ["worker"] });
    assert_eq!(operator.post("/v1/keys", of_tenant).await.code(422), "invalid");
    let unknown = json!({ "name": "x", "tenant": "nobody", "scopes": ["read"] });
    assert_eq!(operator.post("/v1/keys", unknown).await.code(404), "not_found");
}

async fn a_tenant_enqueues_for_itself_alone(place: Place) {
    let shop = place.key(Some("acme"), "enqueue,read").await;
    place.root.put("/v1/queues/mail", json!({})).await.ok(200);
    let stored = shop.post("/v1/jobs", json!({ "kind": "a", "queue": "mail" })).await.ok(201);
    assert_eq!(place.root.get(&format!("/v1/jobs/{}", text(&stored["id"]))).await.ok(200)["tenant"], "acme");
    let other = json!({ "kind": "a", "queue": "mail", "tenant": "rival" });
    assert_eq!(shop.post("/v1/jobs", other).await.code(403), "forbidden");
    let made_up = shop.post("/v1/jobs", json!({ "kind": "a", "queue": "made-up" })).await;
    assert_eq!((made_up.code(422), text(&made_up.body["field"])), ("invalid", "queue"));
    let queues = place.root.get("/v1/queues").await.text;
    assert!(!queues.contains("made-up"), "a tenant makes no queues: {queues}");
}

async fn a_key_makes_none_that_outlives_it(place: Place) {
    let body = json!({ "name": "admin", "scopes": ["admin", "read"], "life_ms": 3_600_000 });
    let made = place.root.post("/v1/keys", body).await.ok(201);
    let admin = place.nobody().with("authorization", &format!("Bearer {}", text(&made["key"])));
    for body in
        [json!({ "name": "x", "scopes": ["read"] }), json!({ "name": "x", "scopes": ["read"], "life_ms": 7_200_000 })]
    {
        assert_eq!(admin.post("/v1/keys", body).await.ok(201)["expires_at"], made["expires_at"]);
    }
    let rotated = admin.post(&format!("/v1/keys/{}/rotate", text(&made["id"])), json!({})).await.ok(201);
    assert_eq!(rotated["expires_at"], made["expires_at"]);
    // Ended elsewhere a moment ago, and still remembered here: it makes nothing any more.
    let sight = tenure_store::record::Sight::All;
    let request =
        tenure_store::access::RevokeKey { sight, key: text(&made["id"]).parse().unwrap(), word: Default::default() };
    place.store.revoke_key(request).await.unwrap();
    assert_eq!(admin.post("/v1/keys", json!({ "name": "x", "scopes": ["read"] })).await.code(401), "unauthorized");
    let reader = place.key(None, "admin").await;
    let more = reader.post(&format!("/v1/keys/{}/rotate", text(&rotated["id"])), json!({})).await;
    assert_eq!(more.code(403), "forbidden", "a rotated key would allow more than its maker");
}

/// The first requests after a start come at once, and each finds the queue.
async fn a_queue_is_known_to_everybody_at_once(place: Place) {
    let shop = place.key(Some("acme"), "enqueue").await;
    place.root.put("/v1/queues/mail", json!({})).await.ok(200);
    let mut asked = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let shop = shop.clone();
        asked.spawn(async move { shop.post("/v1/jobs", json!({ "kind": "a", "queue": "mail" })).await.ok(201) });
    }
    while let Some(stored) = asked.join_next().await {
        stored.expect("stored");
    }
    // Gates are shared as queues are: a tenant passes those that an operator has thought of.
    let invented = shop.post("/v1/jobs", json!({ "kind": "a", "gate": "invented" })).await;
    assert_eq!((invented.code(422), text(&invented.body["field"])), ("invalid", "gate"));
    place.root.put("/v1/rules/source:*", json!({ "concurrency": 2 })).await.ok(200);
    shop.post("/v1/jobs", json!({ "kind": "a", "gate": "source:ebay" })).await.ok(201);
}

/// By another server or by the command line: what is remembered here is forgotten soon. Who used it is written down, at the
/// latest when the server stops.
async fn a_key_that_ended_elsewhere_ends_here_too(mut place: Place) {
    let key = place.new_key(None, "read").await;
    let (id, _) = tenure_core::Credential::parse_key(key.reveal()).unwrap();
    let caller = place.nobody().with("authorization", &format!("Bearer {}", key.reveal()));
    caller.get("/v1/jobs").await.ok(200);
    let sight = tenure_store::record::Sight::All;
    let request = tenure_store::access::RevokeKey { sight, key: id.clone(), word: Default::default() };
    place.store.revoke_key(request).await.unwrap();
    let ended = async { while caller.get("/v1/jobs").await.status != 401 {} };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it is forgotten");
    place.stop().await.unwrap();
    assert!(place.store.find_key(&id).await.unwrap().unwrap().used_at.is_some(), "it was used");
}
