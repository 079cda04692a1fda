//! A change of some parts of a rule. A part that the change does not name stays as it is.

use super::breaker::Breaker;
use super::bucket::Rate;
use super::rule::GateRule;
use crate::invalid::Invalid;

/// What becomes of one part of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Part<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It goes: no limit, or the default where the part always has a value.
    Clear,
    /// It is this from now on.
    Set(T),
}

/// A change of some parts of a rule. The default changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RulePatch {
    /// Tokens and period of the rate; the burst and the cost of this value are not used. `Clear` takes burst and cost along.
    pub rate: Part<Rate>,
    /// The most that passes at once; `Clear` is a tenth of a second's worth.
    pub burst: Part<u32>,
    /// Tokens of a job; `Clear` is 1.
    pub cost: Part<u32>,
    /// Jobs inside at once.
    pub concurrency: Part<u32>,
    /// Failures in a row that open the breaker.
    pub breaker_failures: Part<u32>,
    /// How long it stays open. It goes together with the failures.
    pub breaker_cooldown: Part<std::time::Duration>,
    /// The share beside other lines; `Clear` is 1.
    pub weight: Part<u32>,
}

impl<T: Copy> Part<T> {
    /// `Set` for a value, `Keep` for none.
    pub fn named(value: Option<T>) -> Self {
        value.map_or(Self::Keep, Self::Set)
    }

    /// `Keep` where the part is not named, `Clear` where it is named without a value.
    pub fn of(named: Option<Option<T>>) -> Self {
        named.map_or(Self::Keep, |value| value.map_or(Self::Clear, Self::Set))
    }

    fn over(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    fn value(self) -> Option<T> {
        self.over(None)
    }
}

impl From<&GateRule> for RulePatch {
    /// Every limit that the rule has is named; what it does not limit stays as it is.
    fn from(rule: &GateRule) -> Self {
        let usual = rule.rate.map(|rate| Rate::new(rate.count, rate.period));
        let changed = |part: fn(&Rate) -> u32| {
            rule.rate.map(|rate| part(&rate)).filter(|it| Some(*it) != usual.map(|rate| part(&rate)))
        };
        Self {
            rate: Part::named(rule.rate),
            burst: Part::named(changed(|rate| rate.burst)),
            cost: Part::named(changed(|rate| rate.cost)),
            concurrency: Part::named(rule.concurrency),
            breaker_failures: Part::named(rule.breaker.map(|breaker| breaker.failures)),
            breaker_cooldown: Part::named(rule.breaker.map(|breaker| breaker.cooldown)),
            weight: if rule.weight == 1 { Part::Keep } else { Part::Set(rule.weight) },
        }
    }
}

impl RulePatch {
    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses values that no rule can have, whatever the rule before is. What depends on it is left to [`apply`](Self::apply).
    pub fn check(&self) -> Result<(), Invalid> {
        let burst_of = |rate: Rate| self.burst.value().map(|burst| Rate { burst, ..rate });
        let rate =
            self.rate.value().and_then(burst_of).map(|rate| Rate { cost: self.cost.value().unwrap_or(1), ..rate });
        let breaker = self.breaker_failures.value().zip(self.breaker_cooldown.value());
        let breaker = breaker.map(|(failures, cooldown)| Breaker { failures, cooldown });
        let weight = self.weight.value().unwrap_or(GateRule::default().weight);
        GateRule { rate, concurrency: self.concurrency.value(), breaker, weight }.check()
    }

    /// The rule after the change. Refused is what the rule then could not obey, and a part of a rate or of a breaker that
    /// is not there.
    pub fn apply(&self, before: &GateRule) -> Result<GateRule, Invalid> {
        let rule = GateRule {
            rate: self.rate(before.rate)?,
            concurrency: self.concurrency.over(before.concurrency),
            breaker: self.breaker(before.breaker)?,
            weight: self.weight.over(Some(before.weight)).unwrap_or(GateRule::default().weight),
        };
        rule.check()?;
        Ok(rule)
    }

    /// A burst that was the default of its rate stays the default when the rate changes.
    fn rate(&self, before: Option<Rate>) -> Result<Option<Rate>, Invalid> {
        let Some(rate) = self.rate.over(before) else {
            let lone = [("burst", self.burst.value()), ("cost", self.cost.value())];
            let lone = lone.into_iter().find_map(|(field, value)| Some((field, value?)));
            return lone.map_or(Ok(None), |(field, value)| {
                Err(Invalid::new(
                    field,
                    value,
                    "it belongs to a rate, and the rule has none: name a rate too, such as 30/m",
                ))
            });
        };
        let usual = |rate: Rate, cost: u32| Rate::new(rate.count, rate.period).with(None, Some(cost)).burst;
        let kept = before.filter(|rate| rate.burst != usual(*rate, rate.cost)).map(|rate| rate.burst);
        let cost = self.cost.over(before.map(|rate| rate.cost)).unwrap_or(1);
        let burst = self.burst.over(kept).unwrap_or(usual(rate, cost));
        Ok(Some(Rate { burst, cost, ..rate }))
    }

