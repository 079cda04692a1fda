//! Queues, gates, runs, schedules, tenants, figures: each is seen and changed.

use serde_json::{Value, json};
use tenure_core::name::TenantName;
use tenure_core::{JobId, Json, KindName, NewJob, RunId};
use tenure_store::operate::Word;
use tenure_store::run::{Members, NewPartition, NewRun};
use tenure_store::schedule::{SCHEDULES_MAX, SetSchedule};

use crate::http::text;
use crate::on_each_store;
use crate::place::Place;

on_each_store! {
    queues_are_made_paused_and_limited,
    a_queue_tells_how_many_slots_of_live_workers_serve_it,
    gates_and_rules_are_set_and_operated,
    schedules_are_set_paused_and_removed,
    runs_are_listed_and_canceled_and_their_partitions_go_on,
    runs_are_created_added_to_and_sealed,
    figures_and_the_journal_are_the_operators,
    tenants_are_listed_and_limited,
    usage_is_summed_and_a_tenant_sees_its_own,
    figures_are_summed_over_time_and_a_tenant_sees_its_own,
}

async fn queues_are_made_paused_and_limited(place: Place) {
    let made = place.root.put("/v1/queues/mail", json!({ "lease_ttl_ms": 5_000, "fair": true })).await.ok(200);
    assert_eq!((&made["lease_ttl_ms"], &made["fair"], &made["quota"]), (&json!(5_000), &json!(true), &Value::Null));
    let paused = place.root.post("/v1/queues/mail/pause", json!({ "reason": "outage" })).await.ok(200);
    assert_eq!((&paused["paused"], &paused["lease_ttl_ms"]), (&json!(true), &json!(5_000)));
    place.enqueue(json!({ "kind": "a", "queue": "mail" })).await;
    let worker = place.worker().await;
    let claim = json!({ "queues": ["mail"], "limit": 1, "wait_ms": 0 });
    assert_eq!(worker.post("/v1/leases", claim.clone()).await.ok(200)["lease"], Value::Null);
    place.root.post("/v1/queues/mail/resume", json!({})).await.ok(200);
    assert_eq!(worker.post("/v1/leases", claim).await.ok(200)["lease"]["ttl_ms"], 5_000);
    assert_eq!(place.root.get("/v1/queues/mail").await.ok(200)["running"], 1);
    assert_eq!(place.root.get("/v1/queues/none").await.code(404), "not_found");
    for act in ["pause", "resume"] {
        assert_eq!(place.root.post(&format!("/v1/queues/none/{act}"), json!({})).await.code(404), "not_found");
        assert_eq!(place.root.get("/v1/queues/none").await.code(404), "not_found", "{act} made it");
    }
    assert_eq!(place.root.put("/v1/queues/mail", json!({ "lease_ttl_ms": 1 })).await.code(422), "invalid");
    assert_eq!(place.root.put("/v1/queues/a%20b", json!({})).await.code(422), "invalid");
    let odd = place.root.put("/v1/queues/a%2Fb:c", json!({})).await.ok(200);
    assert_eq!(odd["name"], "a/b:c", "a name with a slash is one segment");
}

async fn a_queue_tells_how_many_slots_of_live_workers_serve_it(place: Place) {
    place.enqueue(json!({ "kind": "a", "queue": "mail" })).await;
    let slots = async || place.root.get("/v1/queues/mail").await.ok(200)["slots"].clone();
    assert_eq!(slots().await, 0, "its due job waits until a worker starts");
    let body = json!({ "queues": [{ "queue": "mail", "slots": 2 }, { "queue": "other", "slots": 9 }] });
    let worker = place.root.post("/v1/workers", body).await.ok(201)["worker"].clone();
    assert_eq!(slots().await, 2);
    let queues = place.root.get("/v1/queues").await.ok(200);
    let mail = queues["items"].as_array().unwrap().iter().find(|queue| queue["name"] == "mail").unwrap();
    assert_eq!((&mail["slots"], &mail["due"]), (&json!(2), &json!(1)));
    place.root.post(&format!("/v1/workers/{worker}/quiet"), json!({})).await.ok(200);
    assert_eq!(slots().await, 0, "a quiet worker claims nothing");
}

