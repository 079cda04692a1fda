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

/// What a rule may say.
const KEYS: [&str; 7] = ["preset", "rate", "burst", "cost", "concurrency", "breaker", "weight"];

/// A rule that cannot be read: where in the file, and why.
pub(super) type BadRule = (usize, String);

/// Reads the table of all rules.
pub(super) fn read(rules: &DeTable<'_>) -> Result<Vec<(Pattern, GateRule)>, BadRule> {
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

fn read_rule(table: &DeTable<'_>) -> Result<GateRule, BadRule> {
    if let Some((key, _)) = table.iter().find(|(key, _)| !KEYS.contains(&key.get_ref().as_ref())) {
        return Err((
            key.span().start,
            format!("the key `{}` is unknown; a gate has {}", key.get_ref(), KEYS.join(", ")),
        ));
    }
    let at = |key: &str| table.get(key).map_or(0, |value| value.span().start);
    let refused = |key: &'static str| move |why: Invalid| (at(key), why.to_string());
    let text = |key: &'static str| match table.get(key).map(|value| value.get_ref()) {
        None => Ok(None),
        Some(DeValue::String(text)) => Ok(Some(text.as_ref())),
        Some(_) => Err((at(key), format!("`{key}` is a string in quotes"))),
    };
    let number = |key: &'static str| match table.get(key).map(|value| value.get_ref()) {
        None => Ok(None),
        Some(DeValue::Integer(number)) => match number.as_str().parse::<u32>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err((at(key), format!("`{key}` is a whole number from 0 on"))),
        },
        Some(_) => Err((at(key), format!("`{key}` is a whole number, without quotes"))),
    };
    let mut rule = match text("preset")? {
        Some(name) => GateRule::preset(name).map_err(refused("preset"))?,
        None => GateRule::default(),
    };
    if let Some(rate) = text("rate")? {
        let rate: Rate = rate.parse().map_err(refused("rate"))?;
        rule.rate = Some(rate.with(number("burst")?, number("cost")?));
    } else if number("burst")?.or(number("cost")?).is_some() {
        return Err((at("burst").max(at("cost")), "`burst` and `cost` belong to a `rate`".to_owned()));
    }
    if let Some(breaker) = text("breaker")? {
        rule.breaker = Some(breaker.parse().map_err(refused("breaker"))?);
    }
    rule.concurrency = number("concurrency")?.or(rule.concurrency);
    rule.weight = number("weight")?.unwrap_or(rule.weight);
    let first = table.iter().map(|(key, _)| key.span().start).min().unwrap_or(0);
    rule.check().map_err(|why| (first, why.to_string()))?;
    Ok(rule)
}
