//! Runs from the command line.

use std::time::Duration;

use serde_json::json;
use tenure_core::name::TenantName;

use crate::bench::Bench;
use crate::following::Following;
use crate::place::Place;
use crate::run::{Run, job_id, new_job};

#[test]
fn what_goes_on_is_listed_and_shown_with_its_progress() {
    let place = Place::new();
    let bench = Bench::new(&place);
    assert_eq!(place.run(&["runs", "list"]).out, "No runs yet: a program makes them.\n");
    let run = Run::new(&bench, 1, &["east", "west"]);
    let claimed = bench.claim();
    run.page(&claimed, job_id(&bench, 1, 0), 10, Some(job_id(&bench, 1, 10)));

    let list = place.json(&["runs", "list", "--open"]);
    for (member, value) in [
        ("id", json!(run.id)),
        ("tenant", json!("default")),
        ("owner", json!("ops")),
        ("source", json!("catalogue")),
        ("state", json!("running")),
        ("sealed", json!(true)),
        ("total", json!(2)),
        ("done", json!(0)),
        ("left", json!(2)),
        ("rows", json!(10)),
        ("consolidate", json!(run.consolidate.to_string())),
        ("consolidate_state", json!("waiting")),
        ("finished_at", json!(null)),
        ("deadline", json!(null)),
        ("last_error", json!(null)),
    ] {
        assert_eq!(list[0][member], value, "{member}");
    }
    let text = place.run(&["runs", "list"]).out;
    for part in [run.id.as_str(), "running", "catalogue", "ops", "────────────", "0/2", "10m ago"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(place.run(&["runs", "list", "--state=failed"]).out, "No such runs.\n");
    assert_eq!(place.run(&["runs", "list", "--before", &run.id]).out, "No such runs.\n");

    let shown = place.json(&["runs", "show", &run.id]);
    assert_eq!((&shown["state"], shown["partitions"].as_array().unwrap().len()), (&json!("running"), 2));
    assert_eq!((&shown["partitions"][0]["offset"], &shown["partitions"][0]["expected"]), (&json!(10), &json!(20)));
    let text = place.run(&["runs", "show", &run.id]).out;
    for part in ["0 of 2 done, 2 left", "waiting until all members are done", "━━━━━━──────", "10/20", "east", "west"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("What to do next"), "{text}");
}

#[test]
fn a_canceled_run_takes_its_jobs_with_it_without_a_worker() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let run = Run::new(&bench, 1, &["east", "west"]);
    let text = place.run(&["runs", "cancel", &run.id, "--reason=wrong catalogue"]).out;
    let said = format!("Run {} is canceled.\nIts members: 0 of 2 done, 2 canceled.\n", run.id);
    assert!(text.starts_with(&said) && !text.contains("rows"), "{text}");
    for job in [job_id(&bench, 1, 0), job_id(&bench, 1, 1), run.consolidate] {
        assert_eq!(place.json(&["jobs", "show", &job.to_string()])["state"], "canceled");
    }
    let again = place.json(&["runs", "cancel", &run.id]);
    assert_eq!((&again["canceled"], &again["run"]["canceled"]), (&json!("before"), &json!(2)));
    assert!(place.run(&["runs", "cancel", &run.id]).out.contains("had been canceled before"));
    assert_eq!(place.run(&["runs", "watch", &run.id]).code, 1);
    assert!(!place.run(&["runs", "show", &run.id]).out.contains("What to do next"));
    for args in [&["partitions", "resume", &run.id, "east"][..], &["partitions", "resume", &run.id, "--all"]] {
        let refused = place.run(args);
        assert!(refused.code == 1 && refused.err.contains("is canceled: its partitions stay"), "{refused:?}");
    }

    let busy = Run::new(&bench, 2, &["north", "south"]);
    let claimed = bench.claim();
    busy.page(&claimed, job_id(&bench, 2, 0), 4, None);
    let text = place.run(&["runs", "cancel", &busy.id]).out;
    for part in ["1 of 2 done, 1 canceled", "What still runs is asked to stop", "The rows that were stored stay: 4."] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_run_that_has_succeeded_cannot_be_canceled() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let run = Run::new(&bench, 1, &[]);
    run.consolidate();
    let refused = place.run(&["runs", "cancel", &run.id, "--json"]);
    assert_eq!((refused.code, &refused.error()["code"]), (1, &json!("conflict")));
    let text = place.run(&["runs", "show", &run.id]).out;
    assert!(text.contains("succeeded") && !text.contains("Partitions"), "{text}");
}

#[test]
fn a_consolidate_that_died_is_told_with_its_way_out() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let run = Run::new(&bench, 1, &[]);
    let claimed = bench.claim();
    run.die(&claimed, run.consolidate, "disk full");
    let text = place.run(&["runs", "show", &run.id]).out;
    for part in [format!("dead  job {}", run.consolidate), format!("tenure jobs requeue {}", run.consolidate)] {
        assert!(text.contains(&part), "{part}: {text}");
    }
}

#[test]
fn a_run_that_is_late_goes_on_without_a_deadline() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let run = Run::with(&bench, 1, &["east"], |new| new.deadline = Some(Duration::from_secs(60)));
    assert!(place.json(&["runs", "show", &run.id])["deadline"].is_string());
    bench.advance(Duration::from_secs(60));
    run.fold();
    let text = place.run(&["runs", "show", &run.id]).out;
    for part in ["did not end before its deadline", "tenure partitions resume", "goes on without one"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(place.json(&["partitions", "resume", &run.id, "east"])["state"], "running");
    assert_eq!(place.json(&["runs", "show", &run.id])["deadline"], json!(null));
}