async fn gates_and_rules_are_set_and_operated(place: Place) {
    let rule = json!({ "rate": "30/m", "breaker_failures": 5, "breaker_cooldown_ms": 300_000 });
    let set = place.root.put("/v1/rules/source:*", rule).await.ok(200);
    assert_eq!((&set["pattern"], &set["rate"], &set["weight"]), (&json!("source:*"), &json!("30/m"), &json!(1)));
    let tripped = place.root.post("/v1/gates/source:ebay/trip", json!({ "for_ms": 60_000 })).await.ok(200);
    assert_eq!(tripped["closed"]["why"], "open");
    assert_eq!(place.root.post("/v1/gates/source:ebay/reset", json!({})).await.ok(200)["closed"], Value::Null);
    assert_eq!(place.root.post("/v1/gates/source:ebay/open", json!({})).await.code(422), "invalid");
    let gates = place.root.get("/v1/gates?pattern=source:*").await.ok(200);
    assert_eq!(gates["items"][0]["name"], "source:ebay");
    assert_eq!(place.root.get("/v1/rules").await.ok(200)["items"].as_array().unwrap().len(), 1);
    for bad in
        [json!({ "rate": "often" }), json!({ "burst": 1 }), json!({ "breaker_failures": 1 }), json!({ "weight": 0 })]
    {
        assert_eq!(place.root.put("/v1/rules/x", bad.clone()).await.code(422), "invalid", "{bad}");
    }
    let changed = place.root.patch("/v1/rules/source:*", json!({ "rate": "60/m", "concurrency": 4 })).await.ok(200);
    let whole = json!({
        "pattern": "source:*", "rate": "60/m", "burst": 1, "cost": 1, "concurrency": 4, "breaker_failures": 5,
        "breaker_cooldown_ms": 300_000, "weight": 1,
    });
    assert_eq!(changed, whole, "what is not named stays");
    let cleared = json!({ "rate": null, "breaker_failures": null, "reason": "month end" });
    let cleared = place.root.patch("/v1/rules/source:*", cleared).await.ok(200);
    assert_eq!(
        [&cleared["rate"], &cleared["burst"], &cleared["breaker_failures"], &cleared["concurrency"]],
        [&Value::Null, &Value::Null, &Value::Null, &json!(4)]
    );
    assert_eq!(place.root.get("/v1/rules").await.ok(200)["items"], json!([cleared]));
    let row = &place.root.get("/v1/audit?event=gate_ruled&limit=1").await.ok(200)["items"][0];
    assert_eq!((&row["reason"], &row["details"]["old"]["rate"]), (&json!("month end"), &json!("60/m")));
    assert_eq!(row["details"]["new"], json!({ "concurrency": 4, "weight": 1 }));
    for (bad, field) in [
        (json!({ "burst": 3 }), "burst"),
        (json!({ "breaker_failures": 3 }), "breaker_failures"),
        (json!({ "concurrency": 0 }), "concurrency"),
        (json!({ "rate": "often" }), "rate"),
        (json!({ "speed": 3 }), "speed"),
    ] {
        let refused = place.root.patch("/v1/rules/source:*", bad.clone()).await;
        assert_eq!((refused.code(422), &refused.body["field"]), ("invalid", &json!(field)), "{bad}");
    }
    let first = place.root.patch("/v1/rules/shop", json!({ "concurrency": 2 })).await.ok(200);
    assert_eq!(
        (&first["pattern"], &first["concurrency"]),
        (&json!("shop"), &json!(2)),
        "a pattern without a rule gets one"
    );
    assert_eq!(place.root.delete("/v1/rules/shop").await.status, 204);
    assert_eq!(place.root.delete("/v1/rules/source:*").await.status, 204);
    assert_eq!(place.root.get("/v1/gates/never-seen").await.code(404), "not_found");
}

