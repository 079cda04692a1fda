//! The same commands on Postgres.

use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;
use tenure_contract::postgres_server::{psql, shared_admin_url};

use crate::place::Place;

/// A database that goes with this value, and a place whose commands use it.
struct Server {
    name: String,
    url: String,
    place: Place,
}

impl Server {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("cli_{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::SeqCst));
        psql(shared_admin_url(), &format!("create database {name}")).unwrap();
        let url = format!("{}/{name}", shared_admin_url().rsplit_once('/').unwrap().0);
        Self { place: Place::new().with_env("DATABASE_URL", &url), url, name }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A database that stays costs disk until its cluster goes: no reason to fail a test.
        let _left_behind = psql(shared_admin_url(), &format!("drop database if exists {} with (force)", self.name));
    }
}

#[test]
fn a_database_is_set_up_once_and_then_used() {
    let server = Server::new();
    let place = &server.place;
    let early = place.run(&["jobs", "list"]);
    assert_eq!(early.code, 3);
    assert!(early.err.contains("tenure migrate"), "{}", early.err);
    let missing = place.json(&["migrate", "dry-run"])["missing"].as_array().unwrap().len();
    assert_eq!(place.json(&["migrate"])["applied"].as_array().unwrap().len(), missing);
    assert_eq!(place.json(&["migrate"])["applied"], json!([]));

    let id = place.enqueue(&["mail.send", "{\"to\": 1}", "--queue=mail", "--unique=k"]);
    assert_eq!(place.enqueue(&["mail.send", "{\"to\": 2}", "--queue=mail", "--unique=k"]), id);
    assert_eq!(place.json(&["jobs", "show", &id])["state"], "queued");
    assert_eq!(place.json(&["jobs", "cancel", &id])["canceled"], "now");
    assert_eq!(place.run(&["jobs", "requeue", &id]).code, 0);
    assert_eq!(place.json(&["jobs", "list", "--state=queued"])[0]["id"], json!(id));
    assert_eq!(place.run(&["queues", "pause", "mail", "--reason=provider is down"]).code, 0);
    assert_eq!(place.json(&["queues", "list"])[1]["paused"], true);
    assert_eq!(place.run(&["queues", "resume", "mail"]).code, 0);
    let verified = place.json(&["audit", "verify", "--seal"]);
    assert_eq!((&verified["findings"], &verified["rows"]), (&json!([]), &json!(4)), "{verified}");
}

#[test]
fn a_restored_database_is_refused_until_it_is_rehomed() {
    let server = Server::new();
    let place = &server.place;
    assert_eq!(place.run(&["migrate"]).code, 0);
    assert_eq!(place.run(&["migrate", "rehome"]).code, 1, "it is at home already");
    psql(&server.url, "update tenure.home set system_identifier = 42").unwrap();
    let refused = place.run(&["jobs", "list"]);
    assert_eq!(refused.code, 3);
    assert!(refused.err.contains("tenure migrate rehome"), "{}", refused.err);
    assert_eq!(place.json(&["migrate", "rehome"])["rehomed"], true);
    assert_eq!(place.json(&["jobs", "list"]), json!([]));
    assert_eq!(place.json(&["audit", "verify", "--seal"])["findings"], json!([]));
}
