//! What `tenure worker` can do by itself.

use serde_json::json;

use crate::counting::Counting;
use crate::place::Place;
use crate::running::Running;

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
        let (place, server) = (Place::new(), Counting::start());
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
    let place = Place::new();
    // Port 1 of this machine: nobody is there.
    let id = place.enqueue(&["http", r#"{"url": "http://127.0.0.1:1/?token=s3cret"}"#]);
    let wrong = place.enqueue(&["http", r#"{"url": "not a url"}"#]);
    work(&place);
    assert_eq!((state(&place, &id), state(&place, &wrong)), ("retryable".into(), "failed".into()));
    let error = place.json(&["jobs", "show", &id])["attempts"][0]["error"].to_string();
    assert!(error.contains("connection") && !error.contains("s3cret"), "{error}");
}

#[test]
fn a_worker_that_is_told_to_stop_gives_its_job_back() {
    let (place, server) = (Place::new(), Counting::start());
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
    ] {
        let ran = place.run(&["worker", flag]);
        assert!(ran.code == 2 && ran.err.contains(hint), "{flag}: {ran:?}");
    }
}
