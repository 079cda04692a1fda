//! Rules of gates: what their journal rows say, and changes that meet.

use serde_json::{Value, json};
use tenure_core::gate::{GateRule, Part, Pattern, RulePatch};
use tenure_core::journal::JournalEvent;
use tenure_store::gate::{PatchRule, SetRule};
use tenure_store::operate::Word;

use super::situation::{ROUNDS, both};
use crate::fixture::Fixture;

/// The row of a changed rule has the rule before and the rule now, the same on every store.
pub async fn a_changed_rule_is_journaled_with_the_rule_before(t: Fixture) {
    let pattern: Pattern = "source:*".parse().expect("a pattern");
    let word = Word { actor: Some("ann".into()), reason: Some("month end".into()) };
    let set = |rule: Option<GateRule>| SetRule { pattern: pattern.clone(), rule, word: word.clone() };
    let first = GateRule { concurrency: Some(2), ..GateRule::source(30) };
    t.store.set_rule(set(Some(first))).await.expect("set");
    let patch = RulePatch {
        rate: Part::Set("7/1500ms".parse().expect("a rate")),
        concurrency: Part::Clear,
        weight: Part::Set(3),
        ..RulePatch::default()
    };
    t.store.patch_rule(PatchRule { pattern: pattern.clone(), patch, word: word.clone() }).await.expect("change");
    t.store.set_rule(set(None)).await.expect("remove");
    let one = json!({ "rate": "30/m", "burst": 1, "cost": 1, "concurrency": 2, "breaker": "5:5m", "weight": 1 });
    let two = json!({ "rate": "7/1500ms", "burst": 1, "cost": 1, "breaker": "5:5m", "weight": 3 });
    let wanted = [(Value::Null, one.clone()), (one, two.clone()), (two, Value::Null)];
    let rows = t.journal().await;
    assert_eq!(rows.len(), wanted.len());
    for (row, (old, new)) in rows.into_iter().zip(wanted) {
        assert_eq!((row.event, row.actor.as_deref()), (JournalEvent::GateRuled, Some("ann")));
        let details: Value = serde_json::from_str(row.details.expect("details").as_str()).expect("JSON");
        let removed = new.is_null();
        assert_eq!(details, json!({ "gate": "source:*", "removed": removed, "old": old, "new": new }));
    }
}

/// Concurrent twin: two changes of different parts of one rule both hold, also of a rule that is not there yet.
pub async fn two_changes_of_one_rule_both_hold(t: Fixture) {
    for round in 0..ROUNDS {
        let pattern: Pattern = format!("g{}", round / 2).parse().expect("a pattern");
        let value = round as u32 + 1;
        let change = |patch: RulePatch| {
            let (store, request) =
                (t.store.clone(), PatchRule { pattern: pattern.clone(), patch, word: Word::default() });
            async move { store.patch_rule(request).await.expect("change") }
        };
        both(
            change(RulePatch { concurrency: Part::Set(value), ..RulePatch::default() }),
            change(RulePatch { weight: Part::Set(value), ..RulePatch::default() }),
        )
        .await;
        let rules = t.store.list_rules(100).await.expect("list");
        let rule = rules.into_iter().find(|(known, _)| *known == pattern).map(|(_, rule)| rule);
        assert_eq!(rule, Some(GateRule { concurrency: Some(value), weight: value, ..GateRule::default() }));
    }
}
