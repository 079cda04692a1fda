//! Connections: slow, many, cut off, and the end of the server.

use std::time::Duration;

use serde_json::json;
use tenure_server::{Auth, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::broadcast;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::http::{Caller, Reply};
use crate::place::{Place, options};

/// Far beyond what a test waits for when all is well.
const LONG: Duration = Duration::from_secs(60);

fn hasty() -> Options {
    let soon = Duration::from_millis(300);
    Options { head_timeout: soon, body_timeout: soon, ..options() }
}

async fn open(place: &Place) -> TcpStream {
    TcpStream::connect(place.root.address).await.expect("connect")
}

/// Everything until the server closes the connection.
async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _reset = timeout(LONG, stream.read_to_end(&mut bytes)).await.expect("the server closes it");
    bytes
}

/// F46: heads that never end are cut off, the first one and the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_does_not_come_is_not_waited_for() {
    let place = Place::sqlite_with(hasty()).await;
    for begun in ["", "GET /v1/health/live HTTP/1.1\r\nhost: a\r\n", "GET /v1/health/live HTTP/1.1\r\nx: "] {
        let mut stream = open(&place).await;
        stream.write_all(begun.as_bytes()).await.expect("write");
        rest(&mut stream).await;
    }
    let mut stream = open(&place).await;
    stream.write_all(b"GET /v1/health/live HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("write");
    let answered = rest(&mut stream).await;
    assert_eq!(Reply::read(&answered).status, 200, "answered, and closed when no other request came");
}

/// F46: so are bodies, with an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let place = Place::sqlite_with(hasty()).await;
    let key = &place.root.headers[0].1;
    let head =
        format!("POST /v1/jobs HTTP/1.1\r\nhost: a\r\nauthorization: {key}\r\ncontent-type: application/json\r\n");
    for sized in ["content-length: 100\r\n\r\n{\"kind\":", "transfer-encoding: chunked\r\n\r\n5\r\n{\"kin\r\n"] {
        let mut stream = open(&place).await;
        stream.write_all(format!("{head}{sized}").as_bytes()).await.expect("write");
        let reply = Reply::read(&rest(&mut stream).await);
        assert_eq!(reply.code(408), "timeout");
    }
    assert_eq!(place.root.get("/v1/jobs").await.ok(200)["items"], json!([]));
}

/// A body that is too large is refused before it is read, by its announced length or when it has become too long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_body_is_refused() {
    let place = Place::sqlite_with(Options { body_bytes_max: 1_000, ..options() }).await;
    let key = &place.root.headers[0].1;
    let head =
        format!("POST /v1/jobs HTTP/1.1\r\nhost: a\r\nauthorization: {key}\r\ncontent-type: application/json\r\n");
    let chunk = format!("transfer-encoding: chunked\r\n\r\n3e9\r\n{}\r\n0\r\n\r\n", "x".repeat(1_001));
    for sized in ["content-length: 104857600\r\n\r\n", chunk.as_str()] {
        let mut stream = open(&place).await;
        stream.write_all(format!("{head}connection: close\r\n{sized}").as_bytes()).await.expect("write");
        let mut bytes = vec![0; 4_096];
        let read = timeout(LONG, stream.read(&mut bytes)).await.expect("an answer").expect("read");
        assert_eq!(Reply::read(&bytes[..read]).status, 413);
    }
}

/// All bodies together have a bound; who comes when it is reached is told to come again, and can when others have gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_share_a_bounded_memory_and_give_it_back() {
    let tight = Options {
        body_bytes_max: 1_000_000,
        bodies_bytes_max: 1_000_000,
        body_timeout: LONG,
        body_stall: LONG,
        ..options()
    };
    let place = Place::sqlite_with(tight).await;
    let payload = "x".repeat(600_000);
    let large = json!({ "kind": "a", "payload": payload });
    // However often they are refused, broken off or stored: nothing of them is left behind.
    for n in 0..30 {
        place.root.post("/v1/jobs", json!({ "kind": "not a kind", "payload": payload })).await.code(422);
        let stored = place.root.post("/v1/jobs", large.clone()).await;
        assert_eq!(stored.status, 201, "{n}: {}", stored.text);
    }
    let key = &place.root.headers[0].1;
    let mut slow = open(&place).await;
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: a\r\nauthorization: {key}\r\ncontent-type: application/json\r\ncontent-length: 900000\r\n\r\n"
    );
    slow.write_all(format!("{head}{}", "x".repeat(800_000)).as_bytes()).await.expect("write");
    let status = async || place.root.post("/v1/jobs", large.clone()).await.status;
    let full = async { while status().await != 503 {} };
    timeout(LONG, full).await.expect("the memory is used up");
    drop(slow);
    let free = async { while status().await != 201 {} };
    timeout(LONG, free).await.expect("it is given back");
}

