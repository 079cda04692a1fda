//! What a gate allows, and which rule a gate obeys.
//!
//! A rule belongs to a gate's name or to all names that begin alike: `domain:*`. The most specific rule holds whole: the
//! name itself, else the longest beginning. So a new domain needs no set-up, and one that is special gets a rule of its own.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::breaker::Breaker;
use super::bucket::Rate;
use crate::invalid::Invalid;
use crate::name::GateName;

/// What a gate allows. The default allows everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRule {
    /// So many per period.
    pub rate: Option<Rate>,
    /// Jobs inside at once.
    pub concurrency: Option<u32>,
    /// Opens after failures in a row.
    pub breaker: Option<Breaker>,
    /// Its share beside other lines of a queue.
    pub weight: u32,
}

/// A gate's name, or the beginning of many: `domain:*`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pattern(String);

/// Calls a minute of a source that says nothing.
const SOURCE_PER_MINUTE: u32 = 30;
/// Most jobs inside that can be asked for.
pub const CONCURRENCY_MAX: u32 = 1_000_000;
/// Largest share.
pub const WEIGHT_MAX: u32 = 1_000;

impl Default for GateRule {
    fn default() -> Self {
        Self { rate: None, concurrency: None, breaker: None, weight: 1 }
    }
}

impl GateRule {
    /// A source of data, as the coin collector governs its own: so many calls a minute, and five failures in a row pause
    /// it for five minutes.
    pub fn source(per_minute: u32) -> Self {
        let minute = Duration::from_secs(60);
        Self {
            rate: Some(Rate::new(per_minute, minute)),
            breaker: Some(Breaker { failures: 5, cooldown: 5 * minute }),
            ..Self::default()
        }
    }

    /// A web site, as the link importer visits them: two at once.
    pub fn domain() -> Self {
        Self { concurrency: Some(2), ..Self::default() }
    }

    /// A rule by the name of what it is for: `source` or `domain`.
    pub fn preset(name: &str) -> Result<Self, Invalid> {
        match name {
            "source" => Ok(Self::source(SOURCE_PER_MINUTE)),
            "domain" => Ok(Self::domain()),
            _ => Err(Invalid::new("preset", name, "it is source or domain")),
        }
    }

    /// Whether a change of one pattern's rule moves the buckets of the gates that obey it: the rule came or went, or its
    /// rate is another.
    pub fn moves_buckets(before: Option<&Self>, after: Option<&Self>) -> bool {
        match (before, after) {
            (Some(before), Some(after)) => {
                before.rate.map(|rate| rate.bucket()) != after.rate.map(|rate| rate.bucket())
            }
            _ => true,
        }
    }

    /// The rule as the journal keeps it, in the words that people type: `{"rate":"30/m","burst":1,…}`. A part without a
    /// limit is left out.
    pub fn to_json(&self) -> String {
        let mut parts = Vec::new();
        if let Some(rate) = &self.rate {
            parts.push(format!("\"rate\":\"{rate}\",\"burst\":{},\"cost\":{}", rate.burst, rate.cost));
        }
        parts.extend(self.concurrency.map(|limit| format!("\"concurrency\":{limit}")));
        parts.extend(self.breaker.map(|breaker| format!("\"breaker\":\"{breaker}\"")));
        parts.push(format!("\"weight\":{}", self.weight));
        format!("{{{}}}", parts.join(","))
    }

    /// Refuses limits that nothing could obey.
    pub fn check(&self) -> Result<(), Invalid> {
        self.rate.iter().try_for_each(Rate::check)?;
        self.breaker.iter().try_for_each(Breaker::check)?;
        if let Some(limit) = self.concurrency.filter(|limit| !(1..=CONCURRENCY_MAX).contains(limit)) {
            let limits = format!("it is 1 to {CONCURRENCY_MAX}; to let nothing pass, pause the gate");
            return Err(Invalid::new("concurrency", limit, limits));
        }
        if !(1..=WEIGHT_MAX).contains(&self.weight) {
            return Err(Invalid::new("weight", self.weight, format!("it is 1 to {WEIGHT_MAX}")));
        }
        Ok(())
    }
}

