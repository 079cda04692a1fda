//! What is said at the end: a calm table, or one JSON object.

use std::collections::BTreeMap;
use std::time::Duration;

use console::Term;
use serde_json::{Value, json};
use tenure_core::State;

use super::proof::{Promise, Proof};
use super::styled::{Styled, wrap};
use crate::output::Output;
use crate::paint::Paint;

/// Columns of the names before sentences.
const NAMES: usize = 14;
/// Wider is not easier to read.
const WIDTH_MAX: usize = 100;

/// What to try next, and what it does.
const NEXT: [(&str, &str); 3] = [
    ("tenure enqueue sleep '{\"for\": \"2s\"}'", "store a job of your own"),
    ("tenure worker --once", "run what is due"),
    ("tenure audit tail", "read what happened to it"),
];

pub(super) fn print(proof: &Proof, took: Duration, out: &mut Output) {
    let (_, columns) = Term::stdout().size();
    let width = usize::from(columns).saturating_sub(1).min(WIDTH_MAX);
    let color = out.color();
    let mut line = |line: Styled| out.line(line.render(usize::MAX, color));
    let jobs: u64 = proof.states.values().sum();
    line(Styled::new().paint(format!("{jobs} jobs in {:.1} s", took.as_secs_f64()), Paint::Bold));
    for state in State::ALL {
        if let Some(count) = proof.states.get(&state) {
            line(
                Styled::new()
                    .plain("  ")
                    .paint(state.as_str(), Paint::of_state(state))
                    .to(NAMES)
                    .plain(format!("{count:4}")),
            );
        }
    }
    line(Styled::new());
    line(Styled::new().paint("Seen, by the store's own record", Paint::Bold));
    for promise in &proof.promises {
        promise_lines(promise, width).into_iter().for_each(&mut line);
    }
    line(Styled::new());
    line(Styled::new().paint("Your turn", Paint::Bold));
    for (command, what) in NEXT {
        line(Styled::new().plain("  ").paint(command, Paint::Cyan).to(44).paint(what, Paint::Dim));
    }
}

fn promise_lines(promise: &Promise, width: usize) -> Vec<Styled> {
    let (mark, paint) = if promise.seen { ("✓", Paint::Green) } else { ("✗ not seen:", Paint::Red) };
    let mut lines = Vec::new();
    for text in wrap(&promise.text, width.saturating_sub(NAMES).max(20)) {
        let head = match lines.is_empty() {
            true => Styled::new().plain("  ").paint(mark, paint).plain(" ").plain(promise.name).to(NAMES),
            false => Styled::new().to(NAMES),
        };
        lines.push(head.plain(text));
    }
    lines
}

pub(super) fn to_json(proof: &Proof, took: Duration) -> Value {
    let states: BTreeMap<&str, u64> = proof.states.iter().map(|(state, count)| (state.as_str(), *count)).collect();
    let seen: BTreeMap<&str, bool> = proof.promises.iter().map(|promise| (promise.name, promise.seen)).collect();
    json!({
        "states": states,
        "jobs": proof.states.values().sum::<u64>(),
        "killed_pid": proof.killed.as_ref().map(|killed| killed.pid),
        "killed_held": proof.killed.as_ref().map(|killed| killed.held.len()),
        "frozen_pid": proof.frozen.as_ref().map(|frozen| frozen.pid),
        "reclaimed": proof.reclaimed,
        "stale_refused": proof.stale_refused,
        "audit": { "verified": proof.verified(), "rows": proof.audit.rows, "seals": proof.audit.seals },
        "violations": proof.violations,
        "seen": seen,
        // Milliseconds are enough for anybody.
        "seconds": (took.as_secs_f64() * 1_000.0).round() / 1_000.0,
    })
}