    fn breaker(&self, before: Option<Breaker>) -> Result<Option<Breaker>, Invalid> {
        let failures = self.breaker_failures.over(before.map(|breaker| breaker.failures));
        let cooldown = self.breaker_cooldown.over(before.map(|breaker| breaker.cooldown));
        match (failures, cooldown, self.breaker_failures, self.breaker_cooldown) {
            (Some(failures), Some(cooldown), ..) => Ok(Some(Breaker { failures, cooldown })),
            (None, None, ..) | (None, Some(_), Part::Clear, Part::Keep) => Ok(None),
            (Some(failures), None, ..) => {
                Err(Invalid::new("breaker_failures", failures, "a breaker has failures and a cooldown: name both"))
            }
            (None, Some(cooldown), ..) => {
                let cooldown = crate::duration::format(cooldown);
                Err(Invalid::new("breaker_cooldown_ms", cooldown, "a breaker has failures and a cooldown: name both"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn whole() -> GateRule {
        let rate = Rate { burst: 7, cost: 2, ..Rate::new(30, Duration::from_secs(60)) };
        GateRule { rate: Some(rate), concurrency: Some(4), weight: 3, ..GateRule::source(30) }
    }

    fn applied(patch: RulePatch, before: &GateRule) -> GateRule {
        patch.apply(before).unwrap()
    }

    #[test]
    fn what_is_not_named_stays() {
        let before = whole();
        assert_eq!(applied(RulePatch::default(), &before), before);
        let patch = RulePatch { concurrency: Part::Set(9), ..RulePatch::default() };
        assert_eq!(applied(patch, &before), GateRule { concurrency: Some(9), ..before.clone() });
        let faster = RulePatch { rate: Part::Set("60/m".parse().unwrap()), ..RulePatch::default() };
        let rate = applied(faster, &before).rate.unwrap();
        assert_eq!((rate.to_string().as_str(), rate.burst, rate.cost), ("60/m", 7, 2), "burst and cost were set");
        let patient = RulePatch { breaker_cooldown: Part::Set(Duration::from_secs(9)), ..RulePatch::default() };
        let breaker = Breaker { failures: 5, cooldown: Duration::from_secs(9) };
        assert_eq!(applied(patient, &before).breaker, Some(breaker));
    }

    #[test]
    fn values_that_no_rule_can_have_are_refused_without_a_rule_before() {
        let patch = RulePatch::default;
        let rate = Part::Set("5/s".parse().unwrap());
        let refused = [
            ("concurrency", RulePatch { concurrency: Part::Set(0), ..patch() }),
            ("weight", RulePatch { weight: Part::Set(0), ..patch() }),
            ("cost", RulePatch { rate, burst: Part::Set(1), cost: Part::Set(2), ..patch() }),
        ];
        for (field, patch) in refused {
            assert_eq!(patch.check().unwrap_err().field, field);
        }
        // A rule before may have a burst of 2.
        for patch in [patch(), RulePatch { rate, cost: Part::Set(2), ..patch() }] {
            assert_eq!(patch.check(), Ok(()));
        }
    }

    #[test]
    fn a_part_that_is_cleared_goes() {
        let before = whole();
        let clear = |patch: RulePatch| applied(patch, &before);
        assert_eq!(clear(RulePatch { rate: Part::Clear, ..RulePatch::default() }).rate, None);
        assert_eq!(clear(RulePatch { concurrency: Part::Clear, ..RulePatch::default() }).concurrency, None);
        assert_eq!(clear(RulePatch { breaker_failures: Part::Clear, ..RulePatch::default() }).breaker, None);
        assert_eq!(clear(RulePatch { weight: Part::Clear, ..RulePatch::default() }).weight, 1);
        let rate = clear(RulePatch { burst: Part::Clear, cost: Part::Clear, ..RulePatch::default() }).rate.unwrap();
        assert_eq!((rate.burst, rate.cost), (1, 1));
    }

    #[test]
    fn a_default_burst_stays_the_default() {
        let before = GateRule::source(30);
        let patch = RulePatch { rate: Part::Set("6000/m".parse().unwrap()), ..RulePatch::default() };
        assert_eq!(applied(patch, &before).rate.unwrap().burst, 10);
        let dear = RulePatch { cost: Part::Set(4), ..RulePatch::default() };
        assert_eq!(applied(dear, &before).rate.unwrap().burst, 4, "at least the cost of a job");
    }

    #[test]
    fn a_rule_as_a_change_leaves_what_it_does_not_limit() {
        let patch = RulePatch::from(&GateRule::domain());
        assert_eq!(applied(patch, &whole()), GateRule { concurrency: Some(2), ..whole() });
        assert_eq!(applied(RulePatch::from(&whole()), &GateRule::default()), whole());
    }

    #[test]
    fn a_part_of_what_is_not_there_is_refused_by_name() {
        let none = GateRule::default();
        let refused = |patch: RulePatch| patch.apply(&none).unwrap_err().field;
        assert_eq!(refused(RulePatch { burst: Part::Set(5), ..RulePatch::default() }), "burst");
        assert_eq!(refused(RulePatch { cost: Part::Set(5), ..RulePatch::default() }), "cost");
        assert_eq!(refused(RulePatch { breaker_failures: Part::Set(5), ..RulePatch::default() }), "breaker_failures");
        let cooldown = Part::Set(Duration::from_secs(1));
        assert_eq!(refused(RulePatch { breaker_cooldown: cooldown, ..RulePatch::default() }), "breaker_cooldown_ms");
        let half = RulePatch { breaker_cooldown: Part::Clear, ..RulePatch::default() };
        assert_eq!(half.apply(&whole()).unwrap_err().field, "breaker_failures");
        let dear = RulePatch { cost: Part::Set(9), ..RulePatch::default() };
        assert_eq!(dear.apply(&whole()).unwrap_err().field, "cost", "more than the burst");
    }
}
