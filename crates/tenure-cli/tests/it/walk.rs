//! The walk of the README, typed as it stands there: a tenant, a job, a worker of curl's, a signed webhook.

use std::net::TcpListener;
use std::process::Command;

use crate::place::Place;

const MARK: &str = "<!-- crates/tenure-cli/tests/it/walk.rs runs this -->";

#[test]
fn the_walk_of_the_readme_ends_with_a_verified_webhook() {
    let readme = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(readme).unwrap();
    let script = readme.split_once(MARK).unwrap().1.split("```").nth(1).unwrap().strip_prefix("sh\n").unwrap();
    let [server, receiver] = free_ports();
    let script = script.replace("7400", &server).replace("7401", &receiver);
    let script = script.replace("tenure server", &format!("tenure server --listen 127.0.0.1:{server}"));
    // What a person at a terminal would see go wrong ends it, and nothing is left running.
    let script = format!("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n{script}");
    let place = Place::new();
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_tenure")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    let bash = bash.args(["-c", &script]).current_dir(place.path("")).env("PATH", path).env("HOME", place.path("home"));
    let ended = bash.env_remove("DATABASE_URL").env_remove("TENURE_DATABASE_URL").output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{out}\n{err}");
    let heard = out.lines().find(|line| line.starts_with("job.succeeded")).unwrap_or_else(|| panic!("{out}\n{err}"));
    assert!(heard.ends_with("verified"), "{heard}");
    assert!(out.contains("\"receipt\": 7"), "{out}");
}

/// Two ports that nobody had a moment ago.
fn free_ports() -> [String; 2] {
    let [one, two] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    [one, two].map(|listener| listener.local_addr().unwrap().port().to_string())
}