async fn schedules_are_set_paused_and_removed(place: Place) {
    let body = json!({ "cron": "0 3 * * *", "zone": "Europe/Berlin", "kind": "report", "payload": { "full": true } });
    let set = place.root.put("/v1/schedules/nightly", body).await.ok(200);
    assert_eq!(
        (&set["cron"], &set["zone"], &set["paused"]),
        (&json!("0 3 * * *"), &json!("Europe/Berlin"), &json!(false))
    );
    assert!(set["next_at"].is_string());
    let paused = place.root.post("/v1/schedules/nightly/pause", json!({ "reason": "month end" })).await.ok(200);
    assert_eq!((&paused["paused"], &paused["pause_reason"]), (&json!(true), &json!("month end")));
    place.root.post("/v1/schedules/nightly/resume", json!({})).await.ok(200);
    let shop = place.key(Some("acme"), "read,operate,enqueue").await;
    assert_eq!(shop.get("/v1/schedules/nightly").await.code(404), "not_found");
    place.root.put("/v1/queues/mail", json!({})).await.ok(200);
    let own = json!({ "cron": "@hourly", "kind": "sync", "queue": "mail" });
    assert_eq!(shop.put("/v1/schedules/own", own).await.ok(200)["tenant"], "acme");
    let made_up = json!({ "cron": "@hourly", "kind": "sync", "queue": "made-up" });
    assert_eq!(shop.put("/v1/schedules/own", made_up).await.code(422), "invalid");
    assert_eq!(shop.get("/v1/schedules").await.ok(200)["items"].as_array().unwrap().len(), 1);
    assert_eq!(place.root.get("/v1/schedules?limit=1").await.ok(200)["items"].as_array().unwrap().len(), 1);
    for bad in [
        json!({ "cron": "often", "kind": "a" }),
        json!({ "cron": "@daily" }),
        json!({ "cron": "@daily", "kind": "a", "zone": "Mars" }),
    ] {
        assert_eq!(place.root.put("/v1/schedules/x", bad.clone()).await.code(422), "invalid", "{bad}");
    }
    assert_eq!(place.root.delete("/v1/schedules/nightly").await.status, 204);
    assert_eq!(place.root.delete("/v1/schedules/nightly").await.code(404), "not_found");
}

fn new_job(place: &Place, n: u8) -> NewJob {
    let id = JobId::from_parts(place.clock.now(), [n; 10]);
    NewJob::new(id, KindName::new("page").unwrap(), Json::from_store("{}"))
}

async fn runs_are_listed_and_canceled_and_their_partitions_go_on(place: Place) {
    let tenant: TenantName = "acme".parse().unwrap();
    let run: RunId = "01933c5e-7b5a-7000-8000-0000000000aa".parse().unwrap();
    let mut job = new_job(&place, 1);
    job.tenant = tenant.clone();
    let partition = NewPartition { name: "a-f".parse().unwrap(), job, offset: 0, limit: 30, expected: None };
    let request = NewRun {
        id: RunId::from_uuid(uuid::Uuid::from_bytes(
            *JobId::from_parts(place.clock.now(), [5; 10]).as_uuid().as_bytes(),
        )),
        tenant,
        owner: Some("somebody".into()),
        source: None,
        members: Members { partitions: vec![partition], items: Vec::new() },
        sealed: true,
        consolidate: None,
        fail_fast: false,
        tolerated: 0,
        deadline: None,
    };
    let id = request.id;
    place.store.create_run(request).await.expect("create");
    let shop = place.key(Some("acme"), "read,operate").await;
    let rival = place.key(Some("rival"), "read,operate").await;
    assert_eq!(shop.get("/v1/runs?open=true").await.ok(200)["items"][0]["id"], json!(id.to_string()));
    assert_eq!(rival.get("/v1/runs").await.ok(200)["items"], json!([]));
    assert_eq!(shop.get(&format!("/v1/runs/{id}")).await.ok(200)["total"], 1);
    assert_eq!(rival.get(&format!("/v1/runs/{id}")).await.code(404), "not_found");
    assert_eq!(shop.get(&format!("/v1/runs/{run}")).await.code(404), "not_found");
    let partitions = shop.get(&format!("/v1/partitions?run={id}&active=true")).await.ok(200);
    assert_eq!(partitions["items"][0]["name"], "a-f");
    let resume = format!("/v1/runs/{id}/partitions/a-f/resume");
    assert_eq!(shop.post(&resume, json!({})).await.code(409), "conflict");
    let reset = format!("/v1/runs/{id}/partitions/a-f/reset");
    let refused = rival.post(&reset, json!({ "offset": 0 })).await;
    assert_eq!(refused.code(404), "not_found");
    assert_eq!(shop.post(&format!("/v1/runs/{id}/cancel"), json!({})).await.ok(200)["canceled"], "now");
    assert_eq!(shop.post(&format!("/v1/runs/{id}/cancel"), json!({})).await.ok(200)["run"]["state"], "canceled");
}

