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
        "name": "mail", "paused": true, "fair": false, "quota": null, "lease_ttl_ms": 300_000, "due": 1, "scheduled": 1, "waiting": 0,
        "retryable": 0, "running": 0, "slots": 0,
        "oldest_due": null,
    });
    assert_eq!(queues, json!([queue]));
    let table = place.run(&["queues", "list"]).out;
    assert!(table.contains("mail") && table.contains("paused") && table.contains("5m"), "{table}");
    assert_eq!(place.json(&["queues", "resume", "mail"]), json!({ "queue": "mail", "paused": false }));
    assert_eq!(place.json(&["queues", "list"])[0]["paused"], false);
}

#[test]
fn a_full_queue_says_so_and_how_to_go_on() {
    let place = Place::new();
    let set = place.json(&["queues", "set", "mail", "--quota=1"]);
    assert_eq!(set, json!({ "queue": "mail", "lease_ttl_ms": 60_000, "quota": 1 }));
    place.json(&["enqueue", "noop", "--queue=mail"]);
    let refused = place.run(&["enqueue", "noop", "--queue=mail"]);
    let said = "queue `mail` is full: its quota is 1 pending jobs; come again when some are claimed, \
                or raise it with `tenure queues set mail --quota N`";
    assert!(refused.code == 1 && refused.err.contains(said), "{refused:?}");
    let told = place.run(&["queues", "set", "mail", "--quota=none"]).out;
    assert!(told.contains("no quota"), "{told}");
    place.json(&["enqueue", "noop", "--queue=mail"]);
    let wrong = place.run(&["queues", "set", "mail", "--quota=0"]);
    assert!(wrong.err.contains("1 to 100000 pending jobs, or none"), "{wrong:?}");
}

#[test]
fn a_queue_is_made_fair_and_keeps_its_lease_time() {
    let place = Place::new();
    place.json(&["queues", "set", "mail", "--lease-ttl=5m"]);
    let set = place.json(&["queues", "set", "mail", "--fair=true"]);
    assert_eq!(set, json!({ "queue": "mail", "lease_ttl_ms": 300_000, "fair": true }));
    assert_eq!(place.json(&["queues", "list"])[0]["fair"], true);
}

#[test]
fn pausing_an_unknown_queue_is_refused_and_names_those_that_exist() {
    let place = Place::new();
    place.enqueue(&["a", "--queue=mail"]);
    let before = place.json(&["queues", "list"]);
    for what in ["pause", "resume"] {
        let refused = place.run(&["queues", what, "nosuchqueue"]);
        assert!(refused.code == 1 && refused.err.contains("queue nosuchqueue is not known here"), "{refused:?}");
        assert!(refused.err.contains("mail") && refused.err.contains("tenure queues set nosuchqueue"), "{refused:?}");
        let error = place.run(&["queues", what, "nosuchqueue", "--json"]).error();
        assert_eq!(error["code"], "not_found", "{error}");
    }
    assert_eq!(place.json(&["queues", "list"]), before, "no queue was made");
}
