//! Gates: what shared resources let through, how they do, and what was done to them.

use askama::Template;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use tenure_core::gate::{GateRule, Pattern, Rate};
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::name::GateName;
use tenure_core::{Invalid, duration};
use tenure_server::gate_words::allows;
use tenure_store::gate::{GateFilter, GateRecord};
use tenure_store::journal::JournalFilter;

use super::Shown;
use crate::act::Act;
use crate::asked::{Refused, address, parsed_as, refusal, word};
use crate::bits::{self, Markup, encoded};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

const PAGE: u32 = 100;
/// What can happen to a gate.
const EVENTS: [JournalEvent; 6] = [
    JournalEvent::GatePaused,
    JournalEvent::GateResumed,
    JournalEvent::GateTripped,
    JournalEvent::GateReset,
    JournalEvent::GateHealed,
    JournalEvent::GateRuled,
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    pattern: String,
    after: String,
}

#[derive(Template)]
#[template(path = "gates.html")]
struct Gates {
    frame: Frame,
    asked: Asked,
    gates: Vec<GateRecord>,
    rules: Vec<(String, String)>,
    next: Option<String>,
    refused: Refused,
}

pub(crate) async fn list(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    visit.need_operator()?;
    let found = match asked.filter() {
        Ok(filter) => refusal(desk.store().list_gates(&filter).await)?,
        Err(invalid) => Err(invalid),
    };
    let (mut gates, refused) = Refused::or(found);
    let has_more = gates.len() > PAGE as usize;
    gates.truncate(PAGE as usize);
    let last = gates.last().filter(|_| has_more).map(|gate| gate.name.to_string());
    let next = last.map(|last| address("/gates", &[("pattern", &asked.pattern), ("after", &last)]));
    let rules = desk.store().list_rules(1_000).await?;
    let rules = rules.iter().map(|(pattern, rule)| (pattern.to_string(), allows(rule))).collect();
    let frame = visit.frame("Gates", "gates");
    Ok(visit.show_list(refused.is_some(), &Gates { frame, asked, gates, rules, next, refused }))
}

impl Asked {
    fn filter(&self) -> Result<GateFilter, Invalid> {
        // What one types is the beginning of a name.
        let pattern =
            word(&self.pattern).map(|text| if text.ends_with('*') { text.to_owned() } else { format!("{text}*") });
        let pattern = pattern.map(|pattern| pattern.parse::<Pattern>()).transpose();
        Ok(GateFilter {
            pattern: pattern.map_err(|invalid| Invalid { field: "pattern", ..invalid })?,
            after: parsed_as::<GateName>("after", &self.after)?,
            limit: PAGE + 1,
        })
    }
}

#[derive(Template)]
#[template(path = "gate.html")]
struct GatePage {
    frame: Frame,
    gate: GateRecord,
    history: Vec<JournalRow>,
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit, Path(name): Path<String>) -> Shown {
    visit.need_operator()?;
    let name: GateName = name.parse()?;
    let gate = desk.store().show_gate(&name).await?;
    let filter = JournalFilter {
        events: EVENTS.to_vec(),
        subject: Some(name.to_string()),
        acts_only: true,
        limit: 50,
        ..JournalFilter::default()
    };
    let history = desk.store().list_journal(&filter).await?.rows;
    Ok(visit.show(&GatePage { frame: visit.frame(name.to_string(), "gates"), gate, history }))
}

/// Tokens that are left, of how many.
fn bucket(gate: &GateRecord) -> Option<(u32, u32)> {
    gate.rule.rate.map(|rate| (rate.tokens(gate.gate.full_at, gate.now), rate.burst))
}

fn acts(frame: &Frame, gate: &GateRecord) -> Markup {
    let name = &gate.name;
    let path = |act: &str| format!("/v1/gates/{}/{act}", encoded(name));
    let is_paused = [gate.gate.paused_until, gate.gate.held_until].into_iter().flatten().any(|until| until > gate.now);
    let pause = match is_paused {
        true => Act::new("Resume", path("resume"), format!("Gate {name} is resumed."))
            .ask("Jobs pass again, as its rule allows."),
        false => Act::new("Pause", path("pause"), format!("Gate {name} is paused."))
            .text("for_ms:duration", "For how long; until resumed where nothing is said", "10m")
            .ask("Nothing passes; jobs inside go on."),
    };
    let is_open = gate.gate.open_until.is_some();
    // More than an empty bucket: reservations of jobs that run.
    let owes = gate.rule.rate.is_some_and(|rate| gate.gate.full_at > rate.refilled_at(gate.now));
    let trip = (!is_open).then(|| {
        Act::new("Trip", path("trip"), format!("The breaker of {name} is open."))
            .text("for_ms:duration", "For how long; until reset where nothing is said", "5m")
            .ask("Its breaker opens: nothing passes.")
            .grave()
    });
    let reset = (is_open || owes).then(|| {
        Act::new("Reset", path("reset"), format!("The breaker of {name} is closed, and its bucket is full."))
            .ask("Its breaker closes and forgets its failures, and its bucket is full.")
    });
    Markup([Some(pause), trip, reset].iter().flatten().map(|act| frame.act(act).0).collect())
}

impl GatePage {
    fn rule(&self) -> Markup {
        let name = &self.gate.name;
        let GateRule { rate, concurrency, breaker, weight } = &self.gate.rule;
        let number = |number: u32| number.to_string();
        // A default stays one, also when the rate is changed or taken away.
        let usual = rate.map(|rate| Rate::new(rate.count, rate.period));
        let burst = rate.map(|rate| rate.burst).filter(|burst| Some(*burst) != usual.map(|usual| usual.burst));
        let cost = rate.map(|rate| rate.cost).filter(|cost| Some(*cost) != usual.map(|usual| usual.cost));
        let from = self.gate.pattern.as_ref().map(Pattern::as_str).filter(|pattern| *pattern != name.as_str());
        // A rule of its own is changed where the form was changed. A gate that obeys the rule of others gets a whole one.
        let (method, ask) = match from {
            Some(pattern) => (
                "PUT",
                format!(
                    "This gate obeys the rule of {pattern} now. From here on it obeys a rule of its own; what you leave \
                     empty is not limited."
                ),
            ),
            None => (
                "PATCH",
                "The form shows the rule that holds now. What you do not change stays; what you empty is not limited."
                    .to_owned(),
            ),
        };
        let act = Act::new("Set rule", format!("/v1/rules/{}", encoded(name)), format!("The rule of {name} is set."))
            .method(method)
            .filled("rate", "Jobs in a time", "30/m", rate.map(|rate| rate.to_string()))
            .filled("burst:number", "At once after a quiet time", "a tenth of a second's worth", burst.map(number))
            .filled("cost:number", "Tokens that a job takes", "1", cost.map(number))
            .filled("concurrency:number", "Jobs inside at once", "2", concurrency.map(number))
            .filled(
                "breaker_failures:number",
                "Failures in a row that open its breaker",
                "5",
                breaker.as_ref().map(|breaker| number(breaker.failures)),
            )
            .filled(
                "breaker_cooldown_ms:duration",
                "Its breaker stays open for",
                "5m",
                breaker.as_ref().map(|breaker| duration::format(breaker.cooldown)),
            )
            .filled("weight:number", "Share beside the other lanes of a queue", "1", Some(number(*weight)))
            .ask(ask);
        self.frame.act(&act)
    }
}
