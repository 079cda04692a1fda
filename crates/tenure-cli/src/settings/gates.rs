//! `[gates]` of a settings file: what shared resources allow, kept beside the rest of the settings.
//!
//! ```toml
//! [gates."source:*"]
//! preset = "source"
//! rate = "60/m"
//!
//! [gates."domain:*"]
//! concurrency = 2
//! ```

use tenure_core::Invalid;
use tenure_core::gate::{GateRule, Pattern, Rate};
use toml::de::{DeTable, DeValue};

use super::keys::{Bad, Keys};

/// What a rule may say.
const KEYS: [&str; 7] = ["preset", "rate", "burst", "cost", "concurrency", "breaker", "weight"];

/// Reads the table of all rules.
pub(super) fn read(rules: &DeTable<'_>) -> Result<Vec<(Pattern, GateRule)>, Bad> {
    let mut read = Vec::new();
    for (name, value) in rules {
        let at = name.span().start;
        let pattern: Pattern = name.get_ref().parse().map_err(|why: Invalid| (at, why.to_string()))?;
        let DeValue::Table(rule) = value.get_ref() else {
            return Err((
                at,
                format!("`gates.{pattern}` is a table, such as [gates.\"{pattern}\"] and below it concurrency = 2"),
            ));
        };
        read.push((pattern, read_rule(rule)?));
    }
    Ok(read)
}

fn read_rule(table: &DeTable<'_>) -> Result<GateRule, Bad> {
    let keys = Keys::new(table, 0, "a gate", &KEYS)?;
    let mut rule = match keys.text("preset")? {
        Some(name) => GateRule::preset(name).map_err(keys.refused("preset"))?,
        None => GateRule::default(),
    };
    if let Some(rate) = keys.text("rate")? {
        let rate: Rate = rate.parse().map_err(keys.refused("rate"))?;
        rule.rate = Some(rate.with(keys.number("burst")?, keys.number("cost")?));
    } else if keys.number::<u32>("burst")?.or(keys.number("cost")?).is_some() {
        return Err((keys.at("burst").max(keys.at("cost")), "`burst` and `cost` belong to a `rate`".to_owned()));
    }
    if let Some(breaker) = keys.text("breaker")? {
        rule.breaker = Some(breaker.parse().map_err(keys.refused("breaker"))?);
    }
    rule.concurrency = keys.number("concurrency")?.or(rule.concurrency);
    rule.weight = keys.number("weight")?.unwrap_or(rule.weight);
    let first = table.iter().map(|(key, _)| key.span().start).min().unwrap_or(0);
    rule.check().map_err(|why| (first, why.to_string()))?;
    Ok(rule)
}
