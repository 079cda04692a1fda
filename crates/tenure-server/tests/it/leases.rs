//! Workers over HTTP: what docs/WORKER-PROTOCOL.md promises.

use std::time::Duration;

use serde_json::{Value, json};

use crate::http::{Caller, text};
use crate::on_each_store;
use crate::place::Place;

on_each_store! {
    a_job_is_claimed_renewed_and_completed,
    what_is_said_under_a_lost_lease_changes_nothing,
    a_lease_is_its_own_workers,
    every_way_to_end_leads_where_it_should,
    a_failure_is_judged_by_the_jobs_own_rules,
    a_claim_waits_for_work,
    what_a_lost_answer_left_behind_is_given_back,
    a_cancel_reaches_its_holder,
    orders_reach_a_worker,
    a_worker_that_says_goodbye_gives_everything_back,
    a_gate_gives_tokens_or_says_when,
    bad_reports_are_refused_by_name,
}

async fn claim(worker: &Caller, limit: u32) -> Value {
    worker.post("/v1/leases", json!({ "queues": ["default"], "limit": limit, "wait_ms": 0 })).await.ok(200)
}

/// Claims one job: the path of its reports, and the path of its lease.
async fn hold(worker: &Caller) -> (String, String) {
    let claimed = claim(worker, 1).await;
    let (lease, job) = (&claimed["lease"]["lease"], text(&claimed["lease"]["jobs"][0]["id"]).to_owned());
    (format!("/v1/leases/{lease}/jobs/{job}"), format!("/v1/leases/{lease}"))
}

async fn state(place: &Place, id: &str) -> String {
    text(&place.root.get(&format!("/v1/jobs/{id}")).await.ok(200)["state"]).to_owned()
}

async fn a_job_is_claimed_renewed_and_completed(place: Place) {
    let worker = place.worker().await;
    assert_eq!(claim(&worker, 5).await["lease"], Value::Null);
    let id = place.enqueue(json!({ "kind": "echo", "payload": [1], "trace": "00-1" })).await;
    let claimed = claim(&worker, 5).await;
    assert_eq!(claimed["order"], "work");
    let lease = &claimed["lease"];
    assert_eq!((&lease["queue"], &lease["ttl_ms"]), (&json!("default"), &json!(60_000)));
    let job = &lease["jobs"][0];
    assert_eq!(
        (&job["id"], &job["payload"], &job["attempt"], &job["trace"]),
        (&json!(id), &json!([1]), &json!(1), &json!("00-1"))
    );
    let renewed = worker.post(&format!("/v1/leases/{}/renew", lease["lease"]), json!({})).await.ok(200);
    assert_eq!((&renewed["ttl_ms"], &renewed["cancel"]), (&json!(60_000), &json!([])));
    let complete = format!("/v1/leases/{}/jobs/{id}/complete", lease["lease"]);
    let body = json!({ "result": { "mail": 7 }, "usage": { "bytes": 1024 } });
    let done = worker.post(&complete, body.clone()).await.ok(200);
    assert_eq!((&done["state"], &done["repeated"]), (&json!("succeeded"), &json!(false)));
    assert_eq!(worker.post(&complete, body).await.ok(200)["repeated"], true);
    let shown = place.root.get(&format!("/v1/jobs/{id}")).await.ok(200);
    let attempt = &shown["attempts"][0];
    assert_eq!((&attempt["result"], &attempt["usage"]), (&json!({ "mail": 7 }), &json!({ "bytes": 1024 })));
    assert_eq!((&attempt["worker"], &attempt["how"]), (&json!("far"), &json!("succeeded")));
    let workers = place.root.get("/v1/workers").await.ok(200);
    assert_eq!(workers["items"][0]["name"], "far");
}

