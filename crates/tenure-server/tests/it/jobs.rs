//! Jobs: created, found, listed, canceled, revived.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::http::text;
use crate::on_each_store;
use crate::place::Place;

on_each_store! {
    a_job_is_created_shown_canceled_and_revived,
    a_repeated_request_is_the_same_job,
    a_batch_is_stored_whole_or_not_at_all,
    lists_go_page_by_page_with_each_job_once,
    lists_show_what_was_asked_for,
    a_full_queue_says_so,
    a_waiting_job_is_opened_by_nobody_twice,
    payloads_come_back_as_they_were,
    the_story_of_a_job_is_told,
    a_delayed_job_is_run_now,
    jobs_are_found_by_time_and_text,
    the_journal_is_searched,
}

async fn a_job_is_created_shown_canceled_and_revived(place: Place) {
    let body = json!({ "kind": "mail.send", "payload": { "to": 1 }, "queue": "mail", "priority": 0, "delay": "1h" });
    let created = place.root.post("/v1/jobs", body).await;
    assert!(created.head.contains("location: /v1/jobs/"), "{}", created.head);
    let created = created.ok(201);
    assert_eq!((&created["answer"], &created["state"]), (&json!("created"), &json!("queued")));
    let id = text(&created["id"]).to_owned();
    let job = place.root.get(&format!("/v1/jobs/{id}")).await.ok(200);
    assert_eq!(job["payload"], json!({ "to": 1 }));
    assert_eq!((&job["queue"], &job["priority"], &job["state"]), (&json!("mail"), &json!(0), &json!("queued")));
    let cancel = format!("/v1/jobs/{id}/cancel");
    assert_eq!(place.root.post(&cancel, json!({ "reason": "a mistake" })).await.ok(200)["canceled"], "now");
    assert_eq!(place.root.post(&cancel, json!({})).await.ok(200)["canceled"], "before");
    let requeue = format!("/v1/jobs/{id}/requeue");
    assert_eq!(place.root.call("POST", &requeue, None).await.ok(200)["state"], "queued");
    assert_eq!(place.root.post(&requeue, json!({})).await.code(409), "conflict");
    let journal = place.root.get("/v1/audit").await.ok(200);
    let of_job = |row: &&Value| row["jobs"] == json!([id]);
    let rows: Vec<&Value> = journal["items"].as_array().unwrap().iter().filter(of_job).collect();
    assert_eq!(rows[0]["reason"], "a mistake");
    assert!(text(&rows[0]["actor"]).starts_with("key:"), "{rows:?}");
}

async fn a_repeated_request_is_the_same_job(place: Place) {
    let once = place.root.with("idempotency-key", "order 42");
    let body = json!({ "kind": "invoice", "payload": { "order": 42 } });
    let first = once.post("/v1/jobs", body.clone()).await.ok(201);
    let again = once.post("/v1/jobs", body.clone()).await.ok(200);
    assert_eq!((&again["id"], &again["answer"]), (&first["id"], &json!("found")));
    let other = once.post("/v1/jobs", json!({ "kind": "invoice", "payload": { "order": 43 } })).await;
    assert!(matches!(other.status, 409 | 422), "{}", other.text);
    let both = once.post("/v1/jobs", json!({ "kind": "invoice", "idempotency_key": "another" })).await;
    assert_eq!(both.code(422), "invalid");
    let unique = json!({ "kind": "crawl", "unique": "example.org", "unique_policy": "forever" });
    let holder = place.root.post("/v1/jobs", unique.clone()).await.ok(201);
    assert_eq!(place.root.post("/v1/jobs", unique).await.ok(200)["id"], holder["id"]);
    let with_id = json!({ "kind": "a", "id": first["id"] });
    assert_eq!(place.root.post("/v1/jobs", with_id).await.ok(200)["id"], first["id"]);
}

