//! What the compiler says to somebody who made a mistake is part of the interface.
//!
//! The texts in `tests/ui/*.stderr` are those of the compiler that the workspace names in `rust-version`; after a change,
//! `./x generate` writes them anew, to be read before they are committed.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::user_crate::{UserCrate, mistakes, name_of, root};

#[test]
fn mistakes_are_pointed_at_and_explained() {
    let names: Vec<_> = mistakes().iter().map(|program| name_of(program)).collect();
    let output = UserCrate::new().build(&names);
    let mut said = said_of_each(&String::from_utf8(output.stdout).unwrap());
    let mut wrong = Vec::new();
    for program in mistakes() {
        let is = said.remove(&name_of(&program)).unwrap_or_default();
        let file = program.with_extension("stderr");
        if std::env::var_os("TENURE_GENERATE").is_some() {
            fs::write(&file, &is).unwrap();
        }
        // A mistake that compiles would be one that nobody is told of.
        if is.is_empty() || fs::read_to_string(&file).unwrap_or_default() != is {
            wrong.push(format!("of {} the compiler says now:\n{is}", program.display()));
        }
    }
    let built = String::from_utf8_lossy(&output.stderr);
    assert!(wrong.is_empty(), "{}\n{built}\nread it, and run ./x generate", wrong.join("\n"));
}

/// The words of the compiler by program.
fn said_of_each(messages: &str) -> BTreeMap<String, String> {
    let mut said = BTreeMap::<String, String>::new();
    for message in messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let (target, message) = (&message["target"], &message["message"]);
        let (Some(name), Some(text)) = (target["name"].as_str(), message["rendered"].as_str()) else { continue };
        // Without a place in a file it is how many errors there were, and where to read about them.
        if message["spans"].as_array().is_some_and(|spans| !spans.is_empty()) {
            let said = said.entry(name.to_owned()).or_default();
            said.push_str(if said.is_empty() { "" } else { "\n" });
            said.push_str(&the_same_everywhere(text));
        }
    }
    said
}

/// Without what is another on every machine (folders) and what moves with every change of ours (numbers of lines in files
/// that are not the mistake's).
fn the_same_everywhere(text: &str) -> String {
    let root = format!("{}/", root().display());
    // Notes of several lines are moved in by the width of the margin, which is as wide as the largest number.
    let arrow = text.lines().find(|line| line.trim_start().starts_with("-->")).unwrap_or_default();
    let margin = arrow.len() - arrow.trim_start().len();
    let mut is_elsewhere = false;
    let mut lines = String::new();
    for line in text.trim_end().lines().filter(|line| !line.contains("long-type-") && !line.contains("`--verbose`")) {
        let trimmed = line.trim_start();
        let shown = match trimmed.split_once(' ') {
            Some((arrow @ ("-->" | ":::"), place)) => {
                let place = place.strip_prefix(&root).unwrap_or_else(|| below_registry(place));
                let here = place.strip_prefix("crates/tenure/tests/ui/");
                is_elsewhere = here.is_none();
                format!("  {arrow} {}", here.unwrap_or_else(|| place.split(':').next().unwrap_or(place)))
            }
            _ if trimmed.starts_with("= ") => format!("   {trimmed}"),
            _ if line.starts_with("     ") && !trimmed.starts_with('|') => format!("  {}", &line[margin..]),
            _ => in_the_margin(line, is_elsewhere).unwrap_or_else(|| line.to_owned()),
        };
        lines.push_str(shown.trim_end());
        lines.push('\n');
    }
    lines
}

/// A line of code: its number, a bar, the code.
fn in_the_margin(line: &str, is_elsewhere: bool) -> Option<String> {
    let (number, code) = line.split_once('|')?;
    let number = number.trim();
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| {
        let number = if is_elsewhere { "" } else { number };
        format!("{number:>2} |{code}")
    })
}

/// The path in a crate of somebody else's: without where cargo keeps it.
fn below_registry(place: &str) -> &str {
    let inside = place.split_once("/registry/src/").and_then(|(_, inside)| inside.split_once('/'));
    inside.map_or(place, |(_, inside)| inside)
}