/// The successor runs while the stale worker speaks: only then the fence is what refuses it.
async fn what_is_said_under_a_lost_lease_changes_nothing(place: Place) {
    let (first, second) = (place.worker().await, place.worker().await);
    let id = place.enqueue(json!({ "kind": "a" })).await;
    let (stale, stale_lease) = hold(&first).await;
    place.clock.advance(Duration::from_secs(61));
    place.store.reclaim_jobs(None, 10).await.expect("reclaim");
    let (fresh, _) = hold(&second).await;
    assert_ne!(stale, fresh);
    for (verb, body) in [
        ("complete", json!({})),
        ("fail", json!({ "message": "late" })),
        ("snooze", json!({ "delay_ms": 1 })),
        ("release", json!({})),
        ("cancel", json!({})),
        ("acquire", json!({ "tokens": 1 })),
    ] {
        assert_eq!(first.post(&format!("{stale}/{verb}"), body).await.code(409), "lease_lost", "{verb}");
    }
    assert_eq!(first.post(&format!("{stale_lease}/renew"), json!({})).await.code(409), "lease_lost");
    assert_eq!(state(&place, &id).await, "running");
    assert_eq!(second.post(&format!("{fresh}/complete"), json!({})).await.ok(200)["state"], "succeeded");
    assert_eq!(first.post(&format!("{stale}/complete"), json!({})).await.code(409), "lease_lost");
}

/// Numbers of leases can be guessed; tokens cannot.
async fn a_lease_is_its_own_workers(place: Place) {
    let (holder, thief) = (place.worker().await, place.worker().await);
    let id = place.enqueue(json!({ "kind": "a" })).await;
    let (held, lease) = hold(&holder).await;
    assert_eq!(thief.post(&format!("{held}/complete"), json!({})).await.code(409), "lease_lost");
    assert_eq!(thief.post(&format!("{lease}/renew"), json!({})).await.code(409), "lease_lost");
    assert_eq!(state(&place, &id).await, "running");
    for token in ["", "tnw_1_x", "tnk_x"] {
        let nobody = place.root.with("tenure-worker", token);
        assert_eq!(nobody.post(&format!("{held}/complete"), json!({})).await.code(401), "unknown_worker", "{token}");
    }
    assert_eq!(place.root.post(&format!("{held}/complete"), json!({})).await.code(401), "unknown_worker");
    let token = &holder.headers.iter().find(|(name, _)| name == "tenure-worker").unwrap().1;
    let without_scope = place.key(None, "read,operate,enqueue,admin").await.with("tenure-worker", token);
    assert_eq!(without_scope.post(&format!("{held}/complete"), json!({})).await.code(403), "forbidden");
    // Keys are rotated: another key that allows it does not make another worker.
    let rotated = place.key(None, "worker").await.with("tenure-worker", token);
    assert_eq!(rotated.post(&format!("{held}/complete"), json!({})).await.ok(200)["state"], "succeeded");
}

async fn every_way_to_end_leads_where_it_should(place: Place) {
    let worker = place.worker().await;
    for (verb, body, wanted) in [
        ("complete", json!({}), "succeeded"),
        ("fail", json!({}), "retryable"),
        ("fail", json!({ "class": "permanent", "message": "no" }), "failed"),
        ("fail", json!({ "class": "dead", "message": "never" }), "dead"),
        ("snooze", json!({ "delay_ms": 60_000 }), "queued"),
        ("release", json!({ "delay_ms": 15_000 }), "queued"),
        ("cancel", json!({ "message": "enough" }), "canceled"),
    ] {
        let id = place.enqueue(json!({ "kind": "a" })).await;
        let (held, _) = hold(&worker).await;
        assert_eq!(worker.post(&format!("{held}/{verb}"), body).await.ok(200)["state"], wanted, "{verb}");
        assert_eq!(state(&place, &id).await, wanted, "{verb}");
        place.root.post(&format!("/v1/jobs/{id}/cancel"), json!({})).await;
    }
}

