//! What waits, and how attempts ended lately.

use std::time::Duration;

use serde_json::json;
use tenure_store::lease::Ending;

use crate::bench::{Bench, error};
use crate::place::Place;

/// What docs/OPERATIONS.md tells people to type.
#[test]
fn every_command_of_operations_works() {
    let place = Place::new();
    place.run(&["migrate"]);
    place.run_page(include_str!("../../../../docs/OPERATIONS.md"), 11);
}

#[test]
fn endings_are_counted_by_kind_with_their_share_of_failures() {
    let place = Place::new();
    let empty = place.run(&["stats"]).out;
    assert!(empty.contains("No queues yet") && empty.contains("No attempt ended in the last 1h."), "{empty}");
    let bench = Bench::new(&place);
    let jobs = [1, 2, 3, 4].map(|n| bench.enqueue(n));
    let report = bench.enqueue_kind(5, "report");
    let claimed = bench.claim();
    let done = || Ending::Succeeded { result: None, usage: None };
    bench.end(&claimed, jobs[0], done());
    bench.end(&claimed, jobs[1], done());
    bench.end(&claimed, jobs[2], done());
    bench.end(&claimed, jobs[3], Ending::Retry { delay: Duration::from_secs(3_600), error: error("refused") });
    bench.end(&claimed, report, Ending::Dead { error: error("no") });

    let stats = place.json(&["stats"]);
    let line =
        |kind: &str| stats["kinds"].as_array().unwrap().iter().find(|line| line["kind"] == kind).unwrap().clone();
    let mail = line("mail.send");
    assert_eq!(json!([mail["succeeded"], mail["retry"], mail["dead"], mail["failure_share"]]), json!([3, 1, 0, 0.25]));
    assert_eq!(json!([line("report")["dead"], line("report")["failure_share"]]), json!([1, 1.0]));
    assert_eq!(json!([stats["total"]["succeeded"], stats["total"]["failure_share"]]), json!([3, 0.4]));
    assert_eq!((&stats["queues"][0]["scheduled"], &stats["complete"]), (&json!(1), &json!(true)));

    let shown = place.run(&["stats"]).out;
    for part in
        ["QUEUE", "OLDEST", "mail.send", "25.0%", "100.0%", "40.0%", "5 attempts ended in the last 1h, 0.1 a minute."]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("SNOOZED"), "an ending that nobody had needs no column: {shown}");
    // The bench ended them ten minutes ago.
    assert_eq!(place.json(&["stats", "--within=5m"])["kinds"], json!([]));
    assert_eq!(place.json(&["stats", "--queue=mail"])["kinds"], json!([]));
    assert!(place.run(&["stats", "--queue=mail"]).out.contains("No such queue yet"));
}
