//! What workers did, as an operator sees it: another process works on the same file.

use std::time::Duration;

use serde_json::json;
use tenure_store::lease::{Ended, Ending};

use crate::bench::{Bench, error};
use crate::place::Place;

#[test]
fn a_silent_worker_is_seen_asked_and_fenced() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let id = bench.enqueue(1);
    let claimed = bench.claim();
    let shown_id = id.to_string();
    for args in [&["--stuck=5m"][..], &["--state=running"]] {
        let jobs = place.json(&[&["jobs", "list"], args].concat());
        assert_eq!((&jobs[0]["id"], &jobs[0]["locked_by"]), (&json!(shown_id), &json!("ops")), "{args:?}: {jobs}");
    }
    assert_eq!(place.json(&["jobs", "list", "--stuck=1h"]), json!([]));
    assert!(place.run(&["jobs", "list"]).out.contains("held by ops"));
    assert!(place.run(&["jobs", "show", &shown_id]).out.contains("running, try 1"));

    assert_eq!(place.json(&["jobs", "cancel", &shown_id])["canceled"], "requested");
    assert_eq!(place.json(&["jobs", "show", &shown_id])["cancel_requested"], true);
    assert_eq!(place.json(&["jobs", "cancel", &shown_id, "--force"])["canceled"], "now");
    let answer = bench.end(&claimed, id, Ending::Succeeded { result: None, usage: None });
    assert!(matches!(answer, Ended::LeaseLost { .. }), "{answer:?}");
    assert_eq!(place.json(&["jobs", "show", &shown_id])["state"], "canceled");
    let audit = place.json(&["audit", "verify", "--seal"]);
    assert_eq!(audit["verified"], true, "{audit}");
}

#[test]
fn dead_letters_are_listed_shown_and_requeued() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let (id, other) = (bench.enqueue(1), bench.enqueue(2));
    let claimed = bench.claim();
    let retry = Ending::Retry { delay: Duration::from_secs(10), error: error("connection refused") };
    bench.end(&claimed, id, retry);
    bench.end(&claimed, other, Ending::Succeeded { result: Some(error("sent")), usage: None });
    bench.advance(Duration::from_secs(11));
    let claimed = bench.claim();
    // An error text is somebody else's: it must not steer the terminal.
    bench.end(&claimed, id, Ending::Dead { error: error("no such host \u{1b}[2J\nsecond line") });

    let shown_id = id.to_string();
    let dead = place.json(&["jobs", "list", "--state=dead"]);
    assert_eq!((&dead[0]["id"], dead.as_array().unwrap().len()), (&json!(shown_id), 1));
    let shown = place.run(&["jobs", "show", &shown_id]).out;
    for part in ["try 1: retry", "connection refused", "try 2: dead", "no such host \\u{1b}[2J\\nsecond line", "ops"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let listed = place.run(&["jobs", "list"]).out;
    assert!(listed.lines().count() == 3 && !listed.contains('\x1b'), "{listed}");
    assert!(place.run(&["jobs", "show", &other.to_string()]).out.contains("Result\n"));

    assert_eq!(place.json(&["jobs", "requeue", "--state=dead", "--queue=default"])["requeued"], 1);
    let job = place.json(&["jobs", "show", &shown_id]);
    assert_eq!(
        (&job["state"], &job["attempt"], job["attempts"].as_array().unwrap().len()),
        (&json!("queued"), &json!(0), 2)
    );
    let refused = place.run(&["jobs", "requeue", &other.to_string()]);
    assert_eq!(refused.code, 1, "a job that succeeded is not run again: {refused:?}");
    assert_eq!(place.json(&["audit", "verify", "--seal"])["verified"], true);
}
