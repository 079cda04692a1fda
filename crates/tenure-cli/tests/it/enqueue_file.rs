//! Many jobs from JSON lines.

use std::fmt::Write;

use serde_json::json;

use crate::place::Place;

fn lines(count: usize) -> String {
    (1..=count).fold(String::new(), |mut text, n| {
        writeln!(text, r#"{{"kind":"k","payload":{{"n":{n}}}}}"#).unwrap();
        text
    })
}

fn stored(place: &Place) -> u64 {
    let queues = place.json(&["queues", "list"]);
    queues.as_array().unwrap().iter().map(|q| q["due"].as_u64().unwrap() + q["scheduled"].as_u64().unwrap()).sum()
}

#[test]
fn every_line_is_a_job() {
    let place = Place::new();
    place.write("jobs.jsonl", format!("\u{feff}{}\r\n\n  \n{}", lines(1).trim_end(), lines(2_499).trim_end()));
    let ran = place.run(&["enqueue", "--file", "jobs.jsonl"]);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "Stored 2500 jobs.\n", ""));
    assert_eq!(stored(&place), 2_500);
    // Newest first is last line first: jobs of one file run in its order.
    let newest = place.json(&["jobs", "list", "--limit=200"]);
    for (n, job) in newest.as_array().unwrap().iter().enumerate().step_by(50) {
        let shown = place.json(&["jobs", "show", job["id"].as_str().unwrap()]);
        assert_eq!(shown["payload"]["n"], 2_499 - n);
    }
}

#[test]
fn standard_input_flags_and_found_jobs_work_together() {
    let place = Place::new();
    let input = r#"{"kind":"a","unique":"x"}
        {"kind":"a","unique":"x","queue":"other"}
        {"kind":"b","delay":"1h"}"#;
    let ran = place.run_with(&["enqueue", "--file", "-", "--queue=mail", "--priority=1", "--json"], input.as_bytes());
    assert_eq!(serde_json::from_str::<serde_json::Value>(&ran.out).unwrap(), json!({ "created": 2, "found": 1 }));
    let jobs = place.json(&["jobs", "list", "--queue=mail"]);
    assert!(jobs.as_array().unwrap().iter().all(|job| job["priority"] == 1), "{jobs}");
    assert_eq!(stored(&place), 2);
}

#[test]
fn a_bad_line_stops_before_its_batch_and_says_where_to_go_on() {
    let place = Place::new();
    place.write("jobs.jsonl", format!("{}{{\"kind\":\"k\",\"priority\":7}}\n", lines(1_200)));
    let ran = place.run(&["enqueue", "--file", "jobs.jsonl"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    for part in ["jobs.jsonl line 1201", "priority", "`7`", "1000 jobs were stored before", "tail -n +1001 jobs.jsonl"]
    {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    assert_eq!(stored(&place), 1_000);
}

#[test]
fn all_bad_lines_of_a_batch_are_told_at_once_and_nothing_is_stored() {
    let place = Place::new();
    let input = "{\"kind\":\"k\"}\nnot json\n{\"kind\":\"k\",\"prio\":1}\n{\"payload\":{\"secret\":1}}\n\
                 {\"kind\":\"k\",\"payload\":\"secret\\u0000\"}\n";
    let ran = place.run_with(&["enqueue", "--file", "-", "--json"], input.as_bytes());
    let error = ran.error();
    assert_eq!((ran.code, &error["code"], &error["stored"]), (2, &json!("invalid_line"), &json!(0)), "{ran:?}");
    let found: Vec<_> =
        error["lines"].as_array().unwrap().iter().map(|l| (l["line"].clone(), l["field"].clone())).collect();
    let expected = [(2, json!(null)), (3, json!("prio")), (4, json!("kind")), (5, json!("payload"))];
    assert_eq!(found, expected.map(|(line, field)| (json!(line), field)));
    assert!(!ran.err.contains("secret"), "{}", ran.err);
    assert_eq!(stored(&place), 0);
}

#[test]
fn a_refused_batch_names_its_lines() {
    let place = Place::new();
    place.enqueue(&["pay", "{\"cents\":1}", "--idempotency-key=order 7"]);
    place.write("pay.jsonl", "{\"kind\":\"pay\",\"payload\":{\"cents\":2},\"idempotency_key\":\"order 7\"}\n");
    let ran = place.run(&["enqueue", "--file", "pay.jsonl"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("pay.jsonl lines 1 to 1 were not stored"), "{}", ran.err);
    assert!(!ran.err.contains("cents"), "{}", ran.err);
}

#[test]
fn lines_that_are_no_text_or_too_long_are_refused() {
    let place = Place::new();
    let long = format!("{{\"kind\":\"k\",\"payload\":\"{}\"}}\n{{\"kind\":\"k\"}}\n", "x".repeat(3 << 20));
    for (input, part) in
        [(b"{\"kind\":\"\xff\"}\n".to_vec(), "line 1: it is not UTF-8"), (long.into_bytes(), "line 1: it is longer")]
    {
        let ran = place.run_with(&["enqueue", "--file", "-"], &input);
        assert_eq!(ran.code, 2);
        assert!(ran.err.contains(part) && ran.err.len() < 500, "{}", ran.err);
    }
}

#[test]
fn an_empty_file_stores_nothing() {
    let place = Place::new();
    assert_eq!(place.run_with(&["enqueue", "--file", "-"], b"\n\n").out, "Stored 0 jobs.\n");
}
