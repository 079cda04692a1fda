//! The tour: it runs anywhere, and its numbers are the store's.

use serde_json::json;

use crate::place::Place;

#[test]
fn the_tour_ends_as_it_is_told() {
    let answer = Place::new().json(&["demo"]);
    assert_eq!(answer["states"], json!({ "succeeded": 9, "failed": 1, "canceled": 2 }));
    assert_eq!((&answer["reclaimed"], &answer["stale_refused"]), (&json!(2), &json!(2)));
    assert_eq!((&answer["audit"]["verified"], &answer["audit"]["seals"]), (&json!(true), &json!(2)));
    assert!(answer["audit"]["rows"].as_i64().unwrap() > 12, "{answer}");
}

#[test]
fn the_tour_tells_every_turn_of_a_life() {
    let ran = Place::new().run(&["demo"]);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    for part in [
        "Twelve jobs are stored",
        "connection refused, attempt 1 of 5, again in 10s",
        "no such mailbox, a permanent error: failed",
        "not yet, again in 30s, not charged",
        "1m 1s later the lease of w2 has expired",
        "refused, lease 2 no longer holds it",
        "attempt 2 of 2: dead",
        "was queued and is canceled at once",
        "is running, its worker is asked to stop",
        "retry → dead → succeeded",
        "lost → succeeded",
        "every hash fits",
    ] {
        assert!(ran.out.contains(part), "`{part}` is missing:\n{}", ran.out);
    }
}

#[test]
fn the_tour_needs_no_home_and_no_settings_and_leaves_nothing() {
    let place = Place::new();
    place.write("tenure.toml", "nonsense");
    let status = place.command(&["demo"]).env_clear().status().unwrap();
    assert!(status.success());
    let left: Vec<_> = std::fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["tenure.toml"]);
}
