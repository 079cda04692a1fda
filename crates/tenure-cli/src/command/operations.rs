//! `tenure operations`: one act on many jobs, done in the background by a server.

mod cancel;
mod list;
mod show;
mod start;

use clap::{Args, Subcommand};
use tenure_store::operation::OperationRecord;

use super::{Answer, Session};
use crate::failure::Failure;
use crate::table::{Cell, Table};
use tenure_server::moment;

const EXAMPLES: &str = "\
Examples:
  tenure operations start requeue --state dead --kind mail.send   revive dead letters, in the background
  tenure operations list                                          the newest, and how far each is
  tenure operations show ID
  tenure operations cancel ID                                     stop one; what it has done stays

An operation is done by tenure server or tenure dev, and goes on after a restart.
For a few jobs, tenure jobs requeue and tenure dead requeue do the same at once.";

/// List, show, start and cancel operations: one act on many jobs, in the background
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct OperationsArgs {
    #[command(subcommand)]
    what: OperationsCommand,
}

#[derive(Debug, Subcommand)]
enum OperationsCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Start(start::StartArgs),
    Cancel(cancel::CancelArgs),
}

pub(crate) async fn run(args: OperationsArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.what {
        OperationsCommand::List(args) => list::run(args, session).await,
        OperationsCommand::Show(args) => show::run(args, session).await,
        OperationsCommand::Start(args) => start::run(args, session).await,
        OperationsCommand::Cancel(args) => cancel::run(args, session).await,
    }
}

/// `7/12`, and `?` for a total that is still being counted.
fn progress(operation: &OperationRecord) -> String {
    let progress = &operation.progress;
    let total = progress.total.map_or_else(|| "?".to_owned(), |total| total.to_string());
    format!("{}/{total}", progress.done)
}

/// The jobs that an operation acts on: `dead, kind mail.send, queue mail`.
fn jobs(operation: &OperationRecord) -> String {
    let filters = [
        ("kind", operation.kind.as_ref().map(ToString::to_string)),
        ("queue", operation.queue.as_ref().map(ToString::to_string)),
        ("group", operation.group.clone()),
        ("tenant", operation.tenant.as_ref().map(ToString::to_string)),
    ];
    let filters = filters.into_iter().filter_map(|(name, value)| value.map(|value| format!(", {name} {value}")));
    std::iter::once(operation.state.as_str().to_owned()).chain(filters).collect()
}

/// Everything about one operation.
fn details(operation: &OperationRecord) -> Table {
    let progress = &operation.progress;
    let mut pairs: Vec<(&'static str, Cell)> = vec![
        ("id", operation.id.to_string().into()),
        ("name", operation.name.as_str().into()),
        ("act", operation.act.as_str().into()),
        ("jobs", jobs(operation).into()),
        ("done", self::progress(operation).into()),
    ];
    if progress.refused > 0 {
        let why = progress.last_refusal.as_deref().unwrap_or_default();
        pairs.push(("refused", format!("{}, the last because {why}", progress.refused).into()));
    }
    pairs.extend(operation.word.actor.as_deref().map(|actor| ("actor", actor.into())));
    pairs.extend(operation.word.reason.as_deref().map(|reason| ("reason", reason.into())));
    pairs.push(("created", moment::absolute(operation.created_at).into()));
    let finished = operation.finished_at.map_or_else(|| "not yet".to_owned(), moment::absolute);
    pairs.push(("finished", finished.into()));
    Table::pairs(pairs)
}