async fn runs_are_created_added_to_and_sealed(place: Place) {
    let shop = place.key(Some("acme"), "enqueue,read").await;
    place.root.put("/v1/queues/default", json!({})).await.ok(200);
    let body = json!({
        "owner": "import 7", "sealed": false,
        "items": [{ "kind": "link", "payload": 1 }, { "kind": "link", "payload": 2 }],
    });
    let run = shop.post("/v1/runs", body).await.ok(201);
    assert_eq!((&run["tenant"], &run["state"], &run["sealed"]), (&json!("acme"), &json!("queued"), &json!(false)));
    let path = format!("/v1/runs/{}", text(&run["id"]));
    let more = json!({ "partitions": [{ "name": "a-f", "job": { "kind": "page" }, "limit": 30 }] });
    assert_eq!(shop.post(&format!("{path}/members"), more).await.ok(200), json!({ "members": 1, "found": 0 }));
    let sealed = shop.post(&format!("{path}/seal"), json!({ "consolidate": { "kind": "publish" } })).await.ok(200);
    assert_eq!((&sealed["sealed"], &sealed["consolidate_state"]), (&json!(true), &json!("waiting")));
    let late = json!({ "items": [{ "kind": "late" }] });
    assert_eq!(shop.post(&format!("{path}/members"), late).await.code(409), "conflict");
    let jobs = shop.get("/v1/jobs").await.ok(200);
    assert_eq!(jobs["items"].as_array().unwrap().len(), 4, "two items, a page and the consolidate");
    let again = json!({ "id": run["id"], "items": [{ "kind": "link" }] });
    assert_eq!(shop.post("/v1/runs", again).await.ok(200)["id"], run["id"], "a repeated request is the same run");
    let bad = json!({ "items": [{ "kind": "fine" }, { "kind": "not fine" }] });
    let refused = shop.post("/v1/runs", bad).await;
    assert_eq!((refused.code(422), &refused.body["field"]), ("invalid", &json!("items[1].kind")));
    let rival = place.key(Some("rival"), "enqueue,read").await;
    for (verb, body) in [("members", json!({})), ("seal", json!({}))] {
        assert_eq!(rival.post(&format!("{path}/{verb}"), body).await.code(404), "not_found", "{verb}");
    }
}

