//! List, show, cancel, requeue.

use serde_json::json;

use crate::place::Place;

fn ids(place: &Place, args: &[&str]) -> Vec<String> {
    let jobs = place.json(&[&["jobs", "list"], args].concat());
    jobs.as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lists_are_filtered_and_paged_newest_first() {
    let place = Place::new();
    let a = place.enqueue(&["a", "--queue=mail"]);
    let b = place.enqueue(&["b", "--tenant=acme"]);
    let c = place.enqueue(&["b", "--queue=mail"]);
    for (args, expected) in [
        (&[][..], vec![&c, &b, &a]),
        (&["--queue=mail"], vec![&c, &a]),
        (&["--kind=b"], vec![&c, &b]),
        (&["--tenant=acme"], vec![&b]),
        (&["--recent=1"], vec![&c]),
        (&["--limit=2", "--before", &c], vec![&b, &a]),
        (&["--state=queued", "--kind=a"], vec![&a]),
        (&["--state=dead"], vec![]),
        (&["--stuck=5m"], vec![]),
    ] {
        assert_eq!(ids(&place, args).iter().collect::<Vec<_>>(), expected, "{args:?}");
    }
}

#[test]
fn a_list_for_people_has_one_line_per_job() {
    let place = Place::new();
    let empty = place.run(&["jobs", "list"]);
    assert!(empty.out.contains("No jobs yet"), "{}", empty.out);
    let id = place.enqueue(&["mail.send", "{\"secret\":1}", "--delay=10m"]);
    let ran = place.run(&["jobs", "list"]);
    let rows: Vec<&str> = ran.out.lines().collect();
    assert!(rows.len() == 2 && rows[0].starts_with("ID ") && rows[1].starts_with(&id), "{}", ran.out);
    assert!(rows[1].contains("mail.send") && rows[1].contains("due in ") && !ran.out.contains("secret"), "{}", ran.out);
    assert!(!ran.out.contains('\x1b'), "colours are for terminals");
    let more = place.run(&["jobs", "list", "--limit=1"]);
    assert!(more.out.contains(&format!("--before {id}")), "{}", more.out);
}

#[test]
fn a_queued_job_is_canceled_and_requeued() {
    let place = Place::new();
    let id = place.enqueue(&["report", "{\"n\":1}"]);
    assert_eq!(place.json(&["jobs", "cancel", &id, "--reason=not needed"])["canceled"], "now");
    assert_eq!(place.json(&["jobs", "cancel", &id])["canceled"], "before");
    let job = place.json(&["jobs", "show", &id]);
    assert_eq!((&job["state"], &job["attempts"][0]["how"]), (&json!("canceled"), &json!("canceled")));

    let shown = place.run(&["jobs", "show", &id]).out;
    for part in ["Job ", "canceled", "Payload", "\"n\": 1", "Timeline", "enqueued", "(now)"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    assert_eq!(place.json(&["jobs", "requeue", &id]), json!({ "requeued": 1, "refused": [] }));
    assert_eq!(place.json(&["jobs", "show", &id])["state"], "queued");
    let again = place.run(&["jobs", "requeue", &id]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.err.contains(&id) || again.err.contains("queued"), "{}", again.err);
}

#[test]
fn requeue_in_bulk_takes_what_matches_and_tells_what_was_refused() {
    let place = Place::new();
    let mail = place.enqueue(&["a", "--queue=mail"]);
    let other = place.enqueue(&["a"]);
    let unique = place.enqueue(&["a", "--unique=u"]);
    for id in [&mail, &other, &unique] {
        place.json(&["jobs", "cancel", id]);
    }
    // The key was free while its first holder was canceled, and belongs to another job now.
    place.enqueue(&["a", "--unique=u"]);
    assert_eq!(place.json(&["jobs", "requeue", "--state=canceled", "--queue=mail", "--dry-run"])["would_requeue"], 1);
    assert_eq!(place.json(&["jobs", "requeue", "--state=canceled", "--queue=mail"])["requeued"], 1);
    let rest = place.run(&["jobs", "requeue", "--state=canceled", "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&rest.out).unwrap();
    assert_eq!((rest.code, &answer["requeued"]), (1, &json!(1)), "{rest:?}");
    assert_eq!((&answer["refused"][0]["id"], &answer["refused"][0]["code"]), (&json!(unique), &json!("conflict")));
    assert_eq!(ids(&place, &["--state=canceled"]), [unique]);
    assert_eq!(place.json(&["jobs", "requeue", "--state=dead"])["requeued"], 0);
}

#[test]
fn a_job_of_another_tenant_does_not_exist() {
    let place = Place::new();
    let id = place.enqueue(&["a", "--tenant=acme"]);
    for command in ["show", "cancel", "requeue"] {
        let ran = place.run(&["jobs", command, &id, "--tenant=other", "--json"]);
        assert_eq!((ran.code, &ran.error()["code"]), (1, &json!("not_found")), "{command}: {ran:?}");
    }
    assert_eq!(place.json(&["jobs", "show", &id, "--tenant=acme"])["state"], "queued");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let place = Place::new();
    place.run_with(&["enqueue", "--file", "-"], "{\"kind\":\"k\"}\n".repeat(1_000).as_bytes());
    let mut child = place.command(&["jobs", "list", "--limit=1000"]).spawn().unwrap();
    // Closed before anything is read: 100 kB do not fit into a pipe.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap()), (Some(0), String::new()));
}
