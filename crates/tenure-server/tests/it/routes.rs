//! Every route of the document: whom it lets in, and what it tells a stranger.

use std::sync::Arc;

use serde_json::{Value, json};
use tenure_core::Scope;
use tenure_webhooks::Teller;

use crate::conform::operations;
use crate::http::{Caller, text};
use crate::place::Place;

/// What a path is called with: ids that are well formed, of something or of nothing.
fn fill(template: &str, job: &str) -> String {
    let words = [
        ("{id}", job),
        ("{job}", job),
        ("{lease}", "7"),
        ("{worker}", "7"),
        ("{order}", "quiet"),
        ("{queue}", "default"),
        ("{gate}", "g"),
        ("{act}", "pause"),
        ("{pattern}", "g"),
        ("{schedule}", "nightly"),
        ("{tenant}", "acme"),
        ("{key}", "aaaaaaaaaaaa"),
        ("{partition}", "p"),
        ("{no}", "1"),
        ("{code}", "full"),
        ("{endpoint}", NO_ENDPOINT),
        ("{delivery}", NO_DELIVERY),
    ];
    let filled = words.iter().fold(template.to_owned(), |path, (hole, value)| path.replace(hole, value));
    assert!(!filled.contains('{'), "{filled}: what goes there?");
    filled
}

/// A body that every call can read.
fn body(method: &str, template: &str) -> Option<Vec<u8>> {
    let body = match template {
        "/v1/jobs" => json!({ "kind": "a" }),
        "/v1/jobs/batch" => json!({ "jobs": [{ "kind": "a" }] }),
        "/v1/leases" => json!({ "queues": ["default"], "limit": 1, "wait_ms": 0 }),
        "/v1/operations" => json!({ "act": "requeue", "state": "dead" }),
        "/v1/keys" => json!({ "name": "x", "scopes": ["admin"] }),
        "/v1/schedules/{schedule}" => json!({ "cron": "@daily", "kind": "a" }),
        "/v1/workers/{worker}" => json!({ "state": "idle" }),
        "/v1/leases/{lease}/jobs/{job}/acquire" => json!({ "tokens": 1 }),
        _ => json!({}),
    };
    (method != "GET" && method != "DELETE").then(|| body.to_string().into_bytes())
}

/// The scopes that the document says a call needs, all of them; `None`: it is open to all.
fn scopes(operation: &Value) -> Option<Vec<&str>> {
    let named = operation["security"].as_array()?.iter().find_map(|scheme| scheme["key"].as_array())?;
    Some(named.iter().filter_map(Value::as_str).collect())
}

const NOBODYS: &str = "01933c5e-7b5a-7000-8000-000000000001";
const NO_ENDPOINT: &str = "01933c5e-7b5a-7000-8000-00000000000e";
const NO_DELIVERY: &str = "01933c5e-7b5a-7000-8000-00000000000d";

/// Without a key 401, with a key of any other scope 403, with a key that lacks one of several scopes 403, and the document
/// says which.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_route_needs_the_scopes_that_the_document_names() {
    let place = Place::sqlite().await;
    let mut keys: Vec<(Vec<&str>, Caller)> = Vec::new();
    for scope in Scope::ALL {
        keys.push((vec![scope.as_str()], place.key(None, scope.as_str()).await));
    }
    for lacking in Scope::ALL {
        let others: Vec<_> = Scope::ALL.into_iter().filter(|scope| *scope != lacking).map(Scope::as_str).collect();
        keys.push((others.clone(), place.key(None, &others.join(",")).await));
    }
    let mut guarded = 0;
    for (method, template, operation) in operations() {
        let (path, body) = (fill(&template, NOBODYS), body(&method, &template));
        let Some(wanted) = scopes(operation) else {
            assert!(
                template.starts_with("/v1/health") || template.starts_with("/v1/problems"),
                "{template} is open to all"
            );
            continue;
        };
        guarded += 1;
        assert_eq!(
            place.nobody().call(&method, &path, body.clone()).await.code(401),
            "unauthorized",
            "{method} {path}"
        );
        for (allowed, caller) in &keys {
            let reply = caller.call(&method, &path, body.clone()).await;
            let is_refused = reply.status == 403;
            let lacks = wanted.iter().any(|scope| !allowed.contains(scope));
            assert_eq!(is_refused, lacks, "{method} {template} with {}: {}", allowed.join(","), reply.text);
        }
    }
    assert!(guarded > 40, "{guarded} routes");
}

