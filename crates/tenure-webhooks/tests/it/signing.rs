//! Signatures against known ones, and against other people's verifiers.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use tenure_core::Timestamp;
use tenure_webhooks::{Delivery, Prefix, Secret, sign};

const BODY: &[u8] = br#"{"event_id":"evt_1","event_type":"job.succeeded","payload":{"n":1}}"#;

fn now() -> i64 {
    i64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()).unwrap()
}

fn signed(secrets: &[Secret], seconds: i64) -> Vec<(HeaderName, HeaderValue)> {
    let at = Timestamp::from_micros(seconds * 1_000_000 + 999_999);
    let delivery = Delivery { id: "evt_1", delivery_id: "dlv_1", event_type: "job.succeeded", at, body: BODY };
    sign::headers(&delivery, secrets, &Prefix::default()).unwrap()
}

/// The example of the Standard Webhooks specification, and the same secret's text over the body by another program:
/// `printf %s '{"test": 2432232314}' | openssl dgst -sha256 -hmac whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw`.
#[test]
fn known_deliveries_have_known_signatures() {
    let secret: Secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
    let delivery = Delivery {
        id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
        delivery_id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
        event_type: "PASSPORT_SIGNED",
        at: Timestamp::from_micros(1_614_265_330_000_000),
        body: br#"{"test": 2432232314}"#,
    };
    let headers = sign::headers(&delivery, &[secret], &"X-BPC-".parse().unwrap()).unwrap();
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    assert_eq!(
        headers,
        [
            ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("webhook-timestamp", "1614265330"),
            ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
            ("x-bpc-event-type", "PASSPORT_SIGNED"),
            ("x-bpc-delivery-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("x-bpc-signature", "sha256=80ec8a89ce3cd22133a1066caecb4d04fea7467657c8514d717ec42c38a5c94c"),
        ]
    );
}

#[test]
fn the_library_of_standard_webhooks_agrees() {
    let [newest, previous, stranger] = [(); 3].map(|()| Secret::generate());
    let accepts = |secret: &Secret, headers: &HeaderMap, body: &[u8]| {
        standardwebhooks::Webhook::new(&secret.text()).unwrap().verify(body, headers).is_ok()
    };
    let one: HeaderMap = signed(std::slice::from_ref(&newest), now()).into_iter().collect();
    assert!(accepts(&newest, &one, BODY));
    assert!(!accepts(&previous, &one, BODY));
    assert!(!accepts(&newest, &one, b"{}"));
    let two: HeaderMap = signed(&[newest.clone(), previous.clone()], now()).into_iter().collect();
    assert!(accepts(&newest, &two, BODY) && accepts(&previous, &two, BODY), "either is taken during a change");
    assert!(!accepts(&stranger, &two, BODY));
    let old: HeaderMap = signed(std::slice::from_ref(&newest), now() - 400).into_iter().collect();
    assert!(!accepts(&newest, &old, BODY));
}

/// Runs `tests/verify.py`, a receiver of a few lines; it answers the families that are genuine.
fn python(headers: &[(HeaderName, HeaderValue)], body: &[u8], secret: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/verify.py");
    let mut child = Command::new("python3")
        .arg(script)
        .args([secret, "X-Tenure-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 is installed");
    let mut stdin = child.stdin.take().unwrap();
    for (name, value) in headers {
        writeln!(stdin, "{name}: {}", value.to_str().unwrap()).unwrap();
    }
    writeln!(stdin).unwrap();
    stdin.write_all(body).unwrap();
    drop(stdin);
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().trim().to_owned()
}

#[test]
fn a_receiver_in_python_agrees() {
    let [newest, previous, stranger] = [(); 3].map(|()| Secret::generate());
    let fresh = signed(&[newest.clone(), previous.clone()], now());
    assert_eq!(python(&fresh, BODY, &newest.text()), "standard own");
    assert_eq!(python(&fresh, BODY, &previous.text()), "standard", "the own family signs with the newest alone");
    assert_eq!(python(&fresh, BODY, &stranger.text()), "");
    assert_eq!(python(&fresh, b"{}", &newest.text()), "");
    let mut changed = BODY.to_vec();
    changed.push(b' ');
    assert_eq!(python(&fresh, &changed, &newest.text()), "", "every byte counts");
    for seconds in [now() - 400, now() + 400] {
        let stale = signed(std::slice::from_ref(&newest), seconds);
        assert_eq!(python(&stale, BODY, &newest.text()), "own", "which knows no time");
    }
}

#[test]
fn what_would_blur_a_signature_is_refused() {
    let secrets = [Secret::generate()];
    let refused = |id, event_type, secrets: &[Secret]| {
        let delivery = Delivery { id, delivery_id: "dlv_1", event_type, at: Timestamp::from_micros(0), body: BODY };
        sign::headers(&delivery, secrets, &Prefix::default()).unwrap_err().field
    };
    let long = "x".repeat(201);
    for id in ["", "a.b", "a b", "a\r\nx: y", "ü", &long] {
        assert_eq!(refused(id, "job.succeeded", &secrets), "event id", "{id:?}");
    }
    for event_type in ["", "a b", "a\nb", "ü"] {
        assert_eq!(refused("evt_1", event_type, &secrets), "event type", "{event_type:?}");
    }
    assert_eq!(refused("evt_1", "job.succeeded", &[]), "secrets");
    assert_eq!(refused("evt_1", "job.succeeded", &vec![secrets[0].clone(); 6]), "secrets");
}
