//! The journal is sealed, verified and compared with an anchor.

use serde_json::json;
use tenure_core::name::QueueName;
use tenure_store::operate::{LEASE_TTL_DEFAULT, PauseQueue, SetQueue, Word};

use crate::bench::Bench;
use crate::following::Following;
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

/// Cancels a new job: one journal row.
fn add_row(place: &Place) -> String {
    let id = place.enqueue(&["a"]);
    place.json(&["jobs", "cancel", &id, "--reason=a test", "--actor=ops"]);
    id
}

#[test]
fn an_anchor_is_what_verify_reads_and_seals_unless_told_not_to() {
    let place = Place::new();
    let none = place.run(&["audit", "anchor"]);
    assert_eq!(none.code, 1);
    assert!(none.err.contains("nothing to anchor"), "{}", none.err);
    add_row(&place);
    assert_eq!(place.json(&["audit", "anchor", "--no-seal"])["anchor"], json!(null));

    let first = place.run(&["audit", "anchor"]).out.trim().to_owned();
    assert!(first.starts_with("1:1:") && first.len() == 4 + 64, "{first}");
    add_row(&place);
    assert_eq!(place.json(&["audit", "anchor", "--no-seal"])["anchor"], json!(first));
    let second = place.json(&["audit", "anchor"]);
    assert_eq!((&second["seals"], &second["rows"]), (&json!(2), &json!(2)));
    for anchor in [first.as_str(), second["anchor"].as_str().unwrap()] {
        assert_eq!(place.json(&["audit", "verify", "--anchor", anchor])["verified"], true);
    }
    assert_eq!(place.json(&["audit", "verify"])["head"], second["anchor"]);
}

#[test]
fn the_tail_shows_the_newest_rows_sealed_or_not_newest_last() {
    let place = Place::new();
    assert_eq!(place.json(&["audit", "tail"]), json!([]));
    assert!(place.run(&["audit", "tail"]).out.contains("The journal is empty"));
    let mut ids = vec![add_row(&place), add_row(&place)];
    place.json(&["audit", "anchor"]);
    ids.push(add_row(&place));
    place.json(&["audit", "anchor"]);
    ids.push(add_row(&place));
    place.json(&["queues", "set", "mail", "--lease-ttl=1m"]);
    place.json(&["queues", "pause", "mail", "--reason=outage"]);

    let jobs = |args: &[&str]| -> Vec<String> {
        let rows = place.json(&[&["audit", "tail"], args].concat());
        rows.as_array().unwrap().iter().filter_map(|row| row["jobs"][0].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(jobs(&[]), ids);
    assert_eq!(jobs(&["--limit=3"]), ids[2..]);
    let shown = place.run(&["audit", "tail", "--limit=2"]).out;
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    assert!(lines[1].contains("canceled") && lines[1].contains(&ids[3]) && lines[1].contains("ops"), "{shown}");
    assert!(lines[2].contains("queue_paused") && lines[2].contains("outage; queue mail"), "{shown}");
}

#[test]
fn a_followed_tail_shows_each_row_once_whether_it_is_sealed_meanwhile_or_not() {
    let place = Place::new();
    // Rows that are there and not asked for do not come later, either.
    add_row(&place);
    place.json(&["audit", "anchor"]);
    add_row(&place);
    let first = add_row(&place);
    let tail = Following::start(&place, &["audit", "tail", "--follow", "--limit=1", "--json"]);
    let is = |id: &str| {
        let id = id.to_owned();
        move |row: &serde_json::Value| row["jobs"][0] == json!(id)
    };
    tail.json(is(&first));
    let second = add_row(&place);
    assert_eq!(tail.json(|_| true)["jobs"], json!([second]));
    place.json(&["audit", "anchor"]);
    let third = add_row(&place);
    place.json(&["audit", "anchor"]);
    // The next line is the next row: what was sealed after it was shown does not come again.
    assert_eq!(tail.json(|_| true)["jobs"], json!([third]));
    assert_eq!(tail.interrupt(), Some(0));
}

#[test]
fn the_newest_rows_of_a_long_journal_are_found_and_all_of_it_is_sealed() {
    let place = Place::new();
    let bench = Bench::new(&place);
    // More than one page of the journal, and more than one seal of the embedded store. Together, to share commits.
    bench.wait(async {
        let mut asked = tokio::task::JoinSet::new();
        for n in 0..4_100 {
            let queue = QueueName::new(format!("q{n}")).unwrap();
            let store = std::sync::Arc::clone(&bench.store);
            asked.spawn(async move {
                store.set_queue(SetQueue::new(queue.clone(), LEASE_TTL_DEFAULT)).await?;
                store.pause_queue(PauseQueue { queue, paused: true, word: Word::default() }).await
            });
        }
        asked.join_all().await.into_iter().for_each(|paused| paused.unwrap());
    });
    let rows = |limit: &str| -> Vec<i64> {
        let rows = place.json(&["audit", "tail", limit]);
        rows.as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect()
    };
    assert_eq!(rows("--limit=3"), [4_098, 4_099, 4_100]);
    assert_eq!(place.json(&["audit", "anchor"])["rows"], 4_100);
    assert_eq!(place.json(&["audit", "verify"])["tail"], 0);
    place.json(&["queues", "resume", "q0"]);
    assert_eq!(rows("--limit=150"), (3_952..=4_101).collect::<Vec<_>>());
}
