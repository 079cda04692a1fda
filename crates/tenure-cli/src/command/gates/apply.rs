//! `tenure gates apply`: the rules of the settings file become those of the store.

use clap::Args;
use tenure_core::gate::{GateRule, Pattern};
use tenure_store::gate::SetRule;
use tenure_store::operate::{BATCH_MAX, Word};
use tenure_store::{Store, StoreError};

use crate::command::{Answer, Session};
use crate::failure::Failure;
use tenure_server::wire::gate::RuleLine;

const EXAMPLES: &str = "\
Examples:
  tenure gates apply
  tenure --config production.toml gates apply

A settings file says what gates allow in tables of its own; tenure worker applies them when it starts:
  [gates.\"source:*\"]
  preset = \"source\"        # source or domain; rate, burst, cost, concurrency, breaker and weight change it
  rate = \"60/m\"
  [gates.\"domain:*\"]
  concurrency = 2

Rules that the file does not name stay as they are.";

/// Set the rules that tenure.toml has
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ApplyArgs {}

pub(super) async fn run(_: &ApplyArgs, session: &mut Session) -> Result<Answer, Failure> {
    let (rules, word) = (session.settings.gates.clone(), Word { actor: session.settings.actor(None), reason: None });
    let changed = apply(&*session.store_to_add().await?, rules, word).await?;
    if session.out.is_json() {
        session.out.json(&changed.iter().map(RuleLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    for (pattern, rule) in &changed {
        session.out.line(format!("{pattern} allows {}.", tenure_server::gate_words::allows(rule)));
    }
    let known = session.settings.gates.len() - changed.len();
    session.out.line(format!("{} set, {known} as they were.", changed.len()));
    Ok(Answer::Done)
}

/// Sets those that differ from what the store has; answers which.
pub(crate) async fn apply(
    store: &dyn Store,
    rules: Vec<(Pattern, GateRule)>,
    word: Word,
) -> Result<Vec<(Pattern, GateRule)>, StoreError> {
    if rules.is_empty() {
        return Ok(rules);
    }
    let known = store.list_rules(BATCH_MAX).await?;
    let mut changed = Vec::new();
    for (pattern, rule) in rules.into_iter().filter(|rule| !known.contains(rule)) {
        let request = SetRule { pattern: pattern.clone(), rule: Some(rule.clone()), word: word.clone() };
        store.set_rule(request).await?;
        changed.push((pattern, rule));
    }
    Ok(changed)
}
