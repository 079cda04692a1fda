//! `tenure runs list`: runs that match, newest first.

use clap::Args;
use tenure_core::name::TenantName;
use tenure_core::run::Fan;
use tenure_core::{Json, RunId, RunState, Timestamp};
use tenure_store::run::{RunFilter, RunRecord};

use super::{missing, progress, state};
use crate::args::{TenantArg, page_size, run_id};
use crate::bar::NARROW;
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table, shorten};
use tenure_server::moment;
use tenure_server::pretty::error_text;
use tenure_server::wire::run::RunLine;

/// Characters of an error in a list; `runs show` has all of it.
const ERROR_CHARS_MAX: usize = 60;

const EXAMPLES: &str = "\
Examples:
  tenure runs list                  the 20 newest
  tenure runs list --open           what goes on
  tenure runs list --state failed   what needs somebody
  tenure runs list --before ID      the page after the one that ended with ID
  tenure runs list --json           one JSON array

In PROGRESS ━ is done, × failed or was canceled, ─ is left.";

/// List runs, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    /// Only runs that go on: queued and running ones
    #[arg(long, conflicts_with = "state")]
    open: bool,
    /// queued, running, succeeded, failed or canceled
    #[arg(long, value_parser = state)]
    state: Option<RunState>,
    #[command(flatten)]
    tenant: TenantArg,
    /// At most this many, up to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = page_size)]
    limit: u32,
    /// Only runs older than this one
    #[arg(long, value_name = "ID", value_parser = run_id)]
    before: Option<RunId>,
}

pub(super) async fn run(args: ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let filter = RunFilter {
        sight: session.sight(args.tenant),
        open: args.open,
        state: args.state,
        before: args.before,
        limit: args.limit,
    };
    let store = session.store().await?;
    let runs = store.list_runs(&filter).await?;
    if session.out.is_json() {
        session.out.json(&runs.iter().map(RunLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if runs.is_empty() {
        let everything = RunFilter { limit: filter.limit, ..RunFilter::default() };
        session.out.line(match filter == everything {
            true => "No runs yet: a program makes them.",
            false if filter.open && filter.before.is_none() => "No run goes on.",
            false => "No such runs.",
        });
        return Ok(Answer::Done);
    }
    session.out.table_with_note(table(&runs, store.now().await?));
    if let Some(last) = runs.last().filter(|_| runs.len() == filter.limit as usize) {
        session.out.line(format!("\nThere may be more: add --before {}", last.id));
    }
    Ok(Answer::Done)
}

fn table(runs: &[RunRecord], now: Timestamp) -> Table {
    // Who has one tenant does not want to read its name on every line.
    let tenants = runs.iter().any(|run| run.tenant != TenantName::default());
    let mut table =
        Table::new(&["ID", "TENANT", "STATE", "SOURCE", "OWNER", "PROGRESS", "DONE", "ROWS", "CREATED", "NOTE"]);
    for record in runs {
        let (run, paint) = (&record.run, Paint::of_run(record.run.state));
        let tenant = if tenants { record.tenant.as_str() } else { "" };
        table.row(vec![
            record.id.to_string().into(),
            tenant.into(),
            Cell::painted(run.state.as_str(), paint),
            record.source.clone().unwrap_or_default().into(),
            record.owner.clone().unwrap_or_default().into(),
            Cell::painted(progress(record, NARROW), paint),
            Cell::number(format_args!("{}/{}", run.done, run.total)),
            Cell::number(record.rows),
            Cell::dim(moment::relative(record.created_at, now)),
            note(record, now).into(),
        ]);
    }
    table
}

/// What a person wants to know next about a run in its state.
fn note(record: &RunRecord, now: Timestamp) -> String {
    let run = &record.run;
    let mut said: Vec<String> = missing(record).into_iter().collect();
    match (run.state.is_open(), run.finished_at) {
        (false, Some(at)) => said.push(format!("ended {}", moment::relative(at, now))),
        (true, _) if !run.sealed => said.push("may still grow".to_owned()),
        (true, _) if run.fan == Fan::Open => said.push("consolidates".to_owned()),
        _ => {}
    }
    let text = said.join(", ");
    match run.last_error.as_ref().filter(|_| run.state == RunState::Failed) {
        Some(error) => {
            let error = error_text(&Json::from_store(error.as_str()));
            format!("{text}: {}", shorten(&error, ERROR_CHARS_MAX))
        }
        None => text,
    }
}
