//! F47: whatever is sent, the answer is a typed 4xx, nothing is stored, and nothing is said twice.

use serde_json::{Value, json};

use crate::conform::operations;
use crate::on_each_store;
use crate::place::Place;

on_each_store! {
    hostile_bodies_are_refused_on_every_route,
    hostile_queries_are_refused,
    payloads_are_never_repeated_to_anybody,
    a_body_of_very_many_members_costs_what_its_first_one_does,
    a_list_is_no_object,
}

/// Bodies that have stopped others.
fn bodies() -> Vec<Vec<u8>> {
    let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    let mut bodies: Vec<String> = [
        "",
        "null",
        "[]",
        "1",
        "\"x\"",
        "{",
        "}",
        "{]",
        "{\"a\"}",
        "nul",
        "{\"kind\":}",
        "{} {}",
        "\u{feff}{}",
        "{\"kind\":\"a\",\"kind\":\"b\"}",
        "{\"kind\":1}",
        "{\"kind\":null}",
        "{\"kind\":[]}",
        "{\"kind\":\"a\",\"priority\":1e99}",
        "{\"kind\":\"a\",\"priority\":\"0\"}",
        "{\"kind\":\"a\",\"payload\":\"\\u0000\"}",
        "{\"kind\":\"a\",\"payload\":\"\\ud800\"}",
        "{\"kind\":\"a\",\"payload\":1e100000}",
        "{\"kind\":\"a\",\"payload\":-1e400}",
        "{\"kind\":\"a\",\"max_attempts\":99999999999999999999}",
        "{\"kind\":\"a\",\"delay\":\"-1s\"}",
        "{\"kind\":\"a\",\"delay_ms\":18446744073709551615}",
        "{\"kind\":\"a\",\"at\":\"9999-99-99\"}",
        "{\"kind\":\"a\",\"id\":\"x\"}",
        "{\"kind\":\"a\",\"id\":\"00000000-0000-0000-0000-000000000000\"}",
        "{\"kind\":\"a\",\"tenant\":\"a b\"}",
        "{\"kind\":\"a'; drop table job\"}",
        "{\"kind\":\"a\",\"queue\":\"\"}",
        "{\"kind\":\"a\",\"unique\":\"\"}",
        "{\"kind\":\"a\",\"unique_policy\":\"forever\"}",
        "{\"reason\":7}",
        "{\"reason\":\"\\u0000\"}",
        "{\"force\":\"yes\"}",
        "{\"__proto__\":{}}",
        "{\"kind\":\"a\",\"backoff\":\"exponential 1m\"}",
        "NaN",
        "Infinity",
        "01",
        "+1",
    ]
    .map(str::to_owned)
    .to_vec();
    bodies.push(format!("{{\"kind\":\"a\",\"payload\":{}}}", deep(65)));
    bodies.push(format!("{{\"kind\":\"a\",\"payload\":{}}}", deep(100_000)));
    bodies.push(deep(100_000));
    bodies.push(format!("{{\"kind\":\"{}\"}}", "a".repeat(101)));
    bodies.push(format!("{{\"kind\":\"a\",\"payload\":\"{}\"}}", "x".repeat(1 << 20)));
    bodies.push(format!("{{\"reason\":\"{}\"}}", "x".repeat(501)));
    let mut bodies: Vec<Vec<u8>> = bodies.into_iter().map(String::into_bytes).collect();
    bodies.push(vec![0xff, 0xfe, b'{']);
    bodies.push(b"{\"kind\":\"\xff\"}".to_vec());
    bodies
}

async fn hostile_bodies_are_refused_on_every_route(place: Place) {
    let worker = place.worker().await;
    let id = place.enqueue(json!({ "kind": "bait" })).await;
    place.root.post(&format!("/v1/jobs/{id}/cancel"), json!({})).await.ok(200);
    let mut sent = 0;
    for (method, template, _) in operations().into_iter().filter(|(method, ..)| method != "GET" && method != "DELETE") {
        let path = ["{id}", "{job}"].iter().fold(template.clone(), |path, hole| path.replace(hole, &id));
        let holes =
            ["lease", "worker", "order", "queue", "gate", "act", "pattern", "schedule", "tenant", "key", "partition"];
        let path = holes.iter().fold(path, |path, hole| path.replace(&format!("{{{hole}}}"), "1"));
        for body in bodies() {
            let reply = worker.call(&method, &path, Some(body.clone())).await;
            let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
            assert!(reply.status < 500, "{method} {template} {shown}: {} {}", reply.status, reply.text);
            sent += 1;
        }
        for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
            let reply = worker.with("content-type", kind).call(&method, &path, Some(b"{\"a\":1}".to_vec())).await;
            assert_eq!(reply.code(415), "unsupported_media_type", "{method} {template} {kind}");
        }
    }
    assert!(sent > 1_000, "{sent}");
    // None of these was a job.
    let stored = place.root.get("/v1/jobs").await.ok(200);
    assert!(stored["items"].as_array().unwrap().iter().all(|job| job["kind"] == "bait"), "{stored}");
}