async fn a_batch_is_stored_whole_or_not_at_all(place: Place) {
    let jobs: Vec<Value> = (0..1_000).map(|n| json!({ "kind": "n", "payload": n })).collect();
    let stored = place.root.post("/v1/jobs/batch", json!({ "jobs": jobs })).await.ok(200);
    let ids: Vec<&str> = stored["jobs"].as_array().unwrap().iter().map(|job| text(&job["id"])).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 1_000);
    assert!(ids.is_sorted(), "ids are in the order of the jobs");
    let bad = json!({ "jobs": [{ "kind": "fine" }, { "kind": "fine" }, { "kind": "not fine" }] });
    let refused = place.root.post("/v1/jobs/batch", bad).await;
    assert_eq!(refused.code(422), "invalid");
    assert_eq!(refused.body["field"], "jobs[2].kind");
    let full = place.root.get("/v1/jobs?kind=fine").await.ok(200);
    assert_eq!(full["items"], json!([]));
    let many: Vec<Value> = (0..1_001).map(|_| json!({ "kind": "n" })).collect();
    assert_eq!(place.root.post("/v1/jobs/batch", json!({ "jobs": many })).await.code(422), "invalid");
    let named =
        place.root.with("idempotency-key", "k").post("/v1/jobs/batch", json!({ "jobs": [{ "kind": "a" }] })).await;
    assert_eq!(named.code(422), "invalid", "a key of a batch would be forgotten");
    assert_eq!(place.root.post("/v1/jobs/batch", json!({ "jobs": [] })).await.code(422), "invalid");
}