/// Sends all of a body but its last byte, and keeps the connection.
async fn hold_back(place: &Place, key: &Caller, bytes: usize) -> TcpStream {
    let authorization = &key.headers[0].1;
    let mut stream = open(place).await;
    let head = format!(
        "POST /v1/jobs HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: {authorization}\r\ncontent-type: application/json\r\ncontent-length: {bytes}\r\n\r\n"
    );
    let body = format!(r#"{{"kind": "held", "payload": "{}"}}"#, "x".repeat(bytes - 31));
    assert_eq!(body.len(), bytes);
    // A server that refuses it does not read on.
    let _refused = stream.write_all((head + &body[..bytes - 1]).as_bytes()).await;
    stream
}

/// F56: bodies that one key holds back stop neither other callers nor small calls of the same key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_that_one_key_holds_back_stop_nobody_else() {
    const BODY: usize = 1 << 20;
    const HELD: usize = 8;
    let roomy = Options {
        body_bytes_max: BODY,
        bodies_bytes_max: 4 * HELD * BODY,
        body_timeout: LONG,
        body_stall: LONG,
        ..options()
    };
    let place = Place::sqlite_with(roomy).await;
    let hostile = place.key(Some("acme"), "enqueue,read").await;
    let (other, worker) = (place.key(Some("other"), "enqueue").await, place.worker().await);
    place.enqueue(json!({ "kind": "a" })).await;
    let claimed = worker.post("/v1/leases", json!({ "queues": ["default"], "limit": 1 })).await.ok(200);
    let renewal = format!("/v1/leases/{}/renew", claimed["lease"]["lease"]);
    let mut held = JoinSet::new();
    let (finish, _) = broadcast::channel::<()>(1);
    for _ in 0..40 {
        let (mut stream, mut finished) = (hold_back(&place, &hostile, BODY).await, finish.subscribe());
        held.spawn(async move {
            let mut answer = vec![0; 4_096];
            let early = tokio::select! {
                read = stream.read(&mut answer) => Some(read.unwrap_or(0)),
                _ = finished.recv() => None,
            };
            match early {
                Some(read) => Reply::read(&answer[..read]).status,
                None => {
                    stream.write_all(b"}").await.expect("the last byte");
                    Reply::read(&rest(&mut stream).await).status
                }
            }
        });
    }
    // The bite: all but a quarter of the memory are refused, and that quarter is held.
    for _ in 0..40 - HELD {
        let refused = timeout(LONG, held.join_next()).await.expect("refused").expect("one").expect("no panic");
        // The rest of a refused body may reset the connection before its answer is read.
        assert!([503, 0].contains(&refused), "{refused}");
    }
    let large = json!({ "kind": "a", "payload": "x".repeat(200_000) });
    for n in 0..20 {
        assert_eq!(other.post("/v1/jobs", large.clone()).await.status, 201, "{n}");
        worker.post(&renewal, json!({})).await.ok(200);
        hostile.post("/v1/jobs", json!({ "kind": "small" })).await.ok(201);
    }
    assert_eq!(hostile.post("/v1/jobs", large).await.code(503), "busy");
    finish.send(()).expect("they listen");
    let mut stored = 0;
    while let Some(status) = held.join_next().await {
        stored += usize::from(status.expect("no panic") == 201);
    }
    assert_eq!(stored, HELD, "they were really held: each is stored when its last byte comes");
}

/// F56: a large body has to go on; small ones have the whole time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_body_that_stands_still_is_refused_before_its_whole_time_is_over() {
    let strict = Options { body_timeout: 10 * LONG, body_stall: Duration::from_millis(300), ..options() };
    let place = Place::sqlite_with(strict).await;
    let mut stream = hold_back(&place, &place.root, 1 << 20).await;
    assert_eq!(Reply::read(&rest(&mut stream).await).code(408), "timeout");
    let mut small = hold_back(&place, &place.root, 1_000).await;
    let mut other = hold_back(&place, &place.root, 100_000).await;
    assert_eq!(Reply::read(&rest(&mut other).await).status, 408);
    small.write_all(b"}").await.expect("the last byte");
    assert_eq!(Reply::read(&rest(&mut small).await).status, 201);
}

