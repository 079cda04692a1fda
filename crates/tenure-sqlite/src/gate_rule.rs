//! Rules of gates: set, changed in parts, removed and found. tenure-core decides what a change means for a bucket.

use std::time::Duration;

use rusqlite::{Row, named_params};
use tenure_core::Invalid;
use tenure_core::gate::{Breaker, GateRule, Pattern, Rate};
use tenure_core::journal::JournalEvent;
use tenure_core::json::quote;
use tenure_core::name::GateName;
use tenure_store::StoreError;
use tenure_store::gate::{PatchRule, SetRule, ruled_details};
use tenure_store::operate::Word;

use crate::fault::{Result, corrupt};
use crate::gate;
use crate::journal::{self, Entry};
use crate::row::{text, word};
use crate::tx::Tx;

const FIND_RULE: &str = include_str!("sql/find_rule.sql");
const LIST_RULES: &str = include_str!("sql/list_rules.sql");
const OWING_GATES: &str = include_str!("sql/owing_gates.sql");
const SET_RULE: &str = include_str!("sql/set_rule.sql");
const REMOVE_RULE: &str = include_str!("sql/remove_rule.sql");

pub(crate) fn set_rule(tx: &Tx<'_>, request: &SetRule) -> Result<()> {
    let before = rule_for(tx, &request.pattern)?;
    if before.is_none() && request.rule.is_none() {
        return Err(StoreError::NotFound(format!("a rule for {}", request.pattern)).into());
    }
    change(tx, &request.pattern, before.as_ref(), request.rule.as_ref(), &request.word)
}

/// Changes some parts of a rule; answers the whole rule.
pub(crate) fn patch_rule(tx: &Tx<'_>, request: &PatchRule) -> Result<GateRule> {
    let before = rule_for(tx, &request.pattern)?;
    let after = request.patch.apply(&before.clone().unwrap_or_default())?;
    change(tx, &request.pattern, before.as_ref(), Some(&after), &request.word)?;
    Ok(after)
}

pub(crate) fn list_rules(tx: &Tx<'_>, limit: u32) -> Result<Vec<(Pattern, GateRule)>> {
    tx.all(LIST_RULES, named_params! { ":limit": limit }, read)
}

/// The rule a gate obeys, and the pattern it was set for.
pub(crate) fn find_rule(tx: &Tx<'_>, gate: &GateName) -> Result<Option<(Pattern, GateRule)>> {
    first_of(tx, Pattern::candidates(gate))
}

/// The rule that was set for this very pattern.
fn rule_for(tx: &Tx<'_>, pattern: &Pattern) -> Result<Option<GateRule>> {
    Ok(first_of(tx, [pattern.to_string()].into_iter())?.map(|(_, rule)| rule))
}

fn first_of(tx: &Tx<'_>, patterns: impl Iterator<Item = String>) -> Result<Option<(Pattern, GateRule)>> {
    let candidates: Vec<String> = patterns.map(|pattern| quote(&pattern)).collect();
    tx.one(FIND_RULE, named_params! { ":candidates": format!("[{}]", candidates.join(",")) }, read)
}

/// Writes a rule, brings the buckets of the gates that now obey another one under it, and journals both rules.
fn change(
    tx: &Tx<'_>,
    pattern: &Pattern,
    before: Option<&GateRule>,
    after: Option<&GateRule>,
    said: &Word,
) -> Result<()> {
    let owing = owing(tx, pattern)?;
    match after {
        Some(rule) => write(tx, pattern, rule)?,
        None => {
            tx.execute(REMOVE_RULE, named_params! { ":pattern": pattern.as_str() })?;
        }
    }
    let moves = GateRule::moves_buckets(before, after);
    for (name, obeyed) in owing {
        let Some(mut open) = gate::find(tx, &name)? else { continue };
        if open.pattern != obeyed || moves && open.pattern.as_ref() == Some(pattern) {
            open.gate.come_under(&open.rule, tx.now);
            open.save(tx)?;
        }
    }
    let details = Some(ruled_details(pattern, before, after));
    let entry = Entry { details, ..Entry::said(JournalEvent::GateRuled, said) };
    journal::add_json(tx, &entry, "[]")?;
    tx.wake();
    Ok(())
}

/// Gates of this pattern whose bucket is not full, with the patterns of the rules they obey.
fn owing(tx: &Tx<'_>, pattern: &Pattern) -> Result<Vec<(GateName, Option<Pattern>)>> {
    let (first, end) = gate::bounds(Some(pattern));
    let params = named_params! { ":first": first, ":end": end, ":now": tx.now.as_micros() };
    let names: Vec<GateName> = tx.all(OWING_GATES, params, |row| word(row, 0))?;
    let with_pattern = |name| find_rule(tx, &name).map(|rule| (name, rule.map(|(pattern, _)| pattern)));
    names.into_iter().map(with_pattern).collect()
}

fn write(tx: &Tx<'_>, pattern: &Pattern, rule: &GateRule) -> Result<()> {
    let GateRule { rate, concurrency, breaker, weight } = rule;
    tx.execute(
        SET_RULE,
        named_params! {
            ":pattern": pattern.as_str(),
            ":rate_count": rate.map(|rate| rate.count),
            ":rate_period_ms": rate.map(|rate| millis(rate.period)),
            ":rate_burst": rate.map(|rate| rate.burst),
            ":rate_cost": rate.map(|rate| rate.cost),
            ":concurrency": concurrency,
            ":breaker_failures": breaker.map(|breaker| breaker.failures),
            ":breaker_cooldown_ms": breaker.map(|breaker| millis(breaker.cooldown)),
            ":weight": weight,
        },
    )?;
    Ok(())
}

fn read(row: &Row<'_>) -> Result<(Pattern, GateRule)> {
    let pattern: Pattern = text(row, 0)?.parse().map_err(|refused: Invalid| corrupt(refused.to_string()))?;
    let count = |at: usize| row.get::<_, Option<u32>>(at);
    let time =
        |at: usize| Ok::<_, rusqlite::Error>(row.get::<_, Option<u32>>(at)?.map(|ms| Duration::from_millis(ms.into())));
    let rate = match (count(1)?, time(2)?, count(3)?, count(4)?) {
        (Some(count), Some(period), Some(burst), Some(cost)) => Some(Rate { count, period, burst, cost }),
        _ => None,
    };
    let breaker = match (count(6)?, time(7)?) {
        (Some(failures), Some(cooldown)) => Some(Breaker { failures, cooldown }),
        _ => None,
    };
    Ok((pattern, GateRule { rate, concurrency: count(5)?, breaker, weight: row.get(8)? }))
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