/// A key that only operates stores no job of its own choice, neither now nor by a schedule or a run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_only_operates_cannot_store_jobs() {
    let place = Place::sqlite().await;
    let operator = place.key(Some("acme"), "read,operate").await;
    let both = place.key(Some("acme"), "operate,enqueue").await;
    let nightly = json!({ "cron": "@daily", "kind": "mine", "payload": { "any": "thing" } });
    for (method, path, body) in [
        ("PUT", "/v1/schedules/nightly", nightly.clone()),
        ("POST", "/v1/jobs", json!({ "kind": "mine" })),
        ("POST", "/v1/jobs/batch", json!({ "jobs": [{ "kind": "mine" }] })),
        ("POST", "/v1/runs", json!({ "jobs": [{ "kind": "mine" }] })),
    ] {
        let refused = operator.call(method, path, Some(body.to_string().into_bytes())).await;
        assert_eq!(refused.code(403), "forbidden", "{method} {path}");
        assert!(refused.text.contains("not enqueue"), "{method} {path}: {}", refused.text);
    }
    assert_eq!(operator.get("/v1/schedules").await.ok(200)["items"], json!([]));
    both.put("/v1/schedules/nightly", nightly).await.ok(200);
    // What is there already it may pause, resume and remove.
    for act in ["pause", "resume"] {
        operator.post(&format!("/v1/schedules/nightly/{act}"), json!({})).await.ok(200);
    }
    assert_eq!(operator.call("DELETE", "/v1/schedules/nightly", None).await.status, 204);
}

/// Tenant B asks for tenant A's things on every route: it hears what it would hear of something that nobody has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_hears_nothing_of_another_on_any_route() {
    for place in [Place::sqlite().await, Place::postgres().await] {
        let acme = place.key(Some("acme"), "enqueue,read,operate,admin").await;
        let rival = place.key(Some("rival"), "enqueue,read,operate,admin").await;
        place.root.put("/v1/queues/default", json!({})).await.ok(200);
        let secret = json!({ "kind": "a", "payload": "a secret of acme", "trace": "secret-trace", "unique": "k" });
        let job = text(&acme.post("/v1/jobs", secret.clone()).await.ok(201)["id"]).to_owned();
        acme.put("/v1/schedules/nightly", json!({ "cron": "@daily", "kind": "secret" })).await.ok(200);
        let key = acme.get("/v1/keys").await.ok(200)["items"][0]["id"].clone();
        let (endpoint, delivery) = pinged(&place, &acme).await;
        let mut asked = 0;
        for (method, template, operation) in operations() {
            // What a tenant sets is its own from then on; runs have a test of their own.
            let sets = method == "PUT" && template.starts_with("/v1/schedules");
            if sets || scopes(operation).is_none_or(|scopes| scopes == ["worker"]) || template.contains("/runs/") {
                continue;
            }
            let theirs = fill(&template, &job).replace("aaaaaaaaaaaa", text(&key));
            let theirs = theirs.replace(NO_ENDPOINT, &endpoint).replace(NO_DELIVERY, &delivery);
            let nobodys = fill(&template, NOBODYS).replace("nightly", "never-set");
            let named = theirs != nobodys;
            let body = body(&method, &template);
            let heard = rival.call(&method, &theirs, body.clone()).await;
            for told in ["a secret of acme", "secret-trace", "acme"] {
                assert!(
                    !heard.text.contains(told) || template.contains("{tenant}"),
                    "{method} {theirs}: {}",
                    heard.text
                );
            }
            if !named {
                continue;
            }
            asked += 1;
            let of_nobody = rival.call(&method, &nobodys, body).await;
            let blind = |text: &str| {
                let ids = [job.as_str(), NOBODYS, &endpoint, NO_ENDPOINT, &delivery, NO_DELIVERY];
                ids.iter()
                    .chain(&[text_of(&key), "aaaaaaaaaaaa", "nightly", "never-set"])
                    .fold(text.to_owned(), |text, id| text.replace(id, "ID"))
            };
            assert_eq!(heard.status, of_nobody.status, "{method} {theirs}");
            assert!(matches!(heard.status, 403 | 404), "{method} {theirs}: {}", heard.text);
            assert_eq!(blind(&heard.text), blind(&of_nobody.text), "{method} {theirs}");
        }
        assert!(asked >= 10, "{asked} routes were asked");
        // Another tenant's unique key is no key of one's own, and an id that is taken tells nothing.
        rival.post("/v1/jobs", secret).await.ok(201);
        let taken = rival.post("/v1/jobs", json!({ "kind": "a", "id": job })).await;
        assert_eq!(taken.code(422), "invalid");
        assert_eq!(acme.get(&format!("/v1/jobs/{job}")).await.ok(200)["state"], "queued", "nothing was done to it");
    }
}

/// An endpoint of a tenant's, and a delivery to it.
async fn pinged(place: &Place, of: &Caller) -> (String, String) {
    let made = of.post("/v1/webhooks", json!({ "url": "http://127.0.0.1:9/acme" })).await.ok(201);
    let endpoint = text(&made["id"]).to_owned();
    assert_eq!(of.post(&format!("/v1/webhooks/{endpoint}/ping"), json!({})).await.status, 202);
    place.store.seal_journal().await.expect("seal");
    Teller::new(Arc::clone(&place.store)).tell_all().await.expect("tell");
    let delivery = of.get("/v1/deliveries").await.ok(200)["items"][0]["id"].clone();
    (endpoint, text(&delivery).to_owned())
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
