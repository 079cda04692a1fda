//! `tenure gates show`: one gate in full.

use clap::Args;
use tenure_core::gate::{Admit, GateRule, Why};
use tenure_core::name::GateName;
use tenure_core::{Timestamp, duration};
use tenure_store::gate::GateRecord;

use crate::args::gate;
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::moment;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use tenure_server::wire::gate::GateLine;

const EXAMPLES: &str = "\
Examples:
  tenure gates show source:ebay
  tenure gates show source:ebay --json";

/// Show one gate: what it lets through, its rule, how its resource did
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    /// The gate
    #[arg(value_name = "GATE", value_parser = gate)]
    gate: GateName,
}

pub(super) async fn run(args: &ShowArgs, session: &mut Session) -> Result<Answer, Failure> {
    let record = session.store().await?.show_gate(&args.gate).await?;
    if session.out.is_json() {
        session.out.json(&GateLine::from(&record))?;
        return Ok(Answer::Done);
    }
    let out = &mut session.out;
    out.line(Paint::Bold.apply(&format!("Gate {}", record.name), out.color()));
    let when = |at: Timestamp| format!("{}  ({})", moment::absolute(at), moment::relative(at, record.now));
    let mut pairs: Vec<(&'static str, Cell)> = vec![
        ("now", now_word(&record)),
        ("allows", allows(&record.rule).into()),
        ("rule", record.pattern.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string).into()),
        ("inside", record.gate.in_use.to_string().into()),
    ];
    if let Some(rate) = &record.rule.rate {
        let tokens = rate.tokens(record.gate.full_at, record.now);
        pairs.push(("tokens", format!("{tokens} of {}", rate.burst).into()));
    }
    pairs.push(("streak", record.gate.streak.to_string().into()));
    for (name, at) in [("last ok", record.gate.succeeded_at), ("last failure", record.gate.failed_at)] {
        pairs.push((name, at.map_or_else(|| "never".to_owned(), when).into()));
    }
    for (name, reason) in [("paused for", &record.pause_reason), ("tripped for", &record.trip_reason)] {
        if let Some(reason) = reason {
            pairs.push((name, reason.as_str().into()));
        }
    }
    out.table(&Table::pairs(pairs));
    Ok(Answer::Done)
}

/// What a gate lets through now, in a few words.
pub(super) fn now_word(record: &GateRecord) -> Cell {
    match record.admit {
        Admit::Open(u32::MAX) => Cell::painted("open", Paint::Green),
        Admit::Open(jobs) => Cell::painted(format!("open for {jobs}"), Paint::Green),
        Admit::Closed { why, .. } => {
            let paint = if why == Why::Open { Paint::Red } else { Paint::Yellow };
            Cell::painted(closed_text(record).unwrap_or_default(), paint)
        }
    }
}

/// Why a gate is closed and until when; `None` while it is open.
pub(crate) fn closed_text(record: &GateRecord) -> Option<String> {
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
        (Some(until), _) => format!("{what}, opens {}", moment::relative(until, record.now)),
        (None, Why::Paused) => format!("{what} until resumed"),
        (None, Why::Open) => format!("{what} until reset"),
        (None, _) => what.to_owned(),
    })
}

/// What a rule allows, in one line.
pub(super) fn allows(rule: &GateRule) -> String {
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