async fn lists_go_page_by_page_with_each_job_once(place: Place) {
    let jobs: Vec<Value> = (0..25).map(|_| json!({ "kind": "n" })).collect();
    place.root.post("/v1/jobs/batch", json!({ "jobs": jobs })).await.ok(200);
    let (mut path, mut seen) = ("/v1/jobs?limit=10".to_owned(), Vec::new());
    loop {
        let page = place.root.get(&path).await.ok(200);
        seen.extend(page["items"].as_array().unwrap().iter().map(|job| text(&job["id"]).to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/jobs?limit=10&cursor={next}");
    }
    assert_eq!(seen.len(), 25);
    assert!(seen.windows(2).all(|pair| pair[0] > pair[1]), "newest first, each once");
    for bad in ["limit=0", "limit=201", "limit=x", "cursor=00", "cursor=%27%20or%201", "order_by=payload"] {
        let refused = place.root.get(&format!("/v1/jobs?{bad}")).await;
        assert_eq!(refused.code(422), "invalid", "{bad}");
    }
}

async fn lists_show_what_was_asked_for(place: Place) {
    let mail = place.enqueue(json!({ "kind": "a", "queue": "mail" })).await;
    let other = place.enqueue(json!({ "kind": "b", "tenant": "acme" })).await;
    place.root.post(&format!("/v1/jobs/{other}/cancel"), json!({})).await.ok(200);
    let ids = async |query: &str| {
        let page = place.root.get(&format!("/v1/jobs?{query}")).await.ok(200);
        page["items"].as_array().unwrap().iter().map(|job| text(&job["id"]).to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("queue=mail").await, std::slice::from_ref(&mail));
    assert_eq!(ids("kind=b").await, std::slice::from_ref(&other));
    assert_eq!(ids("tenant=acme").await, std::slice::from_ref(&other));
    assert_eq!(ids("state=canceled").await, std::slice::from_ref(&other));
    assert_eq!(ids("state=dead").await, Vec::<String>::new());
    assert_eq!(ids("stuck_for=5m").await, Vec::<String>::new());
    let worker = place.worker().await;
    worker.post("/v1/leases", json!({ "queues": ["mail"], "limit": 1, "wait_ms": 0 })).await.ok(200);
    place.clock.advance(Duration::from_secs(301));
    assert_eq!(ids("stuck_for=5m").await, [mail]);
}

async fn a_full_queue_says_so(place: Place) {
    place.root.put("/v1/queues/mail", json!({ "quota": 1, "fair": true })).await.ok(200);
    place.enqueue(json!({ "kind": "a", "queue": "mail" })).await;
    let full = place.root.post("/v1/jobs", json!({ "kind": "a", "queue": "mail" })).await;
    assert_eq!(full.code(429), "full");
    assert!(full.head.contains("retry-after: 1"), "{}", full.head);
    assert!(text(&full.body["detail"]).contains("its quota is 1 pending jobs"), "{}", full.text);
    place.root.put("/v1/tenants/default", json!({ "quota": 2 })).await.ok(200);
    place.enqueue(json!({ "kind": "a", "queue": "mail" })).await;
    assert_eq!(place.root.post("/v1/jobs", json!({ "kind": "a", "queue": "mail" })).await.code(429), "full");
}

async fn a_waiting_job_is_opened_by_nobody_twice(place: Place) {
    let id = place.enqueue(json!({ "kind": "a" })).await;
    assert_eq!(place.root.post(&format!("/v1/jobs/{id}/open"), json!({})).await.code(409), "conflict");
}

async fn payloads_come_back_as_they_were(place: Place) {
    let exact = "{\"n\":12345678901234567890,\"f\":1.5,\"ü\":\"\u{1F600}\",\"deep\":[[[[1]]]]}";
    let body = format!("{{\"kind\":\"a\",\"payload\":{exact}}}");
    let stored = place.root.call("POST", "/v1/jobs", Some(body.into_bytes())).await.ok(201);
    let shown = place.root.get(&format!("/v1/jobs/{}", text(&stored["id"]))).await;
    assert!(
        shown.text.contains("12345678901234567890") && shown.text.contains("1F600") | shown.text.contains('😀'),
        "{}",
        shown.text
    );
}

/// To operators with who and why; to its tenant without.
async fn the_story_of_a_job_is_told(place: Place) {
    let acme = place.key(Some("acme"), "enqueue,read,operate").await;
    place.root.put("/v1/queues/default", json!({})).await.ok(200);
    let id = text(&acme.post("/v1/jobs", json!({ "kind": "a" })).await.ok(201)["id"]).to_owned();
    place.root.post(&format!("/v1/jobs/{id}/cancel"), json!({ "reason": "a mistake" })).await.ok(200);
    place.root.post(&format!("/v1/jobs/{id}/requeue"), json!({})).await.ok(200);
    let story = format!("/v1/jobs/{id}/journal");
    let all = place.root.get(&story).await.ok(200);
    let events =
        |page: &Value| page["items"].as_array().unwrap().iter().map(|row| row["event"].clone()).collect::<Vec<_>>();
    assert_eq!((events(&all), &all["next"]), (vec![json!("canceled"), json!("requeued")], &Value::Null));
    assert_eq!((&all["items"][0]["reason"], &all["items"][0]["jobs"]), (&json!("a mistake"), &json!([id])));
    let own = acme.get(&story).await.ok(200);
    assert_eq!(events(&own), events(&all));
    let told = |row: &Value| [&row["actor"], &row["reason"], &row["worker"]].iter().all(|said| said.is_null());
    assert!(own["items"].as_array().unwrap().iter().all(told), "{own}");
}

/// The cursor of a search goes on where it stopped; a moment is a date or a duration.
async fn jobs_are_found_by_time_and_text(place: Place) {
    let mut made = Vec::new();
    for number in 0..3 {
        let body = json!({ "kind": "a", "payload": { "Customer": number } });
        made.push(place.root.post("/v1/jobs", body).await.ok(201)["id"].clone());
    }
    let ids = |page: &Value| page["items"].as_array().unwrap().iter().map(|job| job["id"].clone()).collect::<Vec<_>>();
    let mut found = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = place.root.get(&format!("/v1/jobs?text=customer&since=1h&limit=1{cursor}")).await.ok(200);
        found.extend(ids(&page));
        let Some(next) = page["next"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    found.reverse();
    assert_eq!(found, made);
    for nothing in ["text=nobody", "text=%25", "until=1h", "since=2999-01-01T00:00:00Z"] {
        let page = place.root.get(&format!("/v1/jobs?{nothing}")).await.ok(200);
        assert_eq!((ids(&page), &page["next"]), (vec![], &Value::Null), "{nothing}");
    }
    for (field, bad) in [("since", "yesterday"), ("until", ""), ("text", "")] {
        let refused = place.root.get(&format!("/v1/jobs?{field}={bad}")).await;
        assert_eq!(refused.code(422), "invalid", "{field}: {}", refused.text);
    }
}

/// Once; what has ended is not run.
async fn a_delayed_job_is_run_now(place: Place) {
    let id = text(&place.root.post("/v1/jobs", json!({ "kind": "a", "delay": "1h" })).await.ok(201)["id"]).to_owned();
    let run = format!("/v1/jobs/{id}/run");
    assert_eq!(place.root.post(&run, json!({ "reason": "now" })).await.ok(200)["hastened"], true);
    assert_eq!(place.root.post(&run, json!({})).await.ok(200)["hastened"], false);
    let story = place.root.get(&format!("/v1/jobs/{id}/journal")).await.ok(200);
    assert_eq!((&story["items"][0]["event"], &story["items"][0]["reason"]), (&json!("hastened"), &json!("now")));
    place.root.post(&format!("/v1/jobs/{id}/cancel"), json!({})).await.ok(200);
    assert_eq!(place.root.post(&run, json!({})).await.code(409), "conflict");
}

/// By who, what and when, newest first; without a question it is the newest entries, as ever.
async fn the_journal_is_searched(place: Place) {
    for queue in ["one", "two"] {
        place.root.put(&format!("/v1/queues/{queue}"), json!({})).await.ok(200);
        place.root.post(&format!("/v1/queues/{queue}/pause"), json!({ "reason": queue })).await.ok(200);
    }
    let found = async |query: &str| {
        let page = place.root.get(&format!("/v1/audit?{query}")).await.ok(200);
        let said = |row: &Value| format!("{} {}", text(&row["event"]), row["reason"].as_str().unwrap_or_default());
        let rows: Vec<String> = page["items"].as_array().unwrap().iter().map(said).collect();
        (rows, page["next"].as_str().map(str::to_owned))
    };
    let (one, two) = ("queue_paused one".to_owned(), "queue_paused two".to_owned());
    assert_eq!(found("subject=one").await, (vec![one.clone()], None));
    assert_eq!(
        found("acts=true&event=queue_paused,queue_resumed&since=1h").await,
        (vec![two.clone(), one.clone()], None)
    );
    assert_eq!(found("until=1h").await, (vec![], None));
    let (first, next) = found("event=queue_paused&limit=1").await;
    let (second, _) = found(&format!("event=queue_paused&limit=1&cursor={}", next.expect("there is more"))).await;
    assert_eq!((first, second), (vec![two.clone()], vec![one.clone()]));
    let plain = found("limit=200").await.0;
    assert_eq!(plain.iter().filter(|row| row.starts_with("queue_paused")).collect::<Vec<_>>(), [&one, &two]);
    for bad in ["event=nothing", "since=x", "job=7", "cursor=7", "acts=perhaps"] {
        assert_eq!(place.root.get(&format!("/v1/audit?{bad}")).await.code(422), "invalid", "{bad}");
    }
}

/// A name for a request is kept or refused, never ignored: on every call that changes something.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_call_ignores_an_idempotency_key() {
    let place = Place::sqlite().await;
    let named = place.root.with("idempotency-key", "once");
    let mut refused = 0;
    for (method, path, _) in crate::conform::operations() {
        if method == "GET" || path == "/v1/jobs" {
            continue;
        }
        let reply = named.send(&method, &path.replace(['{', '}'], ""), Some(b"{}")).await;
        assert_eq!(reply.code(422), "invalid", "{method} {path}");
        assert_eq!(reply.body["field"], "Idempotency-Key", "{method} {path}");
        assert!(text(&reply.body["detail"]).contains("POST /v1/jobs"), "{method} {path}: {}", reply.text);
        refused += 1;
    }
    assert!(refused > 40, "{refused}");
    named.get("/v1/jobs").await.ok(200);
    named.post("/v1/jobs", json!({ "kind": "a" })).await.ok(201);
    named.post("/v1/jobs", json!({ "kind": "a" })).await.ok(200);
}