async fn a_failure_is_judged_by_the_jobs_own_rules(place: Place) {
    let worker = place.worker().await;
    let id = place.enqueue(json!({ "kind": "a", "max_attempts": 2, "backoff": "fixed 5m" })).await;
    let (held, _) = hold(&worker).await;
    let body = json!({ "message": "the shop is closed", "code": "closed", "details": { "until": 9 } });
    assert_eq!(worker.post(&format!("{held}/fail"), body.clone()).await.ok(200)["state"], "retryable");
    assert_eq!(worker.post(&format!("{held}/fail"), body).await.ok(200)["repeated"], true);
    let shown = place.root.get(&format!("/v1/jobs/{id}")).await.ok(200);
    let error =
        json!({ "class": "transient", "code": "closed", "message": "the shop is closed", "details": { "until": 9 } });
    assert_eq!(shown["attempts"][0]["error"], error);
    assert_eq!(claim(&worker, 1).await["lease"], Value::Null, "not before its time");
    place.clock.advance(Duration::from_secs(300));
    let (held, _) = hold(&worker).await;
    assert_eq!(worker.post(&format!("{held}/fail"), json!({})).await.ok(200)["state"], "dead");
    // `never`: an error ends it. A delay of the worker's own wins over the backoff.
    place.enqueue(json!({ "kind": "a", "backoff": "never" })).await;
    let (held, _) = hold(&worker).await;
    assert_eq!(worker.post(&format!("{held}/fail"), json!({})).await.ok(200)["state"], "failed");
    place.enqueue(json!({ "kind": "a", "backoff": "fixed 1h" })).await;
    let (held, _) = hold(&worker).await;
    worker.post(&format!("{held}/fail"), json!({ "retry_in_ms": 1_000 })).await.ok(200);
    place.clock.advance(Duration::from_secs(1));
    assert_eq!(claim(&worker, 1).await["lease"]["jobs"][0]["attempt"], 2);
}

async fn a_claim_waits_for_work(place: Place) {
    let worker = place.worker().await;
    let waiting = tokio::spawn(async move {
        worker.post("/v1/leases", json!({ "queues": ["mail", "default"], "limit": 3, "wait_ms": 30_000 })).await.ok(200)
    });
    // Nobody knows when it waits; whenever the job comes, it is found long before the wait is over.
    let id = place.enqueue(json!({ "kind": "a" })).await;
    let claimed = waiting.await.expect("an answer");
    assert_eq!(claimed["lease"]["jobs"][0]["id"], json!(id));
    assert!(claimed["waited_ms"].as_u64().expect("a number") < 30_000);
    // The last look is begun when the time is over: a worker counts its lease from there.
    let worker = place.worker().await;
    let waited = worker.post("/v1/leases", json!({ "queues": ["default"], "limit": 1, "wait_ms": 300 })).await.ok(200);
    assert!(waited["waited_ms"].as_u64().is_some_and(|waited| waited >= 300), "{waited}");
}

