//! The alert rules name metrics that there are, and commands to look with.

use std::collections::BTreeSet;
use std::fs;

use crate::files::root;

/// The names of the first column of docs/METRICS.md.
fn documented() -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("docs/METRICS.md")).expect("docs/METRICS.md");
    let names = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next().map(str::to_owned));
    names.collect()
}

/// Each rule: its lines.
fn rules() -> Vec<String> {
    let text = fs::read_to_string(root().join("deploy/prometheus/tenure.rules.yml")).expect("the rules");
    text.split("- alert: ").skip(1).map(str::to_owned).collect()
}

#[track_caller]
fn said<'a>(rule: &'a str, key: &str) -> &'a str {
    let line = rule.lines().find_map(|line| line.trim().strip_prefix(key));
    line.map(str::trim).filter(|said| !said.is_empty()).unwrap_or_else(|| panic!("no {key} in\n{rule}"))
}

#[test]
fn every_metric_of_an_alert_is_documented() {
    let documented = documented();
    for rule in rules() {
        let words = said(&rule, "expr:").split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let named: Vec<&str> = words.filter(|word| word.starts_with("tenure_")).collect();
        assert!(!named.is_empty(), "no metric in\n{rule}");
        for name in named {
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
            let is_known = documented.contains(name) || family.is_some_and(|family| documented.contains(family));
            assert!(is_known, "docs/METRICS.md says nothing of {name}");
        }
    }
}

#[test]
fn every_alert_says_what_is_the_matter_and_how_to_look() {
    let rules = rules();
    assert!(rules.len() >= 10, "{} rules", rules.len());
    for rule in &rules {
        assert!(said(rule, "summary:").len() > 10 && said(rule, "description:").len() > 30, "{rule}");
        assert!(said(rule, "command:").starts_with("\"tenure "), "{rule}");
        assert!(matches!(said(rule, "severity:"), "page" | "ticket"), "{rule}");
    }
    let operations = fs::read_to_string(root().join("docs/OPERATIONS.md")).expect("docs/OPERATIONS.md");
    for rule in &rules {
        let name = rule.lines().next().unwrap_or_default();
        assert!(operations.contains(&format!("`{name}`")), "docs/OPERATIONS.md says nothing of {name}");
    }
}
