//! Partitions from the command line: found, and let go on.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::place::Place;
use crate::run::{Run, catch_up, job_id};

#[test]
fn partitions_that_go_on_or_are_stuck_are_one_command() {
    let place = Place::new();
    let bench = Bench::new(&place);
    assert_eq!(place.run(&["partitions", "list", "--active"]).out, "No partition goes on.\n");
    let run = Run::new(&bench, 1, &["east", "west"]);
    let claimed = bench.claim();
    run.page(&claimed, job_id(&bench, 1, 1), 3, None);
    let names = |args: &[&str]| -> Vec<String> {
        let list = place.json(&[&["partitions", "list"], args].concat());
        list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&[]), ["east", "west"]);
    assert_eq!(names(&["--active"]), ["east"]);
    assert_eq!(names(&["--stuck=5m"]), ["east"]);
    assert_eq!(names(&["--state=succeeded"]), ["west"]);
    assert_eq!(names(&["--run", &run.id, "--after=east"]), ["west"]);
    assert_eq!(names(&["--run", &run.id, "--limit=1"]), ["east"]);
    let text = place.run(&["partitions", "list", "--stuck=1h"]).out;
    assert_eq!(text, "No partition is stuck: all that go on moved within 1h.\n");
    let text = place.run(&["partitions", "list", "--limit=1"]).out;
    for part in ["RUN", "PARTITION", "east", "0/20", "10m ago", &run.id, "There may be more: add --limit"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = place.run(&["partitions", "list", "--run", &run.id]).out;
    assert!(!text.contains(&run.id) && text.contains("3/20"), "{text}");
}

#[test]
fn a_failed_run_says_what_to_do_and_doing_it_heals_it() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let run = Run::new(&bench, 1, &["east", "west"]);
    let (east, claimed) = (job_id(&bench, 1, 0), bench.claim());
    run.page(&claimed, job_id(&bench, 1, 1), 7, None);
    run.die(&claimed, east, "no such page");
    let failed = place.json(&["runs", "show", &run.id]);
    assert_eq!((&failed["state"], &failed["consolidate_state"]), (&json!("failed"), &json!("skipped")));
    assert_eq!(failed["last_error"]["message"], "no such page");
    let text = place.run(&["runs", "show", &run.id]).out;
    let resume = format!("tenure partitions resume {} east", run.id);
    for part in ["1 of 2 done, 1 failed", "×", "skipped, because members are missing", "What to do next", &resume] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = place.run(&["runs", "list"]).out;
    assert!(text.contains("1 failed, ended") && text.contains(": no such page"), "{text}");
    assert_eq!(place.run(&["runs", "watch", &run.id]).code, 1);

    let refused = place.run(&["partitions", "resume", &run.id, "west"]);
    assert!(refused.code == 1 && refused.err.contains("partition west needs no help"), "{refused:?}");
    let words: Vec<&str> = resume.split_whitespace().skip(1).collect();
    let text = place.run(&words).out;
    assert!(text.starts_with(&format!("Partition east goes on at offset 0, with job {east}.\n")), "{text}");
    assert_eq!(place.json(&["runs", "list", "--open"])[0]["state"], "running");
    catch_up(&bench);
    let claimed = bench.claim();
    run.page(&claimed, east, 2, None);
    run.consolidate();
    let told = place.run(&["runs", "watch", &run.id]);
    assert!(told.code == 0 && told.out.contains("2 of 2 done, 9 rows, consolidate succeeded"), "{told:?}");
    let refused = place.run(&["partitions", "resume", &run.id, "east", "--json"]);
    assert_eq!((refused.code, &refused.error()["code"]), (1, &json!("conflict")));
}

#[test]
fn all_that_stopped_goes_on_at_once() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let run = Run::new(&bench, 1, &["a", "b", "c"]);
    let claimed = bench.claim();
    run.die(&claimed, job_id(&bench, 1, 0), "no");
    let none = job_id(&bench, 1, 1).to_string();
    place.json(&["jobs", "cancel", &none, "--force"]);
    run.fold();
    let text = place.run(&["runs", "show", &run.id]).out;
    assert!(text.contains(&format!("tenure partitions resume {} --all", run.id)), "{text}");
    let all = ["partitions", "resume", run.id.as_str(), "--all"];
    assert_eq!(place.json(&all), json!({ "run": run.id, "resumed": 2, "refused": [] }));
    assert_eq!(place.json(&["partitions", "list", "--active"]).as_array().unwrap().len(), 3);
    let text = place.run(&all).out;
    assert!(text.contains("nothing to resume"), "{text}");
}

#[test]
fn a_partition_begins_again_where_it_is_told() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let run = Run::new(&bench, 1, &["east", "west"]);
    let claimed = bench.claim();
    run.page(&claimed, job_id(&bench, 1, 0), 10, Some(job_id(&bench, 1, 10)));
    let reset = place.json(&["partitions", "reset", &run.id, "east", "--offset=3", "--reason=bad rows"]);
    assert_eq!((&reset["offset"], &reset["rows"], &reset["state"]), (&json!(3), &json!(0), &json!("queued")));
    assert_ne!(reset["job"], json!(job_id(&bench, 1, 10).to_string()));
    let text = place.run(&["partitions", "reset", &run.id, "east", "--yes"]).out;
    assert!(text.starts_with("Partition east begins again at offset 0, with job ") && text.contains("it was at 3"));
    let unknown = place.run(&["partitions", "reset", &run.id, "north", "--yes"]);
    assert!(unknown.code == 1 && unknown.err.contains("partition north of run"), "{unknown:?}");
    assert!(unknown.err.contains("tenure runs show"), "{unknown:?}");
    // Who and why reach the store: the page that was next is canceled by the same word.
    let rows = place.json(&["audit", "tail"]);
    let said = |row: &&Value| row["event"] == "canceled" && row["reason"] == "bad rows" && row["actor"] == "tester";
    assert_eq!(rows.as_array().unwrap().iter().filter(said).count(), 1, "{rows}");
}