async fn figures_and_the_journal_are_the_operators(place: Place) {
    place.enqueue(json!({ "kind": "a" })).await;
    let stats = place.root.get("/v1/stats?within=24h&queue=default").await.ok(200);
    assert_eq!((&stats["within_ms"], &stats["queues"][0]["due"]), (&json!(86_400_000), &json!(1)));
    assert_eq!(place.root.get("/v1/stats?within=8d").await.code(422), "invalid");
    place.root.post("/v1/queues/default/pause", json!({})).await.ok(200);
    let newest = place.root.get("/v1/audit?limit=1").await.ok(200);
    assert_eq!(newest["items"][0]["event"], "queue_paused");
    place.store.seal_journal().await.expect("seal");
    let seals = place.root.get("/v1/audit/seals").await.ok(200);
    let no = seals["items"][0]["no"].clone();
    assert_eq!(text(&seals["items"][0]["hash"]).len(), 64);
    let sealed = place.root.get(&format!("/v1/audit/seals/{no}")).await.ok(200);
    assert!(!sealed["items"].as_array().unwrap().is_empty());
    let shop = place.key(Some("acme"), "read,operate,admin,enqueue").await;
    for path in [
        "/v1/stats",
        "/v1/audit",
        "/v1/audit/seals",
        "/v1/queues",
        "/v1/gates",
        "/v1/workers",
        "/v1/tenants",
        "/v1/rules",
    ] {
        assert_eq!(shop.get(path).await.code(403), "forbidden", "{path}");
    }
}

async fn usage_is_summed_and_a_tenant_sees_its_own(place: Place) {
    let worker = place.worker().await;
    for tenant in ["acme", "acme", "rival"] {
        let id = place.enqueue(json!({ "kind": "crawl", "tenant": tenant })).await;
        let claim = json!({ "queues": ["default"], "limit": 1, "wait_ms": 0 });
        let lease = worker.post("/v1/leases", claim).await.ok(200)["lease"]["lease"].clone();
        let usage = json!({ "usage": { "bytes": 512 } });
        worker.post(&format!("/v1/leases/{lease}/jobs/{id}/complete"), usage).await.ok(200);
    }
    let all = place.root.get("/v1/usage").await.ok(200);
    let sums: Vec<(&str, f64)> = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (text(&it["tenant"]), it["amount"].as_f64().unwrap()))
        .collect();
    assert_eq!(sums, [("acme", 1024.0), ("rival", 512.0)]);
    let first = place.root.get("/v1/usage?limit=1").await.ok(200);
    assert_eq!(first["items"], json!([all["items"][0]]));
    let next = format!("/v1/usage?limit=1&cursor={}", text(&first["next"]));
    let last = place.root.get(&next).await.ok(200);
    assert_eq!((&last["items"], &last["next"]), (&json!([all["items"][1]]), &Value::Null));
    assert_eq!(place.root.get("/v1/usage?limit=201").await.code(422), "invalid");
    assert_eq!(place.root.get("/v1/usage?cursor=00").await.code(422), "invalid");
    let shop = place.key(Some("acme"), "read").await;
    let own = shop.get("/v1/usage?within=1d&kind=crawl").await.ok(200);
    assert_eq!((own["items"].as_array().unwrap().len(), &own["items"][0]["attempts"]), (1, &json!(2)));
}

