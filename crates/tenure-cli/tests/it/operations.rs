//! Operations from the command line: begun, listed, shown and stopped; a server does them.

use serde_json::json;

use crate::place::Place;
use crate::running::Running;

#[test]
fn an_operation_is_begun_shown_done_by_a_server_and_listed() {
    let place = Place::new();
    let jobs = [place.enqueue(&["noop", "--queue=mail"]), place.enqueue(&["noop", "--queue=mail"])];
    let other = place.enqueue(&["noop", "--queue=web"]);
    let begun = place.json(&["operations", "start", "cancel", "--state=queued", "--queue=mail", "--reason=outage"]);
    assert_eq!(
        (&begun["act"], &begun["queue"], &begun["name"]),
        (&json!("cancel"), &json!("mail"), &json!("cancel queued"))
    );
    let id = begun["id"].as_str().unwrap();
    assert_eq!(place.json(&["operations", "show", id])["finished_at"], json!(null));
    let server = Running::start(&place, &["server", "--listen=127.0.0.1:0"]);
    place.until("the operation is done", || place.json(&["operations", "show", id])["finished_at"].is_string());
    drop(server);
    let listed = place.json(&["operations", "list"]);
    assert_eq!((&listed[0]["id"], &listed[0]["done"]), (&json!(id), &json!(2)), "{listed}");
    for job in &jobs {
        assert_eq!(place.json(&["jobs", "show", job])["state"], "canceled");
    }
    assert_eq!(place.json(&["jobs", "show", &other])["state"], "queued");
    let table = place.run(&["operations", "list"]).out;
    assert!(table.contains("2/2") && table.contains("queued, queue mail"), "{table}");
}

#[test]
fn an_operation_is_stopped_and_other_jobs_are_none() {
    let place = Place::new();
    let job = place.enqueue(&["noop"]);
    for what in ["show", "cancel"] {
        assert_eq!(place.run(&["operations", what, &job]).code, 1, "a job is no operation: {what}");
    }
    assert_eq!(place.json(&["jobs", "show", &job])["state"], "queued");
    let begun = place.json(&["operations", "start", "cancel", "--state=queued"]);
    let id = begun["id"].as_str().unwrap();
    place.json(&["operations", "cancel", id, "--reason=no"]);
    assert_eq!(place.json(&["jobs", "show", id])["state"], "canceled");
    let refused = place.run(&["operations", "start", "requeue", "--state=queued"]);
    assert!(refused.code == 2 && refused.err.contains("failed, dead or canceled"), "{refused:?}");
}
