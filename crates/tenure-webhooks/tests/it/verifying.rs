//! The check that receivers in Rust use.

use tenure_core::Timestamp;
use tenure_webhooks::verify::{NotGenuine, Received, verify, verify_body};
use tenure_webhooks::{Delivery, Prefix, Secret, sign};

const SENT: i64 = 1_800_000_000;
const BODY: &[u8] = b"{\"a\": 1}\n";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(seconds * 1_000_000)
}

/// `webhook-signature` and the endpoint's own.
fn signatures(secrets: &[Secret]) -> (String, String) {
    let delivery = Delivery { id: "evt_1", delivery_id: "dlv_1", event_type: "job.dead", at: at(SENT), body: BODY };
    let headers = sign::headers(&delivery, secrets, &Prefix::default()).unwrap();
    let find = |wanted: &str| {
        let (_, value) = headers.iter().find(|(name, _)| name == wanted).unwrap();
        value.to_str().unwrap().to_owned()
    };
    (find("webhook-signature"), find("x-tenure-signature"))
}

#[test]
fn a_genuine_delivery_is_taken_by_the_newest_or_the_previous_secret() {
    let [newest, previous, stranger] = [(); 3].map(|()| Secret::generate());
    let (signature, own) = signatures(&[newest.clone(), previous.clone()]);
    let received = Received { id: "evt_1", timestamp: "1800000000", signature: &signature, body: BODY };
    let check = |secrets: &[Secret]| verify(secrets, &received, at(SENT));
    assert_eq!(check(std::slice::from_ref(&newest)), Ok(()));
    assert_eq!(check(std::slice::from_ref(&previous)), Ok(()));
    assert_eq!(check(&[stranger.clone(), previous]), Ok(()));
    assert_eq!(check(std::slice::from_ref(&stranger)), Err(NotGenuine::Signature));
    assert_eq!(check(&[]), Err(NotGenuine::Signature));
    assert_eq!(verify_body(&[stranger.clone(), newest], &own, BODY), Ok(()));
    assert_eq!(verify_body(&[stranger], &own, BODY), Err(NotGenuine::Signature));
}

#[test]
fn time_is_tolerated_for_five_minutes_to_both_sides() {
    let secrets = [Secret::generate()];
    let (signature, _) = signatures(&secrets);
    let received = Received { id: "evt_1", timestamp: "1800000000", signature: &signature, body: BODY };
    for (late, wanted) in
        [(0, Ok(())), (300, Ok(())), (301, Err(NotGenuine::TooOld)), (-300, Ok(())), (-301, Err(NotGenuine::TooNew))]
    {
        assert_eq!(verify(&secrets, &received, at(SENT + late)), wanted, "{late} s");
    }
}

#[test]
fn nothing_that_is_signed_can_be_changed() {
    let secrets = [Secret::generate()];
    let (signature, own) = signatures(&secrets);
    let good = Received { id: "evt_1", timestamp: "1800000000", signature: &signature, body: BODY };
    let (unknown, short) = (signature.replace("v1,", "v2,"), &signature[..signature.len() - 4]);
    let many = format!("{}{signature}", "v1,AAAA ".repeat(16));
    for (changed, wanted) in [
        (Received { id: "evt_2", ..good }, NotGenuine::Signature),
        (Received { timestamp: "1800000001", ..good }, NotGenuine::Signature),
        (Received { timestamp: "01800000000", ..good }, NotGenuine::Signature),
        (Received { timestamp: "+1800000000", ..good }, NotGenuine::Timestamp),
        (Received { timestamp: "", ..good }, NotGenuine::Timestamp),
        (Received { timestamp: "99999999999999999999", ..good }, NotGenuine::Timestamp),
        (Received { timestamp: "soon", ..good }, NotGenuine::Timestamp),
        (Received { body: b"{\"a\": 2}\n", ..good }, NotGenuine::Signature),
        (Received { body: b"", ..good }, NotGenuine::Signature),
        (Received { signature: "", ..good }, NotGenuine::Signature),
        (Received { signature: "v1,", ..good }, NotGenuine::Signature),
        (Received { signature: &unknown, ..good }, NotGenuine::Signature),
        (Received { signature: short, ..good }, NotGenuine::Signature),
        (Received { signature: &many, ..good }, NotGenuine::Signature),
    ] {
        assert_eq!(verify(&secrets, &changed, at(SENT)), Err(wanted), "{changed:?}");
    }
    assert_eq!(verify(&secrets, &good, at(SENT)), Ok(()));
    for (signature, body) in [
        (own.as_str(), b"{}".as_slice()),
        ("", BODY),
        ("sha256=", BODY),
        (&own["sha256=".len()..], BODY),
        (&own[..own.len() - 2], BODY),
        ("sha256=ü", BODY),
    ] {
        assert_eq!(verify_body(&secrets, signature, body), Err(NotGenuine::Signature), "{signature:?}");
    }
}