/// F56: a key without the scope is refused on every route before a byte of the body is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_body_is_read_of_a_caller_without_the_scope() {
    let place = Place::sqlite_with(Options { body_timeout: LONG, body_stall: LONG, ..options() }).await;
    let key = place.key(None, "read").await;
    let document: serde_json::Value = serde_json::from_str(&tenure_server::api::openapi()).expect("JSON");
    let mut tried = 0;
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, call) in methods.as_object().expect("methods") {
            if call.get("requestBody").is_none() {
                continue;
            }
            let path: String = path
                .split('/')
                .map(|part| if part.starts_with('{') { "x" } else { part })
                .fold(String::new(), |path, part| if part.is_empty() { path } else { path + "/" + part });
            for authorization in [&key.headers[0].1, "Bearer nonsense"] {
                let mut stream = open(&place).await;
                let head = format!(
                    "{} {path} HTTP/1.1\r\nhost: a\r\nauthorization: {authorization}\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n",
                    method.to_uppercase()
                );
                stream.write_all(head.as_bytes()).await.expect("write");
                let mut answer = vec![0; 4_096];
                // Long before the body's time is over.
                let read = timeout(LONG / 2, stream.read(&mut answer)).await;
                let read = read.unwrap_or_else(|_| panic!("{method} {path} waits for its body")).expect("read");
                let expected = if authorization.ends_with("nonsense") { 401 } else { 403 };
                assert_eq!(Reply::read(&answer[..read]).status, expected, "{method} {path}");
            }
            tried += 1;
        }
    }
    assert!(tried > 30, "{tried}");
}

/// F46: thousands of silent connections, and others are served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_stop_nobody() {
    let place = Place::sqlite_with(Options { head_timeout: LONG, ..options() }).await;
    let mut silent = Vec::new();
    for _ in 0..5_000 {
        silent.push(open(&place).await);
    }
    for _ in 0..50 {
        place.root.post("/v1/jobs", json!({ "kind": "a" })).await.ok(201);
    }
    assert_eq!(silent.len(), 5_000, "they are still there");
}

/// F56: where every place is taken by a silent or idle connection, the next one is served all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_make_room_for_others() {
    let place = Place::sqlite_with(Options { connections_max: 8, head_timeout: 10 * LONG, ..options() }).await;
    let mut silent = Vec::new();
    for begun in ["", "GET /v1/he"].iter().cycle().take(60) {
        let mut stream = open(&place).await;
        stream.write_all(begun.as_bytes()).await.expect("write");
        silent.push(stream);
    }
    for _ in 0..20 {
        let stored = timeout(LONG, place.root.post("/v1/jobs", json!({ "kind": "a" }))).await;
        stored.expect("it is served").ok(201);
    }
    // A request that is under way keeps its connection, however many come.
    let worker = place.worker().await;
    let waiting = tokio::spawn(async move {
        worker.post("/v1/leases", json!({ "queues": ["mail"], "limit": 1, "wait_ms": 30_000 })).await
    });
    let mut idle = Vec::new();
    for _ in 0..20 {
        let mut stream = open(&place).await;
        stream.write_all(b"GET /v1/health/live HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("write");
        let mut answer = vec![0; 4_096];
        let read = timeout(LONG, stream.read(&mut answer)).await.expect("an answer").expect("read");
        assert_eq!(Reply::read(&answer[..read]).status, 200);
        idle.push(stream);
    }
    place.root.post("/v1/jobs", json!({ "kind": "a", "queue": "mail" })).await;
    let claimed = timeout(LONG, waiting).await.expect("in time").expect("no panic").ok(200);
    assert_eq!(claimed["lease"]["jobs"].as_array().map(Vec::len), Some(1), "{claimed}");
    let closed = async |stream: &mut TcpStream| rest(stream).await.is_empty();
    assert!(closed(&mut silent[0]).await, "the first one was closed");
}

/// More than are allowed at once wait, and come in when others leave.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beyond_the_limit_wait_for_their_turn() {
    let place = Place::sqlite_with(Options { connections_max: 2, head_timeout: LONG, ..options() }).await;
    let (one, two) = (open(&place).await, open(&place).await);
    let root = place.root.clone();
    let waiting = tokio::spawn(async move { root.get("/v1/health/live").await });
    // Nothing tells that somebody waits; the answer comes only because others leave.
    drop((one, two));
    let answered = timeout(LONG, waiting).await.expect("in time").expect("an answer");
    assert_eq!(answered.status, 200);
}

