//! `tenure gates show`: one gate in full.

use clap::Args;
use tenure_core::Timestamp;
use tenure_core::gate::{Admit, Why};
use tenure_core::name::GateName;
use tenure_store::gate::GateRecord;

use crate::args::gate;
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use tenure_server::gate_words::{allows, closed_text};
use tenure_server::moment;
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