#[test]
fn items_are_jobs_of_their_own_and_an_open_run_may_grow() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let run = Run::with(&bench, 1, &[], |new| {
        (new.sealed, new.consolidate) = (false, None);
        new.members.items = vec![new_job(&bench, 1, 0), new_job(&bench, 1, 1)];
    });
    let claimed = bench.claim();
    run.die(&claimed, job_id(&bench, 1, 0), "no such item");
    let text = place.run(&["runs", "show", &run.id]).out;
    for part in
        ["0 of 2 done, 1 failed, 1 left", "2 so far, open: more may come", "none yet", "tenure dead list --each"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(place.run(&["runs", "list"]).out.contains("1 failed, may still grow"));
}

#[test]
fn a_run_is_followed_until_it_ends() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let run = Run::new(&bench, 1, &["east"]);
    let people = Following::start(&place, &["runs", "watch", &run.id, "--every=100ms"]);
    let programs = Following::start(&place, &["runs", "watch", &run.id, "--every=100ms", "--json"]);
    people.line(|line| line.contains("queued") && line.contains("0 of 1 done, 1 left, 0 rows, consolidate waiting"));
    programs.json(|run| run["state"] == "queued");
    let claimed = bench.claim();
    run.page(&claimed, job_id(&bench, 1, 0), 10, Some(job_id(&bench, 1, 10)));
    people.line(|line| line.contains("10 rows"));
    programs.json(|run| run["rows"] == 10);
    let claimed = bench.claim();
    run.page(&claimed, job_id(&bench, 1, 10), 1, None);
    people.line(|line| line.contains("━━━━━━━━━━━━  1 of 1 done, 11 rows, consolidate open"));
    run.consolidate();
    people.line(|line| line.contains("succeeded"));
    programs.json(|run| run["state"] == "succeeded" && run["finished_at"].is_string());
    assert_eq!((people.code(), programs.code()), (Some(0), Some(0)));
}

#[test]
fn a_run_that_does_not_succeed_is_exit_code_1() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let run = Run::new(&bench, 1, &["east"]);
    let late = place.run(&["runs", "watch", &run.id, "--timeout=1ms"]);
    assert!(late.code == 1 && late.err.contains("is still queued after 1ms"), "{late:?}");
    let stopped = Following::start(&place, &["runs", "watch", &run.id, "--every=100ms"]);
    let watch = Following::start(&place, &["runs", "watch", &run.id, "--every=100ms"]);
    stopped.line(|line| line.contains("queued"));
    assert_eq!(stopped.interrupt(), Some(1), "nobody knows yet whether it succeeds");
    let claimed = bench.claim();
    run.die(&claimed, job_id(&bench, 1, 0), "no \u{1b}[2J page");
    let line = watch.line(|line| line.contains("failed"));
    assert!(line.contains("1 failed") && line.contains("no \\u{1b}[2J page"), "{line}");
    assert_eq!(watch.code(), Some(1));
}

#[test]
fn a_run_is_seen_by_its_tenant_only() {
    let place = Place::new();
    let bench = Bench::new(&place);
    let run = Run::with(&bench, 1, &["east"], |new| {
        let acme = TenantName::new("acme").unwrap();
        let jobs = new.members.partitions.iter_mut().map(|partition| &mut partition.job).chain(&mut new.consolidate);
        jobs.for_each(|job| job.tenant = acme.clone());
        new.tenant = acme;
    });
    assert_eq!(place.json(&["runs", "list", "--tenant=other"]), json!([]));
    assert_eq!(place.json(&["partitions", "list", "--tenant=other"]), json!([]));
    assert_eq!(place.json(&["runs", "list", "--tenant=acme"])[0]["tenant"], "acme");
    assert!(place.run(&["runs", "list"]).out.contains("acme"));
    for args in [
        &["runs", "show", &run.id][..],
        &["runs", "watch", &run.id],
        &["runs", "cancel", &run.id],
        &["partitions", "list", "--run", &run.id],
        &["partitions", "resume", &run.id, "--all"],
        &["partitions", "reset", &run.id, "east"],
    ] {
        let refused = place.run(&[args, &["--tenant=other"]].concat());
        assert!(refused.code == 1 && refused.err.contains("is not known here"), "{args:?}: {refused:?}");
        assert!(refused.err.contains("`tenure runs list` shows the runs."), "{args:?}: {refused:?}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_with_a_way_out() {
    let place = Place::new();
    let id = "01933c5e-7b5a-7000-8000-000000000001";
    for (args, said) in [
        (&["runs", "show", "seven"][..], "the id of a run is a uuid such as"),
        (&["runs", "list", "--state=dead"], "states are queued, running, succeeded, failed, canceled"),
        (&["runs", "list", "--open", "--state=failed"], "cannot be used with"),
        (&["runs", "list", "--limit=0"], "1 to 1000"),
        (&["runs", "watch", id, "--every=1ms"], "100ms to 1h"),
        (&["partitions", "list", "--stuck=soon"], "such as 90s"),
        (&["partitions", "list", "--after=east"], "--run"),
        (&["partitions", "resume", id], "NAME"),
        (&["partitions", "resume", id, "east", "--all"], "cannot be used with"),
        (&["partitions", "reset", id, "a b"], "a name is 1 to 100"),
        (&["partitions", "reset", id, "east", "--offset=-1"], "such as 3000"),
        (&["partitions", "reset", id, "east", "--offset=9999999999999999999"], "it is at most"),
    ] {
        let ran = place.run(args);
        assert!(ran.code == 2 && ran.err.contains(said), "{args:?}: {ran:?}");
    }
}
