//! `tenure audit verify`: recompute the sealed journal and replay it through the lifecycle.

use clap::Args;
use serde_json::json;
use tenure_core::seal::Anchor;
use tenure_store::audit::{Report, verify};

use super::{anchor_text, read_anchor, seal};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::output::Output;
use crate::paint::Paint;
use crate::progress::Progress;
use crate::table::{Cell, Table};

const EXAMPLES: &str = "\
Examples:
  tenure audit verify                           recompute every seal, replay every transition
  tenure audit verify --seal                    seal what is not sealed yet, then verify
  tenure audit verify --anchor 12:3400:9f86d0…  is the chain still the one I wrote down?

Keep the anchor that a check prints outside of this database: only an anchor finds a chain that was rewritten or
cut off as a whole (`tenure audit --help` tells more). The exit code is 1 when anything is found.";

/// Recompute every seal and replay every transition
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct VerifyArgs {
    /// Seal what is not sealed yet before checking
    #[arg(long)]
    seal: bool,
    /// The chain must contain this head, as an earlier check printed it
    #[arg(long, value_name = "NO:ROWS:HASH", value_parser = read_anchor)]
    anchor: Option<Anchor>,
}

pub(super) async fn run(args: VerifyArgs, session: &mut Session) -> Result<Answer, Failure> {
    let store = session.store().await?;
    if args.seal {
        seal(&*store).await?;
    }
    let progress = Progress::of_things(None, "journal rows checked");
    let position = |rows: i64| progress.set(u64::try_from(rows).unwrap_or(0));
    let report = verify(&*store, args.anchor.as_ref(), position).await?;
    drop(progress);
    if session.out.is_json() {
        session.out.json(&to_json(&report))?;
    } else {
        print(&report, args.anchor.is_some(), &mut session.out);
    }
    Ok(if report.findings.is_empty() { Answer::Done } else { Answer::Findings })
}

fn to_json(report: &Report) -> serde_json::Value {
    json!({
        "verified": report.findings.is_empty(),
        "seals": report.seals,
        "rows": report.rows,
        "tail": report.tail,
        "head": report.head.as_ref().map(anchor_text),
        "findings": report.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn print(report: &Report, anchored: bool, out: &mut Output) {
    let (paint, verdict) = match (report.findings.len(), report.seals, anchored) {
        (0, 0, _) => (Paint::Plain, "Nothing is sealed yet; every step is legal.".to_owned()),
        (0, _, true) => {
            (Paint::Green, "Verified: every seal fits, every step is legal, the anchor is there.".to_owned())
        }
        (0, _, false) => (Paint::Green, "Verified: every seal fits and every step is legal.".to_owned()),
        (findings, ..) => (Paint::Red, format!("NOT verified: {findings} found.")),
    };
    out.line(paint.apply(&verdict, out.color()));
    let tail = match report.tail {
        0 => "0".to_owned(),
        tail => format!("{tail}, replayed but not sealed yet (seal them: --seal)"),
    };
    let head = report.head.as_ref().map_or("-".to_owned(), anchor_text);
    let pairs: [(&'static str, Cell); 4] = [
        ("seals", report.seals.to_string().into()),
        ("rows", report.rows.to_string().into()),
        ("tail", tail.into()),
        ("anchor", head.into()),
    ];
    out.table(&Table::pairs(pairs));
    for finding in &report.findings {
        out.line(format!("  - {finding}"));
    }
    if report.head.is_some() && report.findings.is_empty() {
        out.line("\nKeep the anchor elsewhere and give it to a later check with --anchor.");
    }
}
