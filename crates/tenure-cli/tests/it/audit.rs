//! The journal is sealed, verified and compared with an anchor.

use serde_json::json;

use crate::place::Place;

#[test]
fn the_journal_is_sealed_and_verified_and_an_anchor_is_found_again() {
    let place = Place::new();
    let id = place.enqueue(&["a"]);
    place.json(&["jobs", "cancel", &id]);
    let before = place.json(&["audit", "verify"]);
    assert_eq!((&before["verified"], &before["seals"], &before["tail"]), (&json!(true), &json!(0), &json!(1)));
    let sealed = place.json(&["audit", "verify", "--seal"]);
    assert_eq!((&sealed["seals"], &sealed["rows"], &sealed["tail"]), (&json!(1), &json!(1), &json!(0)));
    let head = sealed["head"].as_str().unwrap();

    place.json(&["jobs", "requeue", &id]);
    let later = place.json(&["audit", "verify", "--seal", "--anchor", head]);
    assert_eq!((&later["verified"], &later["seals"], &later["rows"]), (&json!(true), &json!(2), &json!(2)));
    let shown = place.run(&["audit", "verify", "--anchor", head]).out;
    assert!(shown.starts_with("Verified: ") && shown.contains("the anchor is there"), "{shown}");
}

#[test]
fn a_chain_without_the_anchor_is_a_finding() {
    let (place, other) = (Place::new(), Place::new());
    for place in [&place, &other] {
        let id = place.enqueue(&["a"]);
        place.json(&["jobs", "cancel", &id]);
    }
    let foreign = other.json(&["audit", "verify", "--seal"])["head"].as_str().unwrap().to_owned();
    let ran = place.run(&["audit", "verify", "--seal", "--anchor", &foreign]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.out.starts_with("NOT verified") && ran.out.contains("does not contain the anchor"), "{}", ran.out);
    let ran = place.run(&["audit", "verify", "--anchor", &foreign, "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &answer["verified"]), (1, &json!(false)));
    assert_eq!(answer["findings"].as_array().unwrap().len(), 1, "{answer}");
}
