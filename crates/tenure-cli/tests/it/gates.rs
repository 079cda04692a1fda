//! Rules, operators, and what a waiting job says about its gate.

use serde_json::json;

use crate::place::Place;

#[test]
fn a_rule_is_set_listed_and_removed() {
    let place = Place::new();
    let set = place.json(&["gates", "set", "source:*", "--rate=30/m", "--breaker=5:5m", "--weight=2"]);
    let rule = json!({
        "pattern": "source:*", "rate": "30/m", "burst": 1, "cost": 1, "concurrency": null, "breaker_failures": 5,
        "breaker_cooldown_ms": 300_000, "weight": 2,
    });
    assert_eq!(set, rule);
    assert_eq!(place.json(&["gates", "list", "--rules"]), json!([rule]));
    let text = place.run(&["gates", "list", "--rules"]).out;
    assert!(text.contains("30/m (burst 1), after 5 failures nothing for 5m, weight 2"), "{text}");
    let shown = place.json(&["gates", "show", "source:ebay"]);
    assert_eq!((&shown["lets_through"], &shown["rule"]["pattern"]), (&json!(1), &json!("source:*")));
    place.json(&["gates", "set", "source:*", "--remove"]);
    assert_eq!(place.json(&["gates", "list", "--rules"]), json!([]));
    assert_eq!(place.run(&["gates", "show", "source:ebay"]).code, 1);
    assert_eq!(place.run(&["gates", "set", "source:*", "--remove"]).code, 1);
}

