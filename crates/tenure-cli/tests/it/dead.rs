//! Dead letters by what killed them, and their way back.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::place::Place;

/// Five deaths of four causes.
fn deaths() -> [(&'static str, Value); 5] {
    [
        ("mail.send", json!({ "message": "user 42 not found" })),
        ("mail.send", json!({ "message": "user 43 not found" })),
        ("mail.send", json!({ "code": "quota", "message": "7 of 5 used" })),
        ("report", json!({ "message": "user 44 not found" })),
        ("report", json!("disk \u{1b}[2J full")),
    ]
}

fn states(place: &Place, ids: &[tenure_core::JobId]) -> Vec<String> {
    ids.iter().map(|id| place.json(&["jobs", "show", &id.to_string()])["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn dead_letters_are_grouped_by_kind_and_error() {
    let place = Place::new();
    assert_eq!(place.run(&["dead", "list"]).out, "No dead letters.\n");
    let ids = Bench::new(&place).bury(&deaths());
    let listed = place.json(&["dead", "list"]);
    assert_eq!((&listed["looked_at"], &listed["complete"]), (&json!(5), &json!(true)));
    let groups = listed["groups"].as_array().unwrap();
    let shown: Vec<_> = groups.iter().map(|g| json!([g["count"], g["kind"], g["code"], g["error"]])).collect();
    assert_eq!(
        shown,
        [
            json!([2, "mail.send", null, "user <n> not found"]),
            json!([1, "mail.send", "quota", null]),
            json!([1, "report", null, "disk \u{1b}[<n>J full"]),
            json!([1, "report", null, "user <n> not found"]),
        ]
    );
    assert_eq!(groups[0]["example"], json!(ids[1].to_string()), "the newest is the example");
    assert!(groups[0]["first_at"].as_str() <= groups[0]["last_at"].as_str());

    let table = place.run(&["dead", "list"]).out;
    for part in
        ["GROUP", "quota: 7 of 5 used", "user <n> not found", "5 dead letters in 4 groups.", "disk \\u{1b}[<n>J full"]
    {
        assert!(table.contains(part), "{part}: {table}");
    }
    assert_eq!(place.json(&["dead", "list", "--kind=report"])["looked_at"], 2);
    assert_eq!(place.json(&["dead", "list", "--queue=mail"])["groups"], json!([]));
    assert_eq!(place.json(&["dead", "list", "--tenant=acme"])["groups"], json!([]));
}

#[test]
fn a_list_that_stopped_at_its_bound_says_so() {
    let place = Place::new();
    let ids = Bench::new(&place).bury(&deaths());
    for (limit, complete) in [("--limit=4", false), ("--limit=5", true)] {
        assert_eq!(place.json(&["dead", "list", limit])["complete"], complete, "{limit}");
        assert_eq!(place.json(&["dead", "list", "--each", limit])["complete"], complete, "{limit}");
        assert_eq!(place.run(&["dead", "list", limit]).out.contains("There are more"), !complete, "{limit}");
    }
    let newest = place.json(&["dead", "list", "--each", "--limit=1"]);
    assert_eq!(newest["jobs"][0]["id"], json!(ids[4].to_string()));
    assert!(place.run(&["dead", "list", "--each", "--limit=1"]).out.contains("There are more: these are the newest 1"));
}

#[test]
fn one_group_is_requeued_and_the_others_stay() {
    let place = Place::new();
    let ids = Bench::new(&place).bury(&deaths());
    let group = place.json(&["dead", "list"])["groups"][0]["group"].as_str().unwrap().to_owned();
    assert_eq!(place.json(&["dead", "requeue", "--group", &group, "--dry-run"]), json!({ "would_requeue": 2 }));
    let answer = place.json(&["dead", "requeue", "--group", &group, "--reason=fixed", "--actor=ops"]);
    assert_eq!(answer, json!({ "requeued": 2, "refused": [] }));
    assert_eq!(states(&place, &ids), ["queued", "queued", "dead", "dead", "dead"]);
    let row = &place.json(&["audit", "tail", "--limit=1"])[0];
    assert_eq!((&row["event"], &row["reason"], &row["actor"]), (&json!("requeued"), &json!("fixed"), &json!("ops")));

    let gone = place.run(&["dead", "requeue", "--group", &group]);
    assert_eq!(gone.code, 1);
    assert!(gone.err.contains(&group) && gone.err.contains("tenure dead list"), "{}", gone.err);
}

#[test]
fn dead_letters_are_requeued_by_kind_by_id_and_all_at_once() {
    let place = Place::new();
    let ids = Bench::new(&place).bury(&deaths());
    assert_eq!(place.json(&["dead", "requeue", "--kind=report"])["requeued"], 2);
    assert_eq!(place.json(&["dead", "requeue", &ids[0].to_string()])["requeued"], 1);
    // Without a terminal nobody is asked.
    assert_eq!(place.run(&["dead", "requeue", "--all"]).out, "Requeued 2 jobs.\n");
    assert_eq!(place.json(&["dead", "requeue", "--all", "--yes"])["requeued"], 0);
    assert_eq!(states(&place, &ids), ["queued"; 5]);
    assert_eq!(place.json(&["audit", "verify", "--seal"])["verified"], true);
}

#[test]
fn a_job_that_is_not_dead_is_left_alone() {
    let place = Place::new();
    let dead = Bench::new(&place).bury(&deaths()[..1])[0].to_string();
    let canceled = place.enqueue(&["a"]);
    place.json(&["jobs", "cancel", &canceled]);
    let ran = place.run(&["dead", "requeue", &canceled]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("is canceled, not dead") && ran.err.contains("tenure jobs requeue"), "{}", ran.err);

    let both = place.run(&["dead", "requeue", &canceled, &dead, "--json"]);
    let answer: Value = serde_json::from_str(&both.out).unwrap();
    assert_eq!((both.code, &answer["requeued"]), (1, &json!(1)), "{both:?}");
    assert_eq!((&answer["refused"][0]["id"], &answer["refused"][0]["code"]), (&json!(canceled), &json!("conflict")));
    assert_eq!(place.json(&["jobs", "show", &canceled])["state"], "canceled");
}
