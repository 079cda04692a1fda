//! `tenure runs show`: one run in full, its partitions, and what to do when it failed.

use clap::Args;
use tenure_core::{Json, RunId, RunState, Timestamp};
use tenure_store::run::{PartitionFilter, PartitionRecord, RunRecord};

use super::next::Next;
use super::{consolidate, counts, progress, unknown};
use crate::args::{TenantArg, page_size, run_id};
use crate::bar::WIDE;
use crate::command::partitions::list::table as partition_table;
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::output::Output;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use tenure_server::moment;
use tenure_server::pretty::error_text;
use tenure_server::wire::run::RunDocument;

const EXAMPLES: &str = "\
Examples:
  tenure runs show 01933c5e-7b5a-7000-8000-000000000001
  tenure runs show 01933c5e-7b5a-7000-8000-000000000001 --partitions 100
  tenure runs show 01933c5e-7b5a-7000-8000-000000000001 --json";

/// Show one run: how far it is, its partitions, what to do when it failed
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    /// The run's id
    #[arg(value_parser = run_id)]
    id: RunId,
    /// Its first partitions, at most this many, up to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = page_size)]
    partitions: u32,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: ShowArgs, session: &mut Session) -> Result<Answer, Failure> {
    let sight = session.sight(args.tenant);
    let store = session.store().await?;
    let record = store.show_run(&sight, args.id).await.map_err(unknown)?;
    let filter = PartitionFilter { run: Some(args.id), limit: args.partitions, ..PartitionFilter::default() };
    let partitions = store.list_partitions(&filter).await?;
    if session.out.is_json() {
        session.out.json(&RunDocument::new(&record, &partitions))?;
        return Ok(Answer::Done);
    }
    let (now, next) = (store.now().await?, Next::find(&*store, &record).await?);
    let out = &mut session.out;
    print(&record, now, out);
    print_partitions(&record, &partitions, args.partitions, now, out);
    next.print(&record, out);
    Ok(Answer::Done)
}

fn print(record: &RunRecord, now: Timestamp, out: &mut Output) {
    let when = |at: Timestamp| format!("{}  ({})", moment::absolute(at), moment::relative(at, now));
    let run = &record.run;
    let paint = Paint::of_run(run.state);
    out.line(Paint::Bold.apply(&format!("Run {}", record.id), out.color()));
    let mut pairs: Vec<(&'static str, Cell)> = vec![
        ("state", Cell::painted(run.state.as_str(), paint)),
        ("progress", Cell::painted(format!("{}  {}", progress(record, WIDE), counts(record)), paint)),
        ("members", members(record).into()),
        ("rows", record.rows.to_string().into()),
        ("consolidate", consolidate(record).into()),
    ];
    for (name, value) in [("source", &record.source), ("owner", &record.owner)] {
        pairs.extend(value.as_ref().map(|value| (name, value.as_str().into())));
    }
    pairs.extend([("tenant", record.tenant.as_str().into()), ("created", when(record.created_at).into())]);
    for (name, at) in [("started", run.started_at), ("finished", run.finished_at), ("deadline", record.deadline)] {
        pairs.extend(at.map(|at| (name, when(at).into())));
    }
    if let Some(error) = &run.last_error {
        let paint = if run.state == RunState::Succeeded { Paint::Dim } else { Paint::Red };
        pairs.push(("last error", Cell::painted(error_text(&Json::from_store(error.as_str())), paint)));
    }
    out.table(&Table::pairs(pairs));
}

/// How many there are, whether more may come, and how many may be missing.
fn members(record: &RunRecord) -> String {
    let run = &record.run;
    let mut said = vec![match run.sealed {
        true => format!("{}, sealed: no more will come", run.total),
        false => format!("{} so far, open: more may come", run.total),
    }];
    if run.tolerated > 0 {
        said.push(format!("up to {} may be missing", run.tolerated));
    }
    if run.fail_fast {
        said.push("one member more that is missing than tolerated ends the others".to_owned());
    }
    said.join("; ")
}

fn print_partitions(record: &RunRecord, partitions: &[PartitionRecord], most: u32, now: Timestamp, out: &mut Output) {
    if partitions.is_empty() {
        return;
    }
    out.line("");
    out.line(Paint::Bold.apply("Partitions", out.color()));
    out.table_with_note(partition_table(partitions, false, now));
    if let Some(last) = partitions.last().filter(|_| partitions.len() == most as usize) {
        out.line(format!("There may be more: tenure partitions list --run {} --after {}", record.id, last.name));
    }
}
