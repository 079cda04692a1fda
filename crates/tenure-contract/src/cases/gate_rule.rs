//! Rules of gates: what their journal rows say.

use serde_json::{Value, json};
use tenure_core::gate::{GateRule, Pattern};
use tenure_core::journal::JournalEvent;
use tenure_store::gate::SetRule;
use tenure_store::operate::Word;

use crate::fixture::Fixture;

/// The row of a changed rule has the rule before and the rule now, the same on every store.
pub async fn a_changed_rule_is_journaled_with_the_rule_before(t: Fixture) {
    let pattern: Pattern = "source:*".parse().expect("a pattern");
    let word = Word { actor: Some("ann".into()), reason: Some("month end".into()) };
    let set = |rule: Option<GateRule>| SetRule { pattern: pattern.clone(), rule, word: word.clone() };
    let first = GateRule { concurrency: Some(2), ..GateRule::source(30) };
    let rate = Some("7/1500ms".parse().expect("a rate"));
    let second = GateRule { rate, concurrency: None, weight: 3, ..first.clone() };
    t.store.set_rule(set(Some(first))).await.expect("set");
    t.store.set_rule(set(Some(second))).await.expect("change");
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