impl Pattern {
    /// The pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a gate of this name is meant.
    pub fn matches(&self, gate: &GateName) -> bool {
        match self.0.strip_suffix('*') {
            Some(beginning) => gate.as_str().starts_with(beginning),
            None => gate.as_str() == self.0,
        }
    }

    /// Every pattern that would match a gate, the most specific first.
    pub fn candidates(gate: &GateName) -> impl Iterator<Item = String> + '_ {
        let name = gate.as_str();
        std::iter::once(name.to_owned()).chain((0..=name.len()).rev().map(move |n| format!("{}*", &name[..n])))
    }
}

impl From<GateName> for Pattern {
    fn from(gate: GateName) -> Self {
        Self(gate.as_str().to_owned())
    }
}

impl FromStr for Pattern {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        let beginning = text.strip_suffix('*').unwrap_or(text);
        let is_name = text == "*" || GateName::new(beginning).is_ok();
        let limit = "it is a gate's name, or the beginning of names with a * at its end, such as domain:*";
        if is_name { Ok(Self(text.to_owned())) } else { Err(Invalid::new("gate", text, limit)) }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(name: &str) -> GateName {
        name.parse().unwrap()
    }

    #[test]
    fn the_candidates_of_a_gate_go_from_its_name_to_everything() {
        let candidates: Vec<String> = Pattern::candidates(&gate("a:b")).collect();
        assert_eq!(candidates, ["a:b", "a:b*", "a:*", "a*", "*"]);
        assert!(candidates.iter().all(|text| text.parse::<Pattern>().unwrap().matches(&gate("a:b"))));
    }

    #[test]
    fn a_pattern_matches_what_begins_like_it() {
        let domain: Pattern = "domain:*".parse().unwrap();
        assert!(domain.matches(&gate("domain:example.org")) && !domain.matches(&gate("source:domain:x")));
        assert!(!Pattern::from(gate("domain:a")).matches(&gate("domain:ab")));
    }

    #[test]
    fn stars_elsewhere_are_refused() {
        for bad in ["", "**", "a*b", "*a", "a b*", "domain:**"] {
            assert_eq!(bad.parse::<Pattern>().unwrap_err().field, "gate", "{bad}");
        }
    }

    #[test]
    fn the_presets_are_the_seeds_rules() {
        let source = GateRule::source(30);
        assert_eq!(source.check(), Ok(()));
        assert_eq!(source.breaker.map(|b| (b.failures, b.cooldown.as_secs())), Some((5, 300)));
        assert_eq!(source.rate.map(|rate| rate.to_string()).as_deref(), Some("30/m"));
        assert_eq!(GateRule::domain().concurrency, Some(2));
    }

    #[test]
    fn a_rule_is_written_in_the_words_that_people_type() {
        let all = GateRule { concurrency: Some(2), weight: 3, ..GateRule::source(30) };
        let text = r#"{"rate":"30/m","burst":1,"cost":1,"concurrency":2,"breaker":"5:5m","weight":3}"#;
        assert_eq!(all.to_json(), text);
        assert_eq!(GateRule::default().to_json(), r#"{"weight":1}"#);
    }

    #[test]
    fn limits_that_nothing_could_obey_are_refused_by_name() {
        let rule = GateRule::default;
        let breaker = |failures, cooldown| Some(Breaker { failures, cooldown });
        let bad = [
            ("concurrency", GateRule { concurrency: Some(0), ..rule() }),
            ("weight", GateRule { weight: 0, ..rule() }),
            ("failures", GateRule { breaker: breaker(0, Duration::from_secs(1)), ..rule() }),
            ("cooldown", GateRule { breaker: breaker(5, Duration::ZERO), ..rule() }),
            ("rate", GateRule { rate: Some(Rate::new(0, Duration::from_secs(1))), ..rule() }),
        ];
        for (field, rule) in bad {
            assert_eq!(rule.check().unwrap_err().field, field);
        }
    }
}
