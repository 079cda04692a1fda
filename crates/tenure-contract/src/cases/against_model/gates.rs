//! What stories with a gate do besides: rules come and go, operators close it, handlers tell of its health.

use std::time::Duration;

use tenure_core::gate::{Breaker, GateRule, Health, Part, Pattern, Rate, RulePatch};
use tenure_core::name::GateName;
use tenure_store::gate::{GateAct, GateRecord, OperateGate, PatchRule, SetRule};
use tenure_store::lease::GateWord;
use tenure_store::operate::Word;

use super::Story;

impl Story<'_> {
    /// Sets a rule, takes it away, or touches the gate by hand.
    pub(super) async fn govern(&mut self) {
        let Some(gate) = self.gate.clone() else { return };
        if self.dice.below(2) == 0 {
            let request = SetRule { pattern: self.pattern(&gate), rule: self.rule(), word: Word::default() };
            let (here, there) =
                (self.t.store.set_rule(request.clone()).await, self.model.set_rule(request.clone()).await);
            return self.compare(&format!("{request:?}"), &here, &there);
        }
        if self.dice.below(3) == 0 {
            let request = PatchRule { pattern: self.pattern(&gate), patch: self.patch(), word: Word::default() };
            let (here, there) =
                (self.t.store.patch_rule(request.clone()).await, self.model.patch_rule(request.clone()).await);
            return self.compare(&format!("{request:?}"), &here, &there);
        }
        let time = (self.dice.below(2) == 0).then_some(Duration::from_secs(20));
        let acts = [GateAct::Pause(time), GateAct::Resume, GateAct::Trip(time), GateAct::Reset, GateAct::Resume];
        let request = OperateGate { gate, act: acts[self.dice.index(acts.len())], word: Word::default() };
        let (here, there) =
            (self.t.store.operate_gate(request.clone()).await, self.model.operate_gate(request.clone()).await);
        self.compare(&format!("{:?}", request.act), &here, &there);
    }

    /// The gate stands where the model says, and its permits are those of live leases.
    pub(super) async fn check_gate(&mut self) {
        let Some(gate) = self.gate.clone() else { return };
        let (here, there) = (self.t.store.show_gate(&gate).await, self.model.show_gate(&gate).await);
        self.compare("gate", &here.map(seen), &there.map(seen));
    }

    /// No permit was lost or given twice. The next story finds no rule.
    pub(super) async fn end_gate(&mut self) {
        if self.gate.is_none() {
            return;
        }
        assert_eq!(self.t.store.repair_gates().await.expect("repair"), 0, "after\n{}", self.log.join("\n"));
        for (pattern, _) in self.t.store.list_rules(100).await.expect("list rules") {
            let request = SetRule { pattern, rule: None, word: Word::default() };
            self.t.store.set_rule(request).await.expect("remove the rule");
        }
    }

    /// What a handler says of the gate, if anything.
    pub(super) fn gate_word(&mut self) -> GateWord {
        match self.dice.below(7) {
            3 => GateWord { silent: true, ..GateWord::default() },
            0 => GateWord { health: Some(Health::Healthy), ..GateWord::default() },
            1 => GateWord { health: Some(Health::Unhealthy), ..GateWord::default() },
            2 => GateWord { hold: Some(Duration::from_secs(15)), ..GateWord::default() },
            _ => GateWord::default(),
        }
    }

    fn pattern(&mut self, gate: &GateName) -> Pattern {
        let text = if self.dice.below(3) == 0 { "walk:*" } else { gate.as_str() };
        text.parse().expect("a pattern")
    }

    fn patch(&mut self) -> RulePatch {
        let rates = ["2/10s", "1/m", "5/s"].map(|text| text.parse().expect("a rate"));
        RulePatch {
            rate: self.part(rates),
            burst: self.part([1, 2, 5]),
            concurrency: self.part([1, 2, 3]),
            breaker_failures: self.part([1, 2, 3]),
            ..RulePatch::default()
        }
    }

    fn part<T: Copy>(&mut self, values: [T; 3]) -> Part<T> {
        match self.dice.below(4) {
            0 => Part::Clear,
            1 => Part::Set(values[self.dice.index(3)]),
            _ => Part::Keep,
        }
    }

    fn rule(&mut self) -> Option<GateRule> {
        let (concurrency, burst) = ([1, 2, 3][self.dice.index(3)], [2, 3, 4][self.dice.index(3)]);
        let rate = Rate { burst, ..Rate::new(2, Duration::from_secs(10)) };
        let breaker = Breaker { failures: 2, cooldown: Duration::from_secs(30) };
        let bits = self.dice.below(8);
        (bits > 0).then(|| GateRule {
            concurrency: (bits & 1 > 0).then_some(concurrency),
            rate: (bits & 2 > 0).then_some(rate),
            breaker: (bits & 4 > 0).then_some(breaker),
            ..GateRule::default()
        })
    }
}

/// What is the same in every store: the number of the probe's lease is not.
fn seen(record: GateRecord) -> String {
    let GateRecord { pattern, rule, gate, admit, .. } = record;
    format!(
        "{pattern:?} {rule:?} {admit:?} in use {} streak {} probe {}",
        gate.in_use,
        gate.streak,
        gate.probe.is_some()
    )
}

/// The gate of a story: each has one of its own, and two of four have none.
pub(super) fn gate_of(seed: u64) -> Option<GateName> {
    let name = (seed % 2 == 1).then(|| format!("walk:{seed}"));
    name.map(|name| name.parse().expect("a gate's name"))
}
