//! List, pause, resume, set.

use serde_json::json;

use crate::place::Place;

#[test]
fn queues_are_counted_paused_resumed_and_set() {
    let place = Place::new();
    assert_eq!(place.json(&["queues", "list"]), json!([]));
    place.enqueue(&["a", "--queue=mail"]);
    place.enqueue(&["a", "--queue=mail", "--delay=1h"]);
    place.json(&["queues", "pause", "mail", "--reason=outage"]);
    place.json(&["queues", "set", "mail", "--lease-ttl=5m"]);
    let mut queues = place.json(&["queues", "list"]);
    assert!(queues[0]["oldest_due"].take().is_string(), "{queues}");
    let queue = json!({
        "name": "mail", "paused": true, "fair": false, "lease_ttl_ms": 300_000, "due": 1, "scheduled": 1, "running": 0,
        "oldest_due": null,
    });
    assert_eq!(queues, json!([queue]));
    let table = place.run(&["queues", "list"]).out;
    assert!(table.contains("mail") && table.contains("paused") && table.contains("5m"), "{table}");
    assert_eq!(place.json(&["queues", "resume", "mail"]), json!({ "queue": "mail", "paused": false }));
    assert_eq!(place.json(&["queues", "list"])[0]["paused"], false);
}

#[test]
fn a_queue_is_made_fair_and_keeps_its_lease_time() {
    let place = Place::new();
    place.json(&["queues", "set", "mail", "--lease-ttl=5m"]);
    let set = place.json(&["queues", "set", "mail", "--fair=true"]);
    assert_eq!(set, json!({ "queue": "mail", "lease_ttl_ms": 300_000, "fair": true }));
    assert_eq!(place.json(&["queues", "list"])[0]["fair"], true);
}
