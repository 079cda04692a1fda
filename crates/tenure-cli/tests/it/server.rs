//! `tenure server` and `tenure dev` as processes.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::place::Place;
use crate::postgres::Server as Database;
use crate::running::Running;

/// A server that listens on a port of its own.
pub(crate) struct Served {
    pub(crate) process: Running,
    address: String,
}

impl Served {
    pub(crate) fn start(place: &Place, args: &[&str]) -> Self {
        Self::of(Running::start(place, &[args, &["--listen=127.0.0.1:0", "--json"]].concat()))
    }

    fn of(mut process: Running) -> Self {
        let line: Value = serde_json::from_str(&process.first_line()).unwrap();
        let address = line["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { process, address }
    }

    pub(crate) fn call(&self, method: &str, path: &str, key: &str, body: &str) -> (u16, Value) {
        self.call_with(method, path, &[("authorization", &format!("Bearer {key}"))], body)
    }

    pub(crate) fn call_with(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n{headers}\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        let body = text.split_once("\r\n\r\n").unwrap().1;
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }
}

/// F56: four hundred silent connections and a limit of 256 open files: the API answers, and its log says what fits.
#[test]
fn silent_connections_do_not_use_up_the_open_files() {
    let place = Place::new();
    let args = ["dev", "--listen=127.0.0.1:0", "--json", "--log=json"];
    let served = Served::of(Running::start_with_files(&place, 256, &args));
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(TcpStream::connect(&served.address).unwrap());
    }
    for _ in 0..20 {
        let (status, stored) = served.call("POST", "/v1/jobs", "", r#"{"kind":"sleep","payload":{"for":"1ms"}}"#);
        assert_eq!(status, 201, "{stored}");
    }
    // The bite: far more were opened than the process can have open, so the first ones were closed for others.
    let mut byte = [0];
    silent[0].set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    assert_eq!(silent[0].read(&mut byte).unwrap_or(0), 0, "closed");
    let ended = served.process.terminate();
    assert!(ended.err.contains("leaves fewer connections") && ended.err.contains("\"connections\":128"), "{ended:?}");
    assert!(!ended.err.contains("cannot be accepted"), "no accept failed: {ended:?}");
}

fn key(place: &Place, args: &[&str]) -> String {
    place.json(&[&["keys", "create", "--name=test"], args].concat())["key"].as_str().unwrap().to_owned()
}

/// Keys made by the command line open the server, whatever the store; what it stores the command line sees. Answers what
/// was logged.
pub(crate) fn serves(place: &Place) -> String {
    place.json(&["tenants", "create", "acme"]);
    let shop = key(place, &["--tenant=acme", "--scopes=enqueue,read"]);
    place.json(&["queues", "set", "mail", "--fair=true"]);
    // What an operator allows stays so.
    place.json(&["gates", "set", "tenure.operation/*", "--concurrency=3"]);
    let served = Served::start(place, &["server"]);
    let (status, stored) = served.call("POST", "/v1/jobs", &shop, r#"{"kind":"mail.send","queue":"mail"}"#);
    assert_eq!(status, 201, "{stored}");
    let id = stored["id"].as_str().unwrap();
    assert_eq!(place.json(&["jobs", "show", id])["tenant"], "acme");
    assert_eq!(served.call("GET", "/v1/jobs", "tnk_wrong", "").0, 401);
    assert_eq!(
        served.call("GET", "/v1/health/ready", "", "").1["checks"],
        json!([{ "name": "store", "status": "ok", "required": true }])
    );
    // The server itself takes back what dead workers held, and seals.
    let work = key(place, &["--scopes=worker"]);
    assert_eq!(served.call("POST", "/v1/workers", &work, "{}").0, 201);
    let rules = served.call("GET", "/v1/rules", &key(place, &["--scopes=read"]), "").1;
    let at_once = |pattern: &str| {
        let rules = rules["items"].as_array().unwrap();
        rules.iter().find(|rule| rule["pattern"] == pattern).map(|rule| rule["concurrency"].clone())
    };
    assert_eq!((at_once("tenure.webhook/*"), at_once("tenure.operation/*")), (Some(json!(8)), Some(json!(3))));
    place.until("the journal is sealed", || {
        place.json(&["audit", "verify"])["seals"].as_i64().is_some_and(|seals| seals > 0)
    });
    let ended = served.process.terminate();
    assert_eq!(ended.code, 0, "{}", ended.err);
    for secret in [&shop, &work] {
        assert!(!ended.err.contains(secret.as_str()), "keys are not logged: {}", ended.err);
    }
    ended.err
}

#[test]
fn a_server_serves_an_embedded_store() {
    let place = Place::new();
    assert!(!serves(&place).contains("second wall"), "a file has none");
}

#[test]
fn a_server_serves_postgres() {
    let database = Database::new();
    assert_eq!(database.place.run(&["migrate"]).code, 0);
    let said = Served::start(&database.place, &["server"]).process.terminate().err;
    assert!(said.contains("no second wall") && said.contains("tenure migrate --roles"), "{said}");
    assert_eq!(database.place.run(&["migrate", "--roles"]).code, 0);
    let said = serves(&database.place);
    assert!(said.contains("the second wall stands"), "{said}");
}

#[test]
fn dev_runs_jobs_and_asks_for_no_key() {
    let place = Place::new();
    let served = Served::start(&place, &["dev"]);
    let (status, stored) = served.call("POST", "/v1/jobs", "", r#"{"kind":"noop"}"#);
    assert_eq!(status, 201, "{stored}");
    let path = format!("/v1/jobs/{}", stored["id"].as_str().unwrap());
    let hook = r#"{"url":"http://127.0.0.1:9/hook"}"#;
    assert_eq!(served.call("POST", "/v1/webhooks", "", hook).0, 201, "for trying out it may reach this machine");
    place.until("it has run", || served.call("GET", &path, "", "").1["state"] == "succeeded");
    assert_eq!(served.process.terminate().code, 0);
}

/// Its own worker takes back what dead ones held: a server without it would only look well.
#[test]
fn a_server_whose_worker_is_stopped_goes_with_it() {
    let place = Place::new();
    let served = Served::start(&place, &["dev", "--worker-id=own"]);
    place.until("its worker is there", || place.json(&["workers", "list"])[0]["name"] == "own");
    let no = place.json(&["workers", "list"])[0]["id"].to_string();
    place.json(&["workers", "stop", &no]);
    let process = std::cell::RefCell::new(served.process);
    place.until("it has gone", || process.borrow_mut().has_ended());
}

#[test]
fn where_it_cannot_listen_it_says_so() {
    let place = Place::new();
    for (args, part) in [
        (["dev", "--listen=0.0.0.0:0"], "without keys it listens on this machine only"),
        (["server", "--listen=somewhere"], "such as 127.0.0.1:7400"),
        (["server", "--listen=192.0.2.1:7400"], "cannot be listened on"),
    ] {
        let refused = place.run(&args);
        assert!(refused.code != 0 && refused.err.contains(part), "{args:?}: {refused:?}");
    }
}
