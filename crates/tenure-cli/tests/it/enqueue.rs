//! One job from flags.

use serde_json::json;

use crate::place::Place;

#[test]
fn a_job_is_stored_with_everything_that_was_said() {
    let place = Place::new();
    let id = place.enqueue(&[
        "invoice.send",
        r#"{"order": 12345678901234567890}"#,
        "--queue=mail",
        "--priority=0",
        "--delay=10m",
        "--max-attempts=9",
        "--backoff=fixed 5m",
        "--unique=inv:42",
        "--unique-policy=window:10m",
        "--idempotency-key=key",
        "--tenant=acme",
        "--trace=00-abc",
    ]);
    let job = place.json(&["jobs", "show", &id]);
    for (field, value) in [
        ("state", json!("queued")),
        ("kind", json!("invoice.send")),
        ("queue", json!("mail")),
        ("tenant", json!("acme")),
        ("priority", json!(0)),
        ("max_attempts", json!(9)),
        ("backoff", json!("fixed 5m")),
        ("trace", json!("00-abc")),
        ("attempts", json!([])),
    ] {
        assert_eq!(job[field], value, "{field}");
    }
    assert_eq!(job["payload"]["order"], json!(12_345_678_901_234_567_890_u64));
    assert!(job["run_at"].as_str() > job["created_at"].as_str());
}

#[test]
fn a_job_with_nothing_but_a_kind_has_every_default() {
    let place = Place::new();
    let id = place.enqueue(&["hello"]);
    let job = place.json(&["jobs", "show", &id]);
    assert_eq!((&job["queue"], &job["tenant"], &job["payload"]), (&json!("default"), &json!("default"), &json!({})));
    assert_eq!((&job["priority"], &job["max_attempts"]), (&json!(2), &json!(5)));
}

#[test]
fn the_same_unique_key_finds_the_first_job() {
    let place = Place::new();
    let first = place.json(&["enqueue", "crawl", "--unique=example.org"]);
    let second = place.json(&["enqueue", "crawl", "--unique=example.org"]);
    assert_eq!((&first["answer"], &second["answer"]), (&json!("created"), &json!("found")));
    assert_eq!((&first["id"], &second["state"]), (&second["id"], &json!("queued")));
    let ran = place.run(&["enqueue", "crawl", "--unique=example.org"]);
    assert!(ran.out.contains("Found job") && ran.out.contains("nothing new was stored"), "{}", ran.out);
}

#[test]
fn the_same_id_is_the_same_job() {
    let place = Place::new();
    let id = place.enqueue(&["hello"]);
    assert_eq!(place.json(&["enqueue", "hello", "--id", &id])["answer"], "found");
}

#[test]
fn the_same_idempotency_key_with_another_body_is_refused() {
    let place = Place::new();
    place.enqueue(&["pay", "{\"cents\":1}", "--idempotency-key=order 7"]);
    let ran = place.run(&["enqueue", "pay", "{\"cents\":2}", "--idempotency-key=order 7", "--json"]);
    assert_eq!((ran.code, &ran.error()["code"]), (1, &json!("conflict")), "{ran:?}");
    assert!(!ran.err.contains("cents"), "{}", ran.err);
}

#[test]
fn a_payload_comes_from_standard_input_too() {
    let place = Place::new();
    let ran = place.run_with(&["enqueue", "import", "-", "--json"], b"[1,2,3]\n");
    let id = serde_json::from_str::<serde_json::Value>(&ran.out).unwrap()["id"].as_str().unwrap().to_owned();
    assert_eq!(place.json(&["jobs", "show", &id])["payload"], json!([1, 2, 3]));
}

#[test]
fn numbers_and_dates_may_be_payloads_and_flags() {
    let place = Place::new();
    let id = place.enqueue(&["add", "-1", "--at", "2031-01-01T00:00:00Z"]);
    let job = place.json(&["jobs", "show", &id]);
    assert_eq!((&job["payload"], &job["run_at"]), (&json!(-1), &json!("2031-01-01T00:00:00Z")));
}
