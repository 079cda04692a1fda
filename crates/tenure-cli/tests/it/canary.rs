//! Canaries: secrets that are put in everywhere, and looked for in every log line and every column that says what went
//! wrong.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use serde_json::{Value, json};

use crate::place::Place;
use crate::running::Running;

/// In a payload, in the result of a job, in the query of a webhook's URL.
const CANARY: &str = "c4n4ry-7f3a";

struct Server {
    process: Running,
    address: String,
}

impl Server {
    fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Value {
        let body = body.to_string();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = body.len();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\n\
             {headers}content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap_or(Value::Null)
    }
}

#[test]
fn no_secret_is_in_a_log_or_in_the_database() {
    let place = Place::new()
        .with_env("TENURE_WEBHOOK_HTTP", "true")
        .with_env("TENURE_WEBHOOK_ALLOW", "127.0.0.0/8")
        .with_env("TENURE_WEBHOOK_PORTS", "any");
    let scopes = "--scopes=enqueue,read,operate,worker,admin";
    let key = place.json(&["keys", "create", "--name=ops", scopes])["key"].as_str().unwrap().to_owned();
    let log = ["server", "--listen=127.0.0.1:0", "--json", "--log=json", "--log-level=trace"];
    let mut process = Running::start(&place, &log);
    let line: Value = serde_json::from_str(&process.first_line()).unwrap();
    let address = line["url"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
    let server = Server { process, address };
    let bearer = format!("Bearer {key}");
    let ops = [("authorization", bearer.as_str())];

    // A receiver that refuses: its answer and the URL must not be repeated by whoever logs the failure.
    let receiver = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook?token={CANARY}", receiver.local_addr().unwrap());
    let made = server.call("POST", "/v1/webhooks", &ops, &json!({ "url": url, "events": ["job.failed"] }));
    let secret = made["secret"].as_str().unwrap().to_owned();

    let job = server.call("POST", "/v1/jobs", &ops, &json!({ "kind": "a", "payload": { "card": CANARY } }));
    let job = job["id"].as_str().unwrap();
    let token =
        server.call("POST", "/v1/workers", &ops, &json!({ "name": "far" }))["token"].as_str().unwrap().to_owned();
    let worker = [ops[0], ("tenure-worker", token.as_str())];
    let claim = json!({ "queues": ["default"], "limit": 1, "wait_ms": 10_000 });
    let lease = server.call("POST", "/v1/leases", &worker, &claim)["lease"]["lease"].clone();
    // Refused, because it is no JSON object of the right kind; then it fails for good.
    let path = format!("/v1/leases/{lease}/jobs/{job}");
    let refused = server.call("POST", &format!("{path}/complete"), &worker, &json!({ "result": CANARY, "no": CANARY }));
    assert_eq!(refused["code"], "invalid", "{refused}");
    server.call("POST", &format!("{path}/fail"), &worker, &json!({ "class": "permanent", "message": "it is wrong" }));
    let (mut stream, _) = receiver.accept().unwrap();
    let mut begun = [0; 200];
    let read = stream.read(&mut begun).unwrap();
    assert!(String::from_utf8_lossy(&begun[..read]).contains(CANARY), "the receiver gets its token");
    stream.write_all(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n").unwrap();
    let wrong = [("authorization", "Bearer tnk_c4n4ry-7f3a")];
    assert_eq!(server.call("GET", "/v1/jobs", &wrong, &json!({}))["code"], "unauthorized");

    let ran = server.process.terminate();
    assert!(ran.err.lines().count() > 20, "it logs: {}", ran.err);
    let audit = place.run(&["audit", "tail", "--json", "--limit=100"]).out;
    let dead = place.run(&["jobs", "list", "--json"]).out;
    for secret in [CANARY, key.as_str(), secret.trim_start_matches("whsec_"), token.as_str()] {
        for (place, text) in
            [("the log", &ran.err), ("the output", &ran.out), ("the journal", &audit), ("errors", &dead)]
        {
            assert!(!text.contains(secret), "a secret is in {place}: {text}");
        }
    }
    // The file holds payloads and URLs, and neither keys nor secrets nor tokens.
    let database = std::fs::read(place.path(".local/share/tenure/tenure.db")).unwrap();
    let wal = std::fs::read(place.path(".local/share/tenure/tenure.db-wal")).unwrap_or_default();
    for secret in [key.as_str(), secret.trim_start_matches("whsec_"), token.as_str()] {
        let holds = |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        assert!(!holds(&database) && !holds(&wal), "a secret is in the file");
    }
}