/// The store is held up in the middle of the claim, the worker hangs up meanwhile, and the claim goes through after all:
/// nobody heard of it, so it is given back. Time stands still here: no lease ends by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_claimed_for_a_worker_that_has_hung_up_is_given_back() {
    let place = Place::postgres().await;
    let (gone, other) = (place.worker().await, place.worker().await);
    let id = place.enqueue(json!({ "kind": "a" })).await;
    let holder = tenure_postgres::tx::connect(place.url()).await.expect("connect");
    holder.batch_execute("begin; lock table tenure.lease in access exclusive mode").await.expect("lock");
    let claiming = tokio::spawn(async move {
        gone.send("POST", "/v1/leases", Some(br#"{"queues":["default"],"limit":1,"wait_ms":30000}"#)).await
    });
    let looker = tenure_postgres::tx::connect(place.url()).await.expect("connect");
    let waits = "select 1 from pg_locks where relation = 'tenure.lease'::regclass and not granted";
    while looker.query(waits, &[]).await.expect("look").is_empty() {}
    claiming.abort();
    assert!(claiming.await.expect_err("it has hung up").is_cancelled());
    // The server hears of it before the store goes on.
    while place.root.get("/v1/health/live").await.status != 200 {}
    holder.batch_execute("commit").await.expect("commit");
    let released = async || place.root.get(&format!("/v1/jobs/{id}")).await.ok(200)["attempts"][0]["how"] == "released";
    let given_back = async { while !released().await {} };
    tokio::time::timeout(Duration::from_secs(60), given_back).await.expect("it is given back");
    let claimed = claim(&other, 1).await;
    let job = &claimed["lease"]["jobs"][0];
    assert_eq!((&job["id"], &job["attempt"]), (&json!(id), &json!(1)), "uncharged");
}

async fn what_a_lost_answer_left_behind_is_given_back(place: Place) {
    let worker = place.worker().await;
    let (first, second) = (place.enqueue(json!({ "kind": "a" })).await, place.enqueue(json!({ "kind": "b" })).await);
    let known = claim(&worker, 1).await["lease"]["lease"].clone();
    claim(&worker, 1).await;
    let body = json!({ "queues": ["default"], "limit": 5, "wait_ms": 0, "holding": [known] });
    let again = worker.post("/v1/leases", body).await.ok(200);
    let jobs = again["lease"]["jobs"].as_array().unwrap();
    assert_eq!((jobs.len(), &jobs[0]["id"], &jobs[0]["attempt"]), (1, &json!(second), &json!(1)));
    assert_eq!(state(&place, &first).await, "running");
}

async fn a_cancel_reaches_its_holder(place: Place) {
    let worker = place.worker().await;
    let id = place.enqueue(json!({ "kind": "a" })).await;
    let (held, lease) = hold(&worker).await;
    assert_eq!(place.root.post(&format!("/v1/jobs/{id}/cancel"), json!({})).await.ok(200)["canceled"], "requested");
    let renewed = worker.post(&format!("{lease}/renew"), json!({})).await.ok(200);
    assert_eq!(renewed["cancel"], json!([id]));
    assert_eq!(worker.post(&format!("{held}/fail"), json!({})).await.ok(200)["state"], "canceled");
}

async fn orders_reach_a_worker(place: Place) {
    let answer =
        place.root.post("/v1/workers", json!({ "queues": [{ "queue": "default", "slots": 2 }] })).await.ok(201);
    let worker = place.root.with("tenure-worker", text(&answer["token"]));
    let itself = format!("/v1/workers/{}", answer["worker"]);
    let beat = json!({ "state": "polling", "running": 1 });
    assert_eq!(worker.put(&itself, beat.clone()).await.ok(200)["order"], "work");
    place.root.post(&format!("{itself}/stop"), json!({ "reason": "deploy" })).await.ok(200);
    assert_eq!(worker.put(&itself, beat).await.ok(200)["order"], "stop");
    // What a claim hears may be a second old.
    place.enqueue(json!({ "kind": "a" })).await;
    let told = claim(&worker, 1).await;
    assert_eq!((&told["order"], &told["lease"]), (&json!("stop"), &Value::Null));
    let stranger = place.worker().await;
    assert_eq!(stranger.put(&itself, json!({ "state": "idle" })).await.code(403), "forbidden");
    assert_eq!(worker.put(&itself, json!({ "state": "asleep" })).await.code(422), "invalid");
    let nobody = place.root.post("/v1/workers/999999/quiet", json!({})).await;
    assert_eq!(nobody.code(404), "not_found");
    assert_eq!(place.root.post(&format!("{itself}/dance"), json!({})).await.code(422), "invalid");
}

async fn a_worker_that_says_goodbye_gives_everything_back(place: Place) {
    let answer = place.root.post("/v1/workers", json!({})).await.ok(201);
    let worker = place.root.with("tenure-worker", text(&answer["token"]));
    let id = place.enqueue(json!({ "kind": "a" })).await;
    hold(&worker).await;
    assert_eq!(worker.delete(&format!("/v1/workers/{}", answer["worker"])).await.status, 204);
    assert_eq!(state(&place, &id).await, "queued");
    assert_eq!(claim(&worker, 1).await["order"], "stop", "who has parted gets nothing any more");
    assert_eq!(state(&place, &id).await, "queued");
    assert_eq!(place.root.get("/v1/workers").await.ok(200)["items"], json!([]), "it is gone");
    assert_eq!(place.root.get("/v1/workers?all=true").await.ok(200)["items"][0]["state"], "stopped");
}

async fn a_gate_gives_tokens_or_says_when(place: Place) {
    let rule = json!({ "rate": "1/s", "burst": 2 });
    place.root.put("/v1/rules/source:ebay", rule).await.ok(200);
    let worker = place.worker().await;
    place.enqueue(json!({ "kind": "a" })).await;
    let (ungated, _) = hold(&worker).await;
    assert_eq!(worker.post(&format!("{ungated}/acquire"), json!({ "tokens": 1 })).await.code(409), "conflict");
    place.enqueue(json!({ "kind": "a", "gate": "source:ebay" })).await;
    let (held, _) = hold(&worker).await;
    let asked = worker.post(&format!("{held}/acquire"), json!({ "tokens": 2 })).await.ok(200);
    assert!(asked["wait_ms"].as_u64().is_some_and(|wait| wait > 0), "{asked}");
    let greedy = worker.post(&format!("{held}/acquire"), json!({ "tokens": 3 })).await;
    assert_eq!((greedy.code(422), &greedy.body["field"]), ("invalid", &json!("tokens")));
    let limit = "the gate gives at most its burst of 2 at once: ask for less, or raise its burst";
    assert_eq!(greedy.body["detail"], format!("tokens `3` is refused: {limit}"));
    place.root.post("/v1/gates/source:ebay/pause", json!({ "for_ms": 90_000 })).await.ok(200);
    let closed = worker.post(&format!("{held}/acquire"), json!({ "tokens": 1 })).await.ok(200);
    assert_eq!((&closed["wait_ms"], &closed["snooze_ms"]), (&Value::Null, &json!(90_000)));
    let word = json!({ "gate": { "hold_ms": 5_000, "health": "unhealthy" } });
    worker.post(&format!("{held}/complete"), word).await.ok(200);
    let gate = place.root.get("/v1/gates/source:ebay").await.ok(200);
    assert_eq!(gate["inside"], 0);
}

async fn bad_reports_are_refused_by_name(place: Place) {
    let worker = place.worker().await;
    let id = place.enqueue(json!({ "kind": "a" })).await;
    let (held, _) = hold(&worker).await;
    for (verb, body, field) in [
        ("complete", r#"{"usage":[1]}"#.to_owned(), "usage"),
        ("complete", r#"{"usage":{"bytes":"many"}}"#.to_owned(), "usage"),
        ("complete", r#"{"result":"\u0000"}"#.to_owned(), "result"),
        ("complete", r#"{"result":1e100000}"#.to_owned(), "result"),
        ("complete", format!("{{\"result\":\"{}\"}}", "x".repeat(1 << 20)), "result"),
        ("complete", r#"{"resultat":1}"#.to_owned(), "resultat"),
        ("fail", r#"{"class":"odd"}"#.to_owned(), "class"),
        ("fail", r#"{"details":"\ud800"}"#.to_owned(), "details"),
        ("snooze", r#"{"delay_ms":-1}"#.to_owned(), "body"),
        ("release", r#"{"gate":{"health":"fine"}}"#.to_owned(), "health"),
        ("acquire", r#"{"tokens":0}"#.to_owned(), "tokens"),
    ] {
        let reply = worker.call("POST", &format!("{held}/{verb}"), Some(body.clone().into_bytes())).await;
        assert_eq!(
            (reply.code(422), reply.body["field"].as_str()),
            ("invalid", Some(field)),
            "{verb} {}: {}",
            &body[..body.len().min(60)],
            reply.text
        );
    }
    assert_eq!(state(&place, &id).await, "running");
    let long = "ü\u{1}".repeat(50_000);
    let failed = json!({ "message": long, "details": "x".repeat(20_000) });
    assert_eq!(worker.post(&format!("{held}/fail"), failed).await.ok(200)["state"], "retryable");
}