#[test]
fn a_rule_keeps_what_is_not_named_and_the_audit_shows_both_rules() {
    let place = Place::new();
    place.json(&["gates", "set", "source:ebay", "--rate=30/m", "--burst=4", "--concurrency=2", "--breaker=5:5m"]);
    let faster = place.json(&["gates", "set", "source:ebay", "--rate=60/m", "--reason=month end"]);
    assert_eq!(
        [&faster["rate"], &faster["burst"], &faster["concurrency"], &faster["breaker_failures"]],
        [&json!("60/m"), &json!(4), &json!(2), &json!(5)]
    );
    let bare = place.json(&["gates", "set", "source:ebay", "--no-breaker", "--no-concurrency", "--weight=2"]);
    assert_eq!(
        [&bare["rate"], &bare["concurrency"], &bare["breaker_failures"], &bare["weight"]],
        [&json!("60/m"), &json!(null), &json!(null), &json!(2)]
    );
    assert_eq!(place.json(&["gates", "set", "source:ebay", "--no-rate"])["rate"], json!(null));
    let lone = place.run(&["gates", "set", "source:ebay", "--burst=3"]);
    assert!(lone.code == 2 && lone.err.contains("it belongs to a rate"), "{lone:?}");
    assert_eq!(place.run(&["gates", "set", "source:ebay"]).code, 2, "nothing is named");
    assert_eq!(place.run(&["gates", "set", "source:ebay", "--rate=1/s", "--no-rate"]).code, 2);
    let rows = place.json(&["audit", "list", "--about", "source:ebay", "--event", "gate_ruled"]);
    assert_eq!(
        (&rows[0]["details"]["old"]["rate"], &rows[0]["details"]["new"]),
        (&json!("60/m"), &json!({ "weight": 2 }))
    );
    let text = place.run(&["audit", "list", "--about", "source:ebay"]).out;
    for said in [
        "gate source:ebay: set to rate 30/m, concurrency 2, breaker 5:5m, burst 4",
        "month end; gate source:ebay: rate 30/m → 60/m",
        "gate source:ebay: concurrency 2 → none, breaker 5:5m → none, weight 1 → 2",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn presets_are_the_rules_of_sources_and_domains() {
    let place = Place::new();
    let source = place.json(&["gates", "set", "source:*", "--preset=source", "--rate=60/m"]);
    assert_eq!((&source["rate"], &source["breaker_failures"]), (&json!("60/m"), &json!(5)));
    let domain = place.json(&["gates", "set", "domain:*", "--preset=domain"]);
    assert_eq!((&domain["concurrency"], &domain["rate"]), (&json!(2), &json!(null)));
}

#[test]
fn a_waiting_job_says_which_gate_it_waits_for_and_until_when() {
    let place = Place::new();
    let job = place.enqueue(&["noop", "--gate=source:ebay"]);
    let text = place.run(&["gates", "pause", "source:ebay", "--for=10m", "--reason=upgrade"]).out;
    assert_eq!(text, "Gate source:ebay is paused for 10m: nothing passes, jobs inside go on.\n");
    let shown = place.json(&["jobs", "show", &job]);
    assert_eq!((&shown["gate"], &shown["waits_for"]["why"]), (&json!("source:ebay"), &json!("paused")));
    assert!(shown["waits_for"]["until"].is_string(), "{shown}");
    let text = place.run(&["jobs", "show", &job]).out;
    assert!(text.contains("waiting for gate source:ebay: paused, opens in"), "{text}");
    let ran = place.run(&["worker", "--once"]);
    assert_eq!(place.json(&["jobs", "show", &job])["state"], "queued", "{ran:?}");
    let gates = place.json(&["gates", "list"]);
    assert_eq!((&gates[0]["name"], &gates[0]["pause_reason"]), (&json!("source:ebay"), &json!("upgrade")));
    place.json(&["gates", "resume", "source:ebay"]);
    place.run(&["worker", "--once"]);
    let shown = place.json(&["jobs", "show", &job]);
    assert_eq!((&shown["state"], &shown["waits_for"]), (&json!("succeeded"), &json!(null)));
    assert_eq!(place.json(&["gates", "show", "source:ebay"])["inside"], 0);
}

#[test]
fn a_breaker_is_tripped_and_reset_by_hand() {
    let place = Place::new();
    let tripped = place.json(&["gates", "trip", "source:ebay", "--reason=wrong prices"]);
    assert_eq!((&tripped["closed"]["why"], &tripped["trip_reason"]), (&json!("open"), &json!("wrong prices")));
    let text = place.run(&["gates", "show", "source:ebay"]).out;
    assert!(text.contains("breaker open until reset") && text.contains("wrong prices"), "{text}");
    assert_eq!(place.json(&["gates", "reset", "source:ebay"])["closed"], json!(null));
    place.json(&["gates", "pause", "source:ebay"]);
    place.json(&["gates", "pause", "source:ebay"]);
    place.json(&["gates", "resume", "source:ebay"]);
    place.json(&["gates", "set", "source:ebay", "--concurrency=1"]);
    let rows = place.json(&["audit", "tail"]);
    let events: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["event"].as_str().unwrap()).collect();
    let mut said = ["gate_tripped", "gate_reset", "gate_paused", "gate_resumed", "gate_ruled"].to_vec();
    if events.first() != said.first() {
        said.reverse();
    }
    assert_eq!(events, said, "each once, and a repetition not at all");
}

/// What docs/GATES.md tells people to type.
#[test]
fn every_command_of_the_page_works() {
    Place::new().run_page(include_str!("../../../../docs/GATES.md"), 11);
}

#[test]
fn rules_of_the_settings_file_are_applied_by_hand_and_by_a_worker() {
    let place = Place::new();
    std::fs::write(place.path("tenure.toml"), "[gates.\"domain:*\"]\nconcurrency = 2\n").unwrap();
    let applied = place.json(&["gates", "apply"]);
    assert_eq!((applied.as_array().unwrap().len(), &applied[0]["concurrency"]), (1, &json!(2)));
    assert_eq!(place.json(&["gates", "apply"]), json!([]), "nothing is set twice");
    std::fs::write(place.path("tenure.toml"), "[gates.\"domain:*\"]\nconcurrency = 3\n").unwrap();
    place.run(&["worker", "--once"]);
    assert_eq!(place.json(&["gates", "list", "--rules"])[0]["concurrency"], 3);
}
