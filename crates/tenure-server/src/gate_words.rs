//! Gates in a person's words, on the command line and on pages.

use tenure_core::duration;
use tenure_core::gate::{Admit, GateRule, Why};
use tenure_store::gate::GateRecord;

use crate::moment;

/// Why a gate is closed and until when; `None` while it is open.
pub fn closed_text(record: &GateRecord) -> Option<String> {
    let Admit::Closed { why, until } = record.admit else { return None };
    let what = match why {
        Why::Paused => "paused",
        Why::Held => "held by its resource",
        Why::Open => "breaker open",
        Why::Probing => "breaker half open, one probe is out",
        Why::Full => "full",
        Why::Rate => "rate reached",
    };
    Some(match (until, why) {
        (Some(until), Why::Open) => format!("{what}, next try {}", moment::relative(until, record.now)),
        (Some(until), _) => format!("{what}, opens {}", moment::relative(until, record.now)),
        (None, Why::Paused) => format!("{what} until resumed"),
        (None, Why::Open) => format!("{what} until reset"),
        (None, _) => what.to_owned(),
    })
}

/// What a rule allows, in one line.
pub fn allows(rule: &GateRule) -> String {
    let mut said = Vec::new();
    if let Some(rate) = &rule.rate {
        let cost = if rate.cost > 1 { format!(", {} a job", rate.cost) } else { String::new() };
        said.push(format!("{rate} (burst {}{cost})", rate.burst));
    }
    if let Some(limit) = rule.concurrency {
        said.push(format!("{limit} at once"));
    }
    if let Some(breaker) = &rule.breaker {
        said.push(format!("after {} failures nothing for {}", breaker.failures, duration::format(breaker.cooldown)));
    }
    if rule.weight != 1 {
        said.push(format!("weight {}", rule.weight));
    }
    if said.is_empty() { "everything".to_owned() } else { said.join(", ") }
}
