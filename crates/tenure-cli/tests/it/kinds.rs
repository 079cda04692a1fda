//! What `tenure worker` can do by itself.

use serde_json::json;

use crate::counting::Counting;
use crate::place::Place;
use crate::running::Running;

/// A place where jobs of kind `http` may call this machine.
fn place_that_calls() -> Place {
    Place::new().with_env("TENURE_HTTP_ALLOW", "127.0.0.1").with_env("TENURE_HTTP_PORTS", "any")
}

/// Runs a worker until nothing is due, with everything stored before.
fn work(place: &Place) -> serde_json::Value {
    let ran = place.run(&["worker", "--once", "--log-level=off", "--json"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    serde_json::from_str(&ran.out).unwrap()
}

fn state(place: &Place, id: &str) -> String {
    place.json(&["jobs", "show", id])["state"].as_str().unwrap().to_owned()
}

#[test]
fn jobs_end_as_their_payload_says() {
    let place = Place::new();
    let ends = [
        (r#"{"how": "permanent"}"#, "failed"),
        (r#"{"how": "dead"}"#, "dead"),
        (r#"{"how": "transient"}"#, "retryable"),
        (r#"{"how": "panic", "message": "a bug"}"#, "retryable"),
        (r#"{"how": "canceled"}"#, "canceled"),
        (r#"{"how": "transient", "until": 1}"#, "succeeded"),
        (r#"{"how": "no such way"}"#, "failed"),
        (r#"{"hwo": "permanent"}"#, "failed"),
    ];
    let ids = ends.map(|(payload, _)| place.enqueue(&["fail", payload]));
    let (noop, sleep) = (place.enqueue(&["noop", "[1, 2]"]), place.enqueue(&["sleep", r#"{"for": "1ms"}"#]));
    let unknown = place.enqueue(&["nobody.knows"]);
    let summary = work(&place);
    assert_eq!((&summary["claimed"], &summary["unknown_kinds"]), (&json!(11), &json!(1)), "{summary}");
    for (id, (payload, end)) in ids.iter().zip(ends) {
        assert_eq!(state(&place, id), end, "{payload}");
    }
    assert_eq!((state(&place, &noop), state(&place, &sleep)), ("succeeded".into(), "succeeded".into()));
    assert_eq!(state(&place, &unknown), "queued", "left for other workers");
}

#[test]
fn the_answer_to_a_request_decides() {
    let ends = [
        ("HTTP/1.1 200 OK", "succeeded"),
        ("HTTP/1.1 404 Not Found", "failed"),
        ("HTTP/1.1 500 Oh No", "retryable"),
        ("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/", "failed"),
        ("HTTP/1.1 429 Slow Down\r\nRetry-After: 1800", "retryable"),
    ];
    for (answer, end) in ends {
        let (place, server) = (place_that_calls(), Counting::start());
        server.answer(answer);
        let payload =
            json!({ "url": server.url() + "?token=s3cret", "body": { "order": 42 }, "headers": { "X-Shop": "7" } });
        let id = place.enqueue(&["http", &payload.to_string()]);
        work(&place);
        let job = place.json(&["jobs", "show", &id]);
        assert_eq!(job["state"], end, "{answer}: {job}");
        let headers = server.headers();
        let sent = |name: &str| headers.get(name).map(String::as_str);
        assert_eq!((sent("idempotency-key"), sent("x-shop")), (Some(id.as_str()), Some("7")));
        assert_eq!((sent("content-type"), sent("tenure-attempt")), (Some("application/json"), Some("1")));
        assert_eq!(sent("content-length"), Some("12"));
        let shown = place.run(&["jobs", "list"]).out;
        match answer.contains("Retry-After") {
            true => assert!(shown.contains("due in 29m") || shown.contains("due in 30m"), "{shown}"),
            false => assert!(!shown.contains("due in 30m"), "{shown}"),
        }
    }
}

#[test]
fn a_request_that_cannot_be_sent_is_tried_again_and_tells_no_secrets() {
    let place = place_that_calls();
    // Port 1 of this machine: nobody is there.
    let id = place.enqueue(&["http", r#"{"url": "http://127.0.0.1:1/?token=s3cret"}"#]);
    let wrong = place.enqueue(&["http", r#"{"url": "not a url"}"#]);
    work(&place);
    assert_eq!((state(&place, &id), state(&place, &wrong)), ("retryable".into(), "failed".into()));
    let error = place.json(&["jobs", "show", &id])["attempts"][0]["error"].to_string();
    assert!(error.contains("connection") && !error.contains("s3cret"), "{error}");
}

#[test]
fn http_jobs_stay_queued_on_a_worker_whose_operator_lists_no_host() {
    let (place, server) = (Place::new(), Counting::start());
    let id = place.enqueue(&["http", &json!({ "url": server.url() }).to_string()]);
    let worker = Running::start(&place, &["worker", "--log=human"]);
    place.until("the worker gave the job back", || place.json(&["audit", "list"]).to_string().contains("released"));
    let ended = worker.terminate();
    assert!(ended.err.contains("kind http is off") && ended.err.contains("--http-allow"), "{ended:?}");
    assert_eq!((state(&place, &id).as_str(), server.starts().len()), ("queued", 0));
}

#[test]
fn http_jobs_reach_listed_hosts_alone() {
    let server = Counting::start();
    server.answer("HTTP/1.1 200 OK");
    let port = server.url().rsplit_once(':').unwrap().1.trim_end_matches('/').to_owned();
    // The list, the host of the URL, the end of the job, a word of its error.
    let cases = [
        ("any", "127.0.0.1", "failed", "loopback"),
        ("any", "localhost", "failed", "inside"),
        ("any", "[::ffff:127.0.0.1]", "failed", "loopback"),
        ("any", "2130706433", "failed", "loopback"),
        ("api.example.com", "127.0.0.1", "failed", "http_allow"),
        ("127.0.0.1", "127.0.0.2", "failed", "http_allow"),
        ("127.0.0.1", "localhost", "failed", "http_allow"),
        ("localhost", "127.0.0.1", "failed", "http_allow"),
        ("127.0.0.1", "127.0.0.1", "succeeded", ""),
        ("127.0.0.1", "[::ffff:127.0.0.1]", "succeeded", ""),
        ("localhost,127.0.0.0/8,::1", "localhost", "succeeded", ""),
    ];
    for (listed, host, end, word) in cases {
        let before = server.starts().len();
        let place = Place::new().with_env("TENURE_HTTP_ALLOW", listed).with_env("TENURE_HTTP_PORTS", "any");
        let id = place.enqueue(&["http", &json!({ "url": format!("http://{host}:{port}/") }).to_string()]);
        work(&place);
        let job = place.json(&["jobs", "show", &id]);
        assert_eq!(job["state"], end, "{listed} {host}: {job}");
        assert!(job["attempts"][0]["error"].to_string().contains(word), "{listed} {host}: {job}");
        assert_eq!(server.starts().len() - before, usize::from(end == "succeeded"), "{listed} {host}");
    }
    let place = Place::new().with_env("TENURE_HTTP_ALLOW", "127.0.0.1");
    let id = place.enqueue(&["http", &json!({ "url": server.url() }).to_string()]);
    work(&place);
    assert_eq!(state(&place, &id), "failed", "ports are 80 and 443 unless set");
}

/// A listed name that leads inside needs its address on the list, too; what the name resolves to is not told.
#[test]
fn a_listed_name_that_resolves_inside_is_not_called() {
    let server = Counting::start();
    let place = Place::new().with_env("TENURE_HTTP_ALLOW", "localhost,10.0.0.0/8").with_env("TENURE_HTTP_PORTS", "any");
    let id = place.enqueue(&["http", &json!({ "url": server.url().replace("127.0.0.1", "localhost") }).to_string()]);
    work(&place);
    let job = place.json(&["jobs", "show", &id]);
    let error = job["attempts"][0]["error"].to_string();
    assert_eq!((job["state"].as_str().unwrap(), server.starts().len()), ("retryable", 0), "{job}");
    assert!(error.contains("cannot be reached") && !error.contains("loopback") && !error.contains("127"), "{error}");
}

#[test]
fn http_jobs_are_bounded_in_method_and_headers() {
    let (place, server) = (place_that_calls(), Counting::start());
    server.answer("HTTP/1.1 200 OK");
    let many: serde_json::Map<_, _> = (0..51).map(|n| (format!("x-{n}"), json!("v"))).collect();
    let cases = [
        (json!({ "method": "CONNECT" }), "method"),
        (json!({ "method": "TRACE" }), "method"),
        (json!({ "headers": { "Host": "inside" } }), "host"),
        (json!({ "headers": { "Transfer-Encoding": "chunked" } }), "transfer"),
        (json!({ "headers": { "Connection": "upgrade" } }), "connection"),
        (json!({ "headers": { "Proxy-Authorization": "Basic x" } }), "proxy"),
        (json!({ "headers": { "X-Forwarded-For": "127.0.0.1" } }), "forwarded"),
        (json!({ "headers": { "Tenure-Fence": "999" } }), "tenure-fence"),
        (json!({ "headers": { "x-a": "1\r\nHost: inside" } }), "x-a"),
        (json!({ "headers": { "x-a": "v".repeat(20_000) } }), "headers"),
        (json!({ "headers": many }), "headers"),
        (json!({ "timeout": "2h" }), "timeout"),
    ];
    for (mut payload, word) in cases {
        payload["url"] = json!(server.url());
        let id = place.enqueue(&["http", &payload.to_string()]);
        work(&place);
        let job = place.json(&["jobs", "show", &id]);
        assert_eq!(job["state"], "failed", "{job}");
        assert!(job["attempts"][0]["error"].to_string().to_lowercase().contains(word), "{word}: {job}");
    }
    assert_eq!(server.starts().len(), 0);
    for method in ["GET", "POST", "PUT", "patch", "DELETE", "HEAD"] {
        let id = place.enqueue(&["http", &json!({ "url": server.url(), "method": method }).to_string()]);
        work(&place);
        assert_eq!(state(&place, &id), "succeeded", "{method}");
    }
}

#[test]
fn a_worker_that_is_told_to_stop_gives_its_job_back() {
    let (place, server) = (place_that_calls(), Counting::start());
    server.close();
    let id = place.enqueue(&["http", &json!({ "url": server.url() }).to_string()]);
    let worker = Running::start(&place, &["worker", "--grace=0s", "--json"]);
    server.until_held(1);
    let ended = worker.terminate();
    assert_eq!(ended.code, 0, "{ended:?}");
    let job = place.json(&["jobs", "show", &id]);
    assert_eq!((&job["state"], &job["attempt"]), (&json!("queued"), &json!(0)), "no attempt is charged: {job}");
    server.open();
}

#[test]
fn a_worker_that_runs_once_does_not_wait_for_a_server() {
    let place = Place::new();
    // Port 1 of this machine: nobody is there.
    let ran = place.run(&["worker", "--once", "--database=postgres://127.0.0.1:1/app"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("refused the connection"), "{ran:?}");
}

#[test]
fn a_worker_says_what_is_wrong_with_its_flags() {
    let place = Place::new();
    for (flag, hint) in [
        ("--queue=mail=0", "1 to 10000"),
        ("--queue=a b=1", "a name is"),
        ("--slots=0", "1..=10000"),
        ("--poll=0s", "longer than zero"),
        ("--grace=2d", "0s to 1d"),
        ("--log=xml", "human or json"),
        ("--http-allow=http://a.example", "*.example.com"),
        ("--http-allow=,", "api.example.com"),
        ("--http-ports=http", "commas between"),
    ] {
        let ran = place.run(&["worker", flag]);
        assert!(ran.code == 2 && ran.err.contains(hint), "{flag}: {ran:?}");
    }
}
