//! `tenure operations list`: operations, newest first.

use clap::Args;
use tenure_core::JobId;
use tenure_store::operation::OperationFilter;

use super::{jobs, progress};
use crate::args::{TenantArg, job_id, page_size};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use tenure_server::moment;
use tenure_server::wire::operation::OperationLine;

const EXAMPLES: &str = "\
Examples:
  tenure operations list
  tenure operations list --limit 100
  tenure operations list --before ID   the page after the one that ended with ID
  tenure operations list --json        one JSON array";

/// List operations, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    #[command(flatten)]
    tenant: TenantArg,
    /// At most this many, up to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = page_size)]
    limit: u32,
    /// Only operations older than this one
    #[arg(long, value_name = "ID", value_parser = job_id)]
    before: Option<JobId>,
}

pub(super) async fn run(args: ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let filter = OperationFilter { sight: session.sight(args.tenant), before: args.before, limit: args.limit };
    let store = session.store().await?;
    let operations = store.list_operations(&filter).await?;
    if session.out.is_json() {
        session.out.json(&operations.iter().map(OperationLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if operations.is_empty() {
        session.out.line("No operations. Try: tenure operations start --help");
        return Ok(Answer::Done);
    }
    let now = store.now().await?;
    let mut table = Table::new(&["ID", "ACT", "JOBS", "DONE", "REFUSED", "CREATED", "STATE", "NAME"]);
    for operation in &operations {
        let state = match operation.finished_at {
            Some(_) => Cell::painted("finished", Paint::Green),
            None => Cell::painted("open", Paint::Cyan),
        };
        table.row(vec![
            operation.id.to_string().into(),
            operation.act.as_str().into(),
            jobs(operation).into(),
            Cell::number(progress(operation)),
            Cell::number(operation.progress.refused),
            Cell::dim(moment::relative(operation.created_at, now)),
            state,
            operation.name.as_str().into(),
        ]);
    }
    session.out.table_with_note(table);
    if let Some(last) = operations.last().filter(|_| operations.len() == filter.limit as usize) {
        session.out.line(format!("\nThere may be more: add --before {}", last.id));
    }
    Ok(Answer::Done)
}
