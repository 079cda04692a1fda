//! Texts that a tenant chose, on a terminal: everything that steers it or hides is written out.

use serde_json::{Value, json};

use crate::place::Place;

const HOSTILE: &str = "\u{202e}gnp\u{2066}\u{200b}\u{feff}\u{61c}\u{ad}\u{9b}31m\u{1b}[2J";

fn hostile(c: char) -> bool {
    c.is_control() && c != '\n' || HOSTILE.contains(c) && !c.is_ascii()
}

#[test]
fn no_command_prints_what_steers_a_terminal_or_hides() {
    let place = Place::new();
    let payload = json!({ "how": "dead", "message": HOSTILE, "until": 9 }).to_string();
    let id = place.enqueue(&["fail", &payload, "--unique", "a\u{202e}b\u{200b}"]);
    place.json(&["queues", "pause", "default", "--reason", "be\u{202e}cause\u{200b}"]);
    place.json(&["queues", "resume", "default"]);
    assert_eq!(place.run(&["worker", "--once", "--log-level=off"]).code, 0);
    for args in [
        &["jobs", "list"][..],
        &["jobs", "show", &id],
        &["dead", "list"],
        &["dead", "list", "--each"],
        &["audit", "list"],
        &["audit", "tail"],
        &["stats"],
    ] {
        for format in [&[][..], &["--json"]] {
            let ran = place.run(&[args, format].concat());
            assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
            let found: Vec<char> = ran.out.chars().chain(ran.err.chars()).filter(|c| hostile(*c)).collect();
            assert!(found.is_empty(), "{args:?} {format:?}: {found:?} in {}", ran.out);
        }
    }
    let shown = place.run(&["jobs", "show", &id]).out;
    assert!(shown.contains("\\u{202e}gnp\\u{2066}\\u{200b}"), "{shown}");
    // Programs read the very text.
    let job: Value = place.json(&["jobs", "show", &id]);
    assert!(job.to_string().contains("\u{202e}gnp\u{2066}\u{200b}"), "{job}");
}

#[test]
fn a_refusal_does_not_print_it_either() {
    let place = Place::new();
    for args in
        [&["jobs", "list", "--queue", "a\u{202e}b"][..], &["queues", "pause", "a\u{200b}b"], &["jobs", "a\u{202e}b"]]
    {
        let ran = place.run(args);
        assert!(ran.code == 2 && !ran.err.chars().any(hostile), "{args:?}: {}", ran.err);
    }
}
