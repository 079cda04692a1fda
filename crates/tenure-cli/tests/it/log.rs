//! The log of a worker whose jobs carry hostile texts: each event is one line, and nothing in it steers a terminal.

use serde_json::{Value, json};

use crate::place::Place;

/// Line breaks that would begin a log line of the tenant's own, a code that clears the screen, a text turned around, and
/// characters that are not shown.
const HOSTILE: &str = "x\n2026-01-01T00:00:00Z  INFO forged\r\n{\"level\":\"INFO\",\"message\":\"forged\"}\n\u{1b}[2J\u{9b}31m\u{202e}gnp\u{200b}\u{feff}";

fn work(format: &str, how: &str) -> String {
    let place = Place::new();
    let payload = json!({ "how": how, "message": HOSTILE }).to_string();
    place.enqueue(&["fail", &payload, "--max-attempts=1"]);
    let ran = place.run(&["worker", "--once", "--log", format, "--log-level=debug"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("forged"), "the text is in the log: {}", ran.err);
    let hostile = |c: &char| c.is_control() && *c != '\n' || "\u{202e}\u{200b}\u{feff}".contains(*c);
    let found: Vec<char> = ran.err.chars().filter(hostile).collect();
    assert!(found.is_empty(), "{format} {how}: {found:?} in {}", ran.err);
    ran.err
}

#[test]
fn a_tenant_cannot_forge_a_line_of_a_text_log() {
    for how in ["panic", "permanent", "transient"] {
        for line in work("human", how).lines() {
            assert!(!line.starts_with("2026-01-01") && !line.starts_with('{'), "{how}: {line}");
            assert!(
                line.contains(" INFO ") || line.contains("WARN ") || line.contains("ERROR ") || line.contains("DEBUG "),
                "{line}"
            );
        }
    }
}

#[test]
fn a_tenant_cannot_forge_a_line_of_a_json_log() {
    for how in ["panic", "permanent", "transient"] {
        let log = work("json", how);
        let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
        assert!(lines.iter().all(|line| line["message"] != "forged"), "{log}");
        // The text itself is complete: a program that reads the log gets what the handler said.
        assert!(lines.iter().any(|line| line.to_string().contains('\u{202e}')), "{log}");
    }
}
