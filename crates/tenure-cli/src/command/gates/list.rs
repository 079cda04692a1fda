//! `tenure gates list`: every gate and what it lets through; `--rules` what was set.

use clap::Args;
use tenure_core::gate::{GateRule, Pattern};
use tenure_core::name::GateName;
use tenure_store::gate::GateFilter;
use tenure_store::operate::BATCH_MAX;

use super::show::now_word;
use crate::args::{gate, page_size, pattern};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::table::{Cell, Table};
use tenure_server::gate_words::allows;
use tenure_server::moment;
use tenure_server::wire::gate::{GateLine, RuleLine};

const EXAMPLES: &str = "\
Examples:
  tenure gates list
  tenure gates list 'source:*'
  tenure gates list --rules          what was set, whether a job has passed it or not
  tenure gates list --json

NOW is what it lets through: open, a number of jobs, or why nothing and until when.
INSIDE is the number of jobs that run through it, STREAK its failures in a row.";

/// List gates and what they let through now
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    /// Only these: a name, or a beginning such as 'source:*'
    #[arg(value_name = "GATE", value_parser = pattern)]
    pattern: Option<Pattern>,
    /// Show the rules instead
    #[arg(long)]
    rules: bool,
    /// At most this many
    #[arg(long, value_name = "N", value_parser = page_size, default_value = "100")]
    limit: u32,
    /// Only names after this one
    #[arg(long, value_name = "NAME", value_parser = gate)]
    after: Option<GateName>,
}

pub(super) async fn run(args: ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    if args.rules {
        return list_rules(args.pattern.as_ref(), session).await;
    }
    let store = session.store().await?;
    let filter = GateFilter { pattern: args.pattern, after: args.after, limit: args.limit };
    let gates = store.list_gates(&filter).await?;
    if session.out.is_json() {
        session.out.json(&gates.iter().map(GateLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if gates.is_empty() {
        session.out.line("No job has passed such a gate yet. What is set: tenure gates list --rules");
        return Ok(Answer::Done);
    }
    let mut table = Table::new(&["GATE", "NOW", "INSIDE", "STREAK", "LAST OK", "LAST FAILURE", "RULE", "ALLOWS"]);
    for gate in &gates {
        let ago = |at: Option<_>| at.map_or_else(|| "-".to_owned(), |at| moment::relative(at, gate.now));
        table.row(vec![
            gate.name.as_str().into(),
            now_word(gate),
            Cell::number(gate.gate.in_use),
            Cell::number(gate.gate.streak),
            Cell::dim(ago(gate.gate.succeeded_at)),
            Cell::dim(ago(gate.gate.failed_at)),
            gate.pattern.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string).into(),
            Cell::dim(allows(&gate.rule)),
        ]);
    }
    session.out.table(&table);
    if gates.len() == args.limit as usize
        && let Some(last) = gates.last()
    {
        session.out.line(format!("There may be more: tenure gates list --after {}", last.name));
    }
    Ok(Answer::Done)
}

async fn list_rules(wanted: Option<&Pattern>, session: &mut Session) -> Result<Answer, Failure> {
    let rules = session.store().await?.list_rules(BATCH_MAX).await?;
    let begins = |pattern: &Pattern, with: &Pattern| match with.as_str().strip_suffix('*') {
        Some(beginning) => pattern.as_str().starts_with(beginning),
        None => pattern == with,
    };
    let rules: Vec<(Pattern, GateRule)> =
        rules.into_iter().filter(|(pattern, _)| wanted.is_none_or(|with| begins(pattern, with))).collect();
    if session.out.is_json() {
        session.out.json(&rules.iter().map(RuleLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if rules.is_empty() {
        session.out.line(
            "No rules yet: gates let everything through. One is set so: tenure gates set 'domain:*' --concurrency 2",
        );
        return Ok(Answer::Done);
    }
    let mut table = Table::new(&["RULE", "ALLOWS"]);
    for (pattern, rule) in &rules {
        table.row(vec![pattern.as_str().into(), allows(rule).into()]);
    }
    session.out.table(&table);
    Ok(Answer::Done)
}
