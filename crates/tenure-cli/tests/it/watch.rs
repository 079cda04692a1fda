//! A live view tells each change once; one job is followed until it ends.

use std::time::Duration;

use serde_json::{Value, json};
use tenure_store::lease::Ending;

use crate::bench::{Bench, error};
use crate::following::Following;
use crate::place::Place;

fn done() -> Ending {
    Ending::Succeeded { result: None, usage: None }
}

#[test]
fn each_change_of_queues_and_jobs_is_a_json_line() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let watch = Following::start(&place, &["jobs", "watch", "--every=100ms", "--json"]);
    let empty = watch.json(|_| true);
    assert_eq!((&empty["queues"], &empty["jobs"]), (&json!([]), &json!([])));
    let id = bench.enqueue(1);
    let counts = |look: &Value| (look["queues"][0]["due"].clone(), look["queues"][0]["running"].clone());
    let queued = watch.json(|look| counts(look) == (json!(1), json!(0)));
    assert_eq!((&queued["jobs"][0]["id"], &queued["jobs"][0]["state"]), (&json!(id.to_string()), &json!("queued")));
    assert!(queued["queues"][0]["oldest_due"].is_string(), "{queued}");
    let claimed = bench.claim();
    let running = watch.json(|look| counts(look) == (json!(0), json!(1)));
    assert_eq!((&running["jobs"][0]["state"], &running["jobs"][0]["locked_by"]), (&json!("running"), &json!("ops")));
    bench.end(&claimed, id, done());
    watch.json(|look| counts(look) == (json!(0), json!(0)) && look["jobs"][0]["state"] == "succeeded");
    place.json(&["queues", "pause", "default"]);
    watch.json(|look| look["queues"][0]["paused"] == true);
    assert_eq!(watch.interrupt(), Some(0));
}

#[test]
fn without_a_terminal_each_change_is_a_line_for_people() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let id = bench.enqueue(1).to_string();
    let watch = Following::start(&place, &["jobs", "watch", "--every=100ms"]);
    watch.line(|line| line.contains("queue default: 1 due, 0 scheduled, 0 running, oldest due for 10m"));
    watch.line(|line| line.contains(&id) && line.contains("mail.send  queued"));
    let claimed = bench.claim();
    watch.line(|line| line.contains("queue default: 0 due, 0 scheduled, 1 running"));
    watch.line(|line| line.contains("queued → running  held by ops"));
    bench.end(&claimed, claimed.jobs[0].id, Ending::Dead { error: error("no \u{1b}[2J host") });
    let line = watch.line(|line| line.contains("running → dead"));
    assert!(line.contains("no \\u{1b}[2J host") && !line.contains('\x1b'), "{line}");
    assert_eq!(watch.interrupt(), Some(0));
}

#[test]
fn a_watch_until_idle_ends_by_itself() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let id = bench.enqueue(1);
    place.enqueue(&["later", "--delay=1h"]);
    let other = place.enqueue(&["a", "--queue=mail"]);
    let watch =
        Following::start(&place, &["jobs", "watch", "--until-idle", "--queue=default", "--every=100ms", "--json"]);
    let first = watch.json(|_| true);
    assert_eq!((first["queues"].as_array().unwrap().len(), first["jobs"].as_array().unwrap().len()), (1, 2));
    assert!(!first.to_string().contains(&other), "{first}");
    let claimed = bench.claim();
    bench.end(&claimed, id, done());
    assert_eq!(watch.code(), Some(0));

    let late = place.run(&["jobs", "watch", "--until-idle", "--timeout=1ms", "--json"]);
    assert_eq!((late.code, &late.error()["code"]), (1, &json!("timeout")));
    assert_eq!(place.run(&["jobs", "watch", "--until-idle", "--queue=unknown"]).code, 0);
}

#[test]
fn one_job_is_followed_through_every_attempt_until_it_succeeds() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let id = bench.enqueue(1);
    let shown = id.to_string();
    let watch = Following::start(&place, &["jobs", "watch", &shown, "--every=100ms", "--json"]);
    watch.json(|job| job["state"] == "queued" && job["id"] == json!(shown));
    let claimed = bench.claim();
    watch.json(|job| job["state"] == "running" && job["locked_by"] == "ops");
    bench.end(&claimed, id, Ending::Retry { delay: Duration::from_secs(10), error: error("refused") });
    watch.json(|job| job["state"] == "retryable" && job["attempts"][0]["how"] == "retry");
    bench.advance(Duration::from_secs(11));
    let claimed = bench.claim();
    bench.end(&claimed, id, done());
    watch.json(|job| job["state"] == "succeeded");
    assert_eq!(watch.code(), Some(0));

    let told = place.run(&["jobs", "watch", &shown]);
    assert_eq!(told.code, 0);
    for part in ["mail.send in queue default", "try 1: retry", "refused", "try 2: succeeded", "after it was enqueued"] {
        assert!(told.out.contains(part), "{part}: {}", told.out);
    }
}

#[test]
fn a_job_that_does_not_succeed_is_exit_code_1() {
    let place = Place::new();
    let id = place.enqueue(&["a"]);
    let late = place.run(&["jobs", "watch", &id, "--timeout=1ms"]);
    assert_eq!(late.code, 1);
    assert!(late.err.contains(&id) && late.err.contains("is still queued after 1ms"), "{}", late.err);
    let watch = Following::start(&place, &["jobs", "watch", &id, "--every=100ms"]);
    watch.line(|line| line.contains("waits for a worker"));
    place.json(&["jobs", "cancel", &id]);
    watch.line(|line| line.contains("canceled"));
    assert_eq!(watch.code(), Some(1));
    let unknown = place.run(&["jobs", "watch", "01933c5e-7b5a-7000-8000-000000000001", "--json"]);
    assert_eq!((unknown.code, &unknown.error()["code"]), (1, &json!("not_found")));

    let other = place.enqueue(&["a"]);
    let watch = Following::start(&place, &["jobs", "watch", &other, "--every=100ms"]);
    watch.line(|line| line.contains("waits for a worker"));
    assert_eq!(watch.interrupt(), Some(1), "nobody knows yet whether it succeeds");
}

#[test]
fn a_watch_whose_reader_has_seen_enough_ends() {
    let place = Place::new();
    let mut child = place.command(&["jobs", "watch", "--every=100ms"]).spawn().unwrap();
    drop(child.stdout.take());
    // Something to write, or it would never notice.
    place.enqueue(&["a"]);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}
