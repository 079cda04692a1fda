//! Schedules from the command line.

use serde_json::json;

use crate::place::Place;

#[test]
fn a_schedule_is_made_shown_changed_and_removed() {
    let place = Place::new();
    let set = place.json(&[
        "schedules",
        "set",
        "nightly",
        "0 3 * * *",
        "report",
        "{\"full\":true}",
        "--zone=europe/berlin",
        "--missed=once",
        "--grace=5m",
        "--queue=slow",
        "--priority=1",
        "--max-attempts=2",
        "--gate=source:ebay",
    ]);
    for (member, value) in [
        ("name", json!("nightly")),
        ("tenant", json!("default")),
        ("cron", json!("0 3 * * *")),
        ("zone", json!("Europe/Berlin")),
        ("missed", json!("once")),
        ("grace_ms", json!(300_000)),
        ("unreadable", json!(null)),
        ("kind", json!("report")),
        ("queue", json!("slow")),
        ("payload", json!({ "full": true })),
        ("priority", json!(1)),
        ("gate", json!("source:ebay")),
        ("max_attempts", json!(2)),
        ("max_losses", json!(5)),
        ("paused", json!(false)),
    ] {
        assert_eq!(set[member], value, "{member}");
    }
    assert!(set["next_at"].is_string(), "{set}");
    assert_eq!(place.json(&["schedules", "list"]), json!([set]));
    let text = place.run(&["schedules", "list"]).out;
    assert!(text.contains("0 3 * * *") && text.contains("Europe/Berlin"), "{text}");
    let text = place.run(&["schedules", "set", "nightly", "0 4 * * *", "report"]).out;
    assert!(text.starts_with("Schedule nightly is changed; it fires in "), "{text}");
    let text = place.run(&["schedules", "set", "nightly", "0 4 * * *", "report"]).out;
    assert!(text.starts_with("Schedule nightly was the same before; it fires in "), "{text}");
    let paused = place.json(&["schedules", "pause", "nightly", "--reason=month end"]);
    assert_eq!((&paused["paused"], &paused["pause_reason"]), (&json!(true), &json!("month end")));
    let text = place.run(&["schedules", "show", "nightly"]).out;
    assert!(text.contains("month end") && text.contains("It has not fired yet."), "{text}");
    assert_eq!(place.run(&["schedules", "resume", "nightly"]).out, "Schedule nightly goes on from now.\n");
    assert_eq!(place.json(&["schedules", "remove", "nightly"])["removed"], json!(true));
    let gone = place.run(&["schedules", "show", "nightly"]);
    assert!(gone.code == 1 && gone.err.contains("schedule nightly"), "{gone:?}");
    let rows = place.json(&["audit", "tail"]);
    let mut events: Vec<&str> = rows.as_array().unwrap().iter().map(|row| row["event"].as_str().unwrap()).collect();
    if events.first() != Some(&"schedule_set") {
        events.reverse();
    }
    assert_eq!(events, ["schedule_set", "schedule_set", "schedule_paused", "schedule_resumed", "schedule_removed"]);
}

/// A worker that is asked to do what is due fires what is due.
#[test]
fn a_worker_fires_and_the_fires_are_shown() {
    let place = Place::new();
    place.json(&["schedules", "set", "pulse", "* * * * * *", "noop"]);
    // Until a second is over there may be nothing to fire; each start of the program takes some milliseconds.
    let mut fired = json!({});
    for _ in 0..1_000 {
        assert_eq!(place.run(&["worker", "--once"]).code, 0);
        fired = place.json(&["schedules", "show", "pulse"]);
        if fired["fires"].is_array() {
            break;
        }
    }
    let fires = fired["fires"].as_array().expect("it has fired");
    assert_eq!(fires[0]["state"], "succeeded", "{fired}");
    let job = place.json(&["jobs", "show", fires[0]["job"].as_str().unwrap()]);
    assert_eq!((&job["kind"], &job["state"]), (&json!("noop"), &json!("succeeded")));
    let text = place.run(&["schedules", "show", "pulse", "--fires=1"]).out;
    assert!(text.contains("FIRED FOR") && text.contains("succeeded"), "{text}");
}