async fn figures_are_summed_over_time_and_a_tenant_sees_its_own(place: Place) {
    let worker = place.worker().await;
    for (tenant, kind) in [("acme", "crawl"), ("acme", "mail"), ("rival", "crawl")] {
        let id = place.enqueue(json!({ "kind": kind, "tenant": tenant })).await;
        place.clock.advance(std::time::Duration::from_secs(15));
        let claim = json!({ "queues": ["default"], "limit": 1, "wait_ms": 0 });
        let lease = worker.post("/v1/leases", claim).await.ok(200)["lease"]["lease"].clone();
        place.clock.advance(std::time::Duration::from_millis(40));
        worker.post(&format!("/v1/leases/{lease}/jobs/{id}/complete"), json!({})).await.ok(200);
    }
    place.store.seal_journal().await.unwrap();
    while place.store.fold_rollups().await.unwrap() > 0 {}
    for within in ["1h", "24h", "7d"] {
        let all = place.root.get(&format!("/v1/figures?within={within}")).await.ok(200);
        let lines = all["items"].as_array().unwrap();
        let claimed: u64 = lines.iter().map(|line| line["claimed"].as_u64().unwrap()).sum();
        assert_eq!((claimed, &lines[0]["queue"], &lines[0]["kind"]), (3, &Value::Null, &Value::Null), "{within}");
    }
    let kinds = place.root.get("/v1/figures?by=kind").await.ok(200);
    let line = &kinds["items"][0];
    assert_eq!((&line["kind"], &line["succeeded"], &line["tenant"]), (&json!("crawl"), &json!(2), &Value::Null));
    assert_eq!(line["run"], json!({ "count": 2, "sum_ms": 80, "p50_ms": 35.0, "p95_ms": 48.5, "p99_ms": 49.7 }));
    assert_eq!((&line["wait"]["count"], &line["wait"]["sum_ms"]), (&json!(2), &json!(30_000)));
    let rival = place.root.get("/v1/figures?by=tenant&tenant=rival&queue=default&kind=crawl").await.ok(200);
    assert_eq!((&rival["items"][0]["tenant"], &rival["items"][0]["claimed"]), (&json!("rival"), &json!(1)));
    let shop = place.key(Some("acme"), "read").await;
    let own = shop.get("/v1/figures?by=tenant").await.ok(200);
    let lines = own["items"].as_array().unwrap();
    assert_eq!((lines.len(), &lines[0]["tenant"], &lines[0]["claimed"]), (1, &json!("acme"), &json!(2)));
    assert_eq!(shop.get("/v1/figures?tenant=rival").await.code(403), "forbidden");
    for bad in ["within=8d", "within=0s", "by=moon", "within=often", "kind=a%20b"] {
        assert_eq!(place.root.get(&format!("/v1/figures?{bad}")).await.code(422), "invalid", "{bad}");
    }
}

async fn tenants_are_listed_and_limited(place: Place) {
    assert_eq!(place.root.put("/v1/tenants/acme", json!({ "quota": 5 })).await.ok(201)["quota"], 5);
    assert_eq!(place.root.put("/v1/tenants/acme", json!({})).await.ok(200)["quota"], 5);
    assert_eq!(place.root.put("/v1/tenants/acme", json!({ "quota": 0 })).await.ok(200)["quota"], Value::Null);
    assert_eq!(place.root.get("/v1/tenants/nobody").await.code(404), "not_found");
    let listed = place.root.get("/v1/tenants?limit=200").await.ok(200);
    assert!(listed["items"].as_array().unwrap().iter().any(|tenant| tenant["name"] == "acme"), "{listed}");
}

/// The refusal names what there is too much of, the limit and the way out; it is no problem that waiting solves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schedule_beyond_a_tenants_limit_is_refused_with_its_own_code() {
    let place = Place::sqlite().await;
    let shop = place.key(Some("acme"), "read,operate,enqueue").await;
    let body = json!({ "cron": "@daily", "kind": "a" });
    shop.put("/v1/schedules/s0", body.clone()).await.ok(200);
    let tenant = "acme".parse().expect("a name");
    let (made, _) = place.store.show_schedule(&tenant, &"s0".parse().expect("a name")).await.expect("show");
    for n in 1..SCHEDULES_MAX {
        let request = SetSchedule {
            tenant: tenant.clone(),
            name: format!("s{n}").parse().expect("a name"),
            timing: made.timing.clone().expect("a timing"),
            template: made.template.clone(),
            word: Word::default(),
        };
        place.store.set_schedule(request).await.expect("set");
    }
    let refused = shop.put("/v1/schedules/more", body.clone()).await;
    assert_eq!(refused.code(409), "limit_reached");
    assert!(refused.text.contains("schedules of tenant `acme`: 1000 is the limit; remove one"), "{}", refused.text);
    assert!(!refused.head.contains("retry-after"), "{}", refused.head);
    assert_eq!(shop.delete("/v1/schedules/s7").await.status, 204);
    shop.put("/v1/schedules/more", body).await.ok(200);
}
