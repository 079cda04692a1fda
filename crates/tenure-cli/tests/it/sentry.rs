//! What Sentry is told by the real binary, and what it is not.

use serde_json::{Value, json};

use crate::place::Place;
use crate::receiver::Receiver;
use crate::server::Served;

/// In every place where a handler's words may hold something that is nobody's business.
const CANARIES: [&str; 5] = ["c4n4ry", "ann.smith", "hunter2", "4111", "tnk_"];

/// The event of an envelope: its third line.
fn event(body: &[u8]) -> Value {
    let text = String::from_utf8(body.to_vec()).unwrap();
    serde_json::from_str(text.lines().nth(2).unwrap()).unwrap()
}

#[test]
fn sentry_hears_of_what_failed_for_good_and_of_panics_and_of_nothing_secret() {
    let sentry = Receiver::start();
    let place = Place::new().with_env("TENURE_SENTRY_DSN", format!("http://public@{}/7", sentry.address));
    let served = Served::start(&place, &["dev"]);
    let message = "GET https://ann.smith:hunter2@shop.test/a?token=c4n4ry: ann.smith@example.com with 4111 1111 1111 1111 \
                   and Bearer tnk_c4n4ry failed";
    let fail = |how: &str, attempts: u16| {
        let payload = json!({ "how": how, "message": message });
        let job = json!({ "kind": "fail", "payload": payload, "backoff": "none", "max_attempts": attempts });
        let (status, stored) = served.call("POST", "/v1/jobs", "", &job.to_string());
        assert_eq!(status, 201, "{stored}");
        stored["id"].as_str().unwrap().to_owned()
    };
    // Tried again once, then dead: one event, and a crumb for each.
    let dead = fail("transient", 2);
    let got = sentry.next();
    assert_eq!(got.path, "/api/7/envelope/");
    assert!(got.header("x-sentry-auth").unwrap().contains("sentry_key=public"), "{}", got.head);
    let first = event(&got.body);
    assert_eq!((&first["extra"]["job.id"], &first["extra"]["attempt"]), (&json!(dead), &json!(2)), "{first}");
    assert_eq!((&first["tags"]["job.kind"], &first["tags"]["queue"]), (&json!("fail"), &json!("default")));
    assert_eq!(
        (&first["tags"]["outcome"], &first["exception"]["values"][0]["type"]),
        (&json!("dead"), &json!("transient"))
    );
    let crumbs = first["breadcrumbs"]["values"].as_array().unwrap();
    let levels: Vec<&str> = crumbs.iter().filter_map(|crumb| crumb["level"].as_str()).collect();
    assert_eq!(levels, ["warning", "error"], "{crumbs:?}");
    assert!(
        first["exception"]["values"][0]["value"].as_str().unwrap().contains("https://shop.test/a?[query]"),
        "{first}"
    );
    fail("permanent", 1);
    let second = sentry.next();
    assert_eq!(event(&second.body)["tags"]["outcome"], "failed");
    // A panic is told of although it is tried again.
    fail("panic", 2);
    let third = sentry.next();
    assert_eq!(event(&third.body)["exception"]["values"][0]["type"], "panic");
    let ran = served.process.terminate();
    assert_eq!(ran.code, 0, "{}", ran.err);
    for got in [got, second, third].into_iter().chain(sentry.all()) {
        let text = String::from_utf8(got.body).unwrap();
        for canary in CANARIES {
            assert!(!text.contains(canary), "{canary} is in {text}");
        }
        assert!(!text.contains("tenant"), "{text}");
    }
}