#[test]
fn the_next_fires_are_told_and_nothing_is_stored() {
    let place = Place::new();
    let after = "--after=2026-03-27T12:00:00Z";
    let next = place.json(&["schedules", "next", "30 2 * * *", "--zone=Europe/Berlin", "--count=3", after]);
    assert_eq!(
        next,
        json!([
            { "at": "2026-03-28T01:30:00Z", "local": "2026-03-28 02:30:00+01:00" },
            { "at": "2026-03-29T01:00:00Z", "local": "2026-03-29 03:00:00+02:00" },
            { "at": "2026-03-30T00:30:00Z", "local": "2026-03-30 02:30:00+02:00" },
        ])
    );
    let text = place.run(&["schedules", "next", "@daily", "--count=1", after]).out;
    assert!(text.contains("2026-03-28 00:00:00Z") && text.contains("in 12h"), "{text}");
    assert_eq!(place.json(&["schedules", "list"]), json!([]));
}

#[test]
fn what_cannot_be_a_schedule_is_refused_with_a_way_out() {
    let place = Place::new();
    for (args, said) in [
        (&["schedules", "next", "60 * * * *"][..], "cron minute `60` is refused: it is 0 to 59"),
        (&["schedules", "next", "0 3 * *"], "five fields"),
        (&["schedules", "next", "0 0 30 2 *"], "never fire"),
        (&["schedules", "next", "@daily", "--zone=Berlin"], "such as Europe/Berlin"),
        (&["schedules", "next", "@daily", "--count=0"], "1 to 1000"),
        (&["schedules", "set", "a b", "@daily", "noop"], "a name is 1 to 100"),
        (&["schedules", "set", "s", "@daily", "noop", "{full}"], "Quote it for the shell"),
        (&["schedules", "set", "s", "@daily", "noop", "--missed=all"], "skip or once"),
        (&["schedules", "set", "s", "@daily", "noop", "--max-attempts=0"], "max_attempts"),
        (&["schedules", "set", "s", "@daily", "noop", "--grace=366d"], "at most 365d"),
    ] {
        let ran = place.run(args);
        assert!(ran.code == 2 && ran.err.contains(said), "{args:?}: {ran:?}");
    }
    assert_eq!(place.json(&["schedules", "list"]), json!([]));
}

/// What docs/SCHEDULES.md tells people to type.
#[test]
fn every_command_of_the_page_works() {
    Place::new().run_page(include_str!("../../../../docs/SCHEDULES.md"), 8);
}

#[test]
fn schedules_of_the_settings_file_are_applied_by_hand_and_by_a_worker() {
    let place = Place::new();
    let file = |hour: u8| format!("[schedules.nightly]\ncron = \"0 {hour} * * *\"\nkind = \"noop\"\n");
    place.write("tenure.toml", file(3));
    let applied = place.json(&["schedules", "apply"]);
    assert_eq!((applied.as_array().unwrap().len(), &applied[0]["cron"]), (1, &json!("0 3 * * *")));
    assert_eq!(place.json(&["schedules", "apply"]), json!([]), "nothing is set twice");
    place.write("tenure.toml", file(4));
    assert_eq!(place.run(&["worker", "--once"]).code, 0);
    assert_eq!(place.json(&["schedules", "show", "nightly"])["cron"], "0 4 * * *");
    place.write("tenure.toml", "[schedules.nightly]\ncron = \"0 25 * * *\"\nkind = \"noop\"\n");
    let refused = place.run(&["schedules", "list"]);
    assert!(refused.code == 2 && refused.err.contains("line 2: cron hour `25`"), "{refused:?}");
}

#[test]
fn a_schedule_is_fired_by_hand_and_goes_on_as_before() {
    let place = Place::new();
    place.json(&["schedules", "set", "yearly", "0 0 1 1 *", "report", "{\"full\": true}", "--queue=slow"]);
    let next = place.json(&["schedules", "show", "yearly"])["next_at"].clone();
    let mut jobs = Vec::new();
    for _ in 0..2 {
        let fired = place.json(&["schedules", "run", "yearly"]);
        let job = place.json(&["jobs", "show", fired["job"].as_str().unwrap()]);
        assert_eq!((&job["kind"], &job["queue"], &job["state"]), (&json!("report"), &json!("slow"), &json!("queued")));
        jobs.push(fired["job"].clone());
    }
    assert_ne!(jobs[0], jobs[1]);
    let shown = place.json(&["schedules", "show", "yearly"]);
    assert_eq!(shown["next_at"], next, "{shown}");
    place.json(&["schedules", "pause", "yearly"]);
    let refused = place.run(&["schedules", "run", "yearly"]);
    assert!(refused.code == 1 && refused.err.contains("is paused"), "{refused:?}");
    assert_eq!(place.run(&["schedules", "run", "nosuch"]).code, 1);
}