async fn hostile_queries_are_refused(place: Place) {
    let lists: Vec<String> = operations()
        .into_iter()
        .filter(|(method, path, _)| method == "GET" && !path.contains('{'))
        .map(|(_, path, _)| path)
        .collect();
    let bad = [
        "limit=-1",
        "limit=1e9",
        "limit=99999999999999999999",
        "limit=",
        "limit=1&limit=2",
        "cursor=",
        "cursor=zz",
        "cursor=%00",
        "cursor=6a6f6273",
        "cursor=6a6f627320782720",
        "order_by=id;drop%20table%20job",
        "sort=payload",
        "%00=1",
        "a=%ff",
        "=",
        "&&&",
        "tenant=%27%20or%201=1",
        "tenant=",
        "state=%27",
        "queue=%00",
        "kind=a%20b",
        "stuck_for=-1s",
        "stuck_for=9999999999999d",
        "run=x",
        "within=0s",
    ];
    for path in lists {
        for query in bad {
            let reply = place.root.call("GET", &format!("{path}?{query}"), None).await;
            assert!(reply.status < 500, "{path}?{query}: {}", reply.text);
            if query.starts_with("order_by") || query.starts_with("sort") {
                let open = path.starts_with("/v1/health")
                    || path.starts_with("/v1/problems")
                    || ["/metrics", "/v1/queues", "/v1/rules"].contains(&path.as_str());
                assert_eq!(reply.status == 422, !open, "{path}?{query}: {}", reply.text);
            }
        }
    }
}

async fn payloads_are_never_repeated_to_anybody(place: Place) {
    let canary = "canary-4711";
    for body in [
        format!("{{\"kind\":\"a\",\"payload\":{{\"x\":\"{canary}\"}},\"priority\":9}}"),
        format!("{{\"kind\":\"a\",\"payload\":\"{canary}\\u0000\"}}"),
        format!("{{\"kind\":\"a\",\"payload\":[{canary}]}}"),
        format!("[\"{canary}\"]"),
        format!("\"{canary}\""),
        format!("{{\"jobs\":\"{canary}\"}}"),
        format!("{{\"jobs\":[\"{canary}\"]}}"),
        format!("{{\"items\":\"{canary}\"}}"),
    ] {
        for path in ["/v1/jobs", "/v1/jobs/batch", "/v1/runs"] {
            let reply = place.root.call("POST", path, Some(body.clone().into_bytes())).await;
            assert!((400..500).contains(&reply.status), "{body}: {}", reply.status);
            assert!(!reply.text.contains(canary), "{path} {body}: {}", reply.text);
        }
    }
    let stored: Value = place.root.get("/v1/jobs").await.ok(200);
    assert_eq!(stored["items"], json!([]));
}

/// Each of them is refused at its first stranger; a quadratic search would take minutes for each.
async fn a_body_of_very_many_members_costs_what_its_first_one_does(place: Place) {
    let members: Vec<String> = (0..400_000).map(|n| format!("\"m{n}\":1")).collect();
    let job = format!("{{{}}}", members.join(","));
    let list = format!("{{\"jobs\":[{}0]}}", "0,".repeat(3_000_000));
    for (path, body) in
        [("/v1/jobs", job.clone()), ("/v1/jobs/batch", format!("{{\"jobs\":[{job}]}}")), ("/v1/jobs/batch", list)]
    {
        for _ in 0..5 {
            let reply = place.root.call("POST", path, Some(body.clone().into_bytes())).await;
            assert_eq!(reply.code(422), "invalid", "{}", &reply.text[..reply.text.len().min(200)]);
        }
    }
}

async fn a_list_is_no_object(place: Place) {
    let id = place.enqueue(json!({ "kind": "a" })).await;
    let reply = place.root.call("POST", &format!("/v1/jobs/{id}/cancel"), Some(b"[true,\"why\"]".to_vec())).await;
    assert_eq!(reply.code(400), "malformed");
    assert_eq!(place.root.get(&format!("/v1/jobs/{id}")).await.ok(200)["state"], "queued");
}
