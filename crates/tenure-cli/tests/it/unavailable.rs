//! A store that is not there: exit code 3, where it should have been, and who said so.

use serde_json::json;

use crate::place::Place;

#[test]
fn a_file_that_cannot_be_made_is_told_with_its_origin() {
    let place = Place::new();
    place.write("plain", "");
    let ran = place.run(&["jobs", "list", "--data-dir=plain/below"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("plain/below") && ran.err.contains("--data-dir"), "{}", ran.err);
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let place = Place::new();
    let path = place.write("notes.txt", "dear diary ".repeat(1_000));
    let ran = place.run(&["jobs", "list", "--database=notes.txt", "--json"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.error()["message"].as_str().unwrap().contains("notes.txt"), "{}", ran.err);
    assert!(std::fs::read_to_string(path).unwrap().starts_with("dear diary"));
}

#[test]
fn a_server_that_does_not_answer_is_told_without_the_password() {
    // Port 1 of the loopback: nothing listens there.
    let place = Place::new().with_env("DATABASE_URL", "postgres://ops:secret@127.0.0.1:1/app");
    let ran = place.run(&["jobs", "list"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("postgres://127.0.0.1:1/app") && ran.err.contains("DATABASE_URL"), "{}", ran.err);
    assert!(!ran.err.contains("secret"), "{}", ran.err);
    let ran = place.run(&["jobs", "list", "--json"]);
    assert_eq!((ran.code, &ran.error()["code"]), (3, &json!("unavailable")));
}

#[test]
fn the_embedded_store_is_set_up_on_first_use_and_migrate_says_so() {
    let place = Place::new();
    let missing = place.json(&["migrate", "dry-run"]);
    assert!(!missing["missing"].as_array().unwrap().is_empty(), "{missing}");
    place.enqueue(&["a"]);
    assert_eq!(place.json(&["migrate"])["applied"], json!([]));
    let status = place.json(&["migrate", "status"]);
    assert!(status["migrations"].as_array().unwrap().iter().all(|step| step["applied"] == true), "{status}");
    assert_eq!(place.json(&["migrate", "dry-run"])["missing"], json!([]));
    let fresh = Place::new();
    assert!(fresh.run(&["migrate"]).out.contains("applied "), "a fresh store is migrated by hand as well");
}
