//! `tenure demo`: a tour of a job's life on an embedded store in memory.
//!
//! The tour plays two workers and an operator through the store's own verbs. Time is moved by hand, so nothing sleeps,
//! and what is printed is what the store answered, never a script.

mod stage;
mod tour;

use std::collections::BTreeMap;

use clap::Args;
use serde_json::json;
use tenure_store::JournalStore;
use tenure_store::audit::verify;

use super::Answer;
use crate::failure::Failure;
use crate::output::Output;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use stage::{Stage, Tally};

const EXAMPLES: &str = "\
Examples:
  tenure demo           twelve jobs, two workers, one crash
  tenure demo --json    the result as one JSON object

Nothing is kept and nothing is needed: the store is in memory.";

/// See retries, a crash, a stale worker and the journal, in one second
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DemoArgs {}

pub(crate) async fn run(_: &DemoArgs, out: &mut Output) -> Result<Answer, Failure> {
    let mut stage = Stage::open().await?;
    tour::play(&mut stage).await?;
    stage.store.seal_journal().await?;
    let report = verify(&stage.store, None, |_| ()).await?;
    stage.say("The journal is sealed and verified");
    stage.note(format!(
        "{} rows under {} seals: every hash fits, every transition is one the lifecycle allows",
        report.rows, report.seals
    ));
    let tally = stage.tally().await?;
    let verified = report.findings.is_empty();
    if out.is_json() {
        let states: BTreeMap<&str, u64> = tally.states.iter().map(|(state, count)| (state.as_str(), *count)).collect();
        out.json(&json!({
            "states": states,
            "reclaimed": stage.reclaimed,
            "stale_refused": stage.stale_refused,
            "audit": { "verified": verified, "rows": report.rows, "seals": report.seals },
        }))?;
    } else {
        print(&stage, &tally, out);
    }
    Ok(if verified { Answer::Done } else { Answer::Findings })
}

fn print(stage: &Stage, tally: &Tally, out: &mut Output) {
    out.line("A tour on an embedded store in memory: nothing is kept, and time is moved by hand.\n");
    for (number, step) in stage.steps.iter().enumerate() {
        out.line(Paint::Bold.apply(&format!("{:2}. {}", number + 1, step.title), out.color()));
        for note in &step.notes {
            out.line(format!("    {note}"));
        }
    }
    out.line("");
    let mut table = Table::new(&["JOB", "PRIO", "STATE", "HISTORY"]);
    for job in &tally.jobs {
        table.row(vec![
            job.name.as_str().into(),
            Cell::number(job.priority.get()),
            Cell::painted(job.state.as_str(), Paint::of_state(job.state)),
            job.history.as_str().into(),
        ]);
    }
    out.table(&table);
    out.line("\nYour turn: `tenure enqueue hello`, `tenure jobs list`, `tenure --help`.");
}