/// Whoever is answered is answered; whoever comes later finds nobody; those who wait for work are sent home.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_answers_what_it_has_begun() {
    let mut place = Place::sqlite().await;
    let worker = place.worker().await;
    let waiting = tokio::spawn(async move {
        worker.post("/v1/leases", json!({ "queues": ["default"], "limit": 1, "wait_ms": 30_000 })).await.ok(200)
    });
    // Its claim is there when the queue is known to be waited for.
    while place.root.get("/v1/health/live").await.status != 200 {}
    let stopping = place.stop();
    timeout(LONG, stopping).await.expect("it stops").expect("without a panic");
    if let Ok(answered) = timeout(LONG, waiting).await.expect("in time") {
        assert_eq!(answered["lease"], serde_json::Value::Null);
    }
    assert!(TcpStream::connect(place.root.address).await.is_err(), "nobody listens");
}

/// Garbage, half requests, resets: each ends its own connection and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage_ends_its_own_connection() {
    let place = Place::sqlite_with(hasty()).await;
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(200_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(500));
    let mut junk: Vec<Vec<u8>> = [
        "\0\0\0\0",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "{}",
        "\r\n\r\n\r\n",
        "POST /v1/jobs HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        "POST /v1/jobs HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "POST /v1/jobs HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n",
        long.as_str(),
        many.as_str(),
        "GET /v1/jobs/%ff HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /v1/../../etc/passwd HTTP/1.1\r\nhost: a\r\n\r\n",
    ]
    .iter()
    .map(|text| text.as_bytes().to_vec())
    .collect();
    junk.push((0..=255).cycle().take(50_000).collect());
    for bytes in junk {
        let mut stream = open(&place).await;
        let _reset = stream.write_all(&bytes).await;
        let answered = rest(&mut stream).await;
        let status = Reply::read(&answered).status;
        assert!(status < 500, "{status}: {:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(60)]));
    }
    place.root.get("/v1/jobs").await.ok(200);
}

/// F46, the other way round: answers that nobody reads are not kept for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_does_not_read_is_not_waited_for() {
    let place = Place::sqlite_with(hasty()).await;
    let mut stream = open(&place).await;
    let request = "GET /v1/openapi.json HTTP/1.1\r\nhost: a\r\n\r\n".repeat(200);
    let _cut_off = stream.write_all(request.as_bytes()).await;
    // Two hundred documents fit into no buffer. Nothing is read here: that the server has given up shows when it takes no
    // more.
    let cut_off = async {
        loop {
            match timeout(Duration::from_millis(50), stream.write(b"x")).await {
                Ok(Err(_)) => break,
                _ => tokio::task::yield_now().await,
            }
        }
    };
    timeout(LONG, cut_off).await.expect("the server gives up");
}

/// A page of somebody else's in a browser of this machine can send requests; without keys it is not served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_server_serves_no_strangers_pages() {
    let place = Place::sqlite_with(Options { auth: Auth::Open, ..options() }).await;
    let own = place.nobody();
    own.with("host", "127.0.0.1:7400").get("/v1/jobs").await.ok(200);
    own.with("host", "localhost").with("origin", "http://localhost:7400").get("/v1/jobs").await.ok(200);
    own.with("host", "[::1]:7400").get("/v1/jobs").await.ok(200);
    for (name, value) in [
        ("host", "evil.example"),
        ("host", "127.0.0.1.evil.example"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let stranger = own.with("host", "127.0.0.1").with(name, value);
        let refused = stranger.call("POST", "/v1/queues/default/pause", None).await;
        assert_eq!(refused.code(403), "forbidden", "{name}: {value}");
    }
}

/// Without keys it listens on this machine only.
#[test]
fn an_open_server_listens_to_nobody_else() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:80"] {
        let options = Options { auth: Auth::Open, listen: listen.parse().unwrap(), ..Options::default() };
        let refused = options.check().unwrap_err();
        assert_eq!(refused.field, "listen", "{listen}");
    }
    Options { auth: Auth::Open, ..Options::default() }.check().expect("loopback");
    Options { listen: "0.0.0.0:0".parse().unwrap(), ..Options::default() }.check().expect("with keys");
}
