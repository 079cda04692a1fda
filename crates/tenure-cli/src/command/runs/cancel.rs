//! `tenure runs cancel`: end a run with all its jobs.

use clap::Args;
use serde_json::json;
use tenure_core::RunId;
use tenure_store::Store;
use tenure_store::run::{CancelRun, RunRecord};

use super::{counts, unknown};
use crate::args::{TenantArg, WordArgs, run_id};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::progress::Progress;
use tenure_server::wire::run::RunLine;

/// Batches of jobs that are canceled before the rest is left to the workers: some hundred thousand jobs.
const ROUNDS_MAX: u32 = 500;

const EXAMPLES: &str = "\
Examples:
  tenure runs cancel ID
  tenure runs cancel ID --reason 'wrong catalogue'   say why, for the journal

What waits ends at once. What runs is asked to stop, and no page of it is stored any more.
Rows that were stored stay. A canceled run does not come back; a repetition changes nothing.";

/// End a run with all its jobs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CancelArgs {
    /// The run's id
    #[arg(value_parser = run_id)]
    id: RunId,
    #[command(flatten)]
    word: WordArgs,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: CancelArgs, session: &mut Session) -> Result<Answer, Failure> {
    let (sight, run) = (session.sight(args.tenant), args.id);
    let request = CancelRun { sight: sight.clone(), run, word: session.word(args.word) };
    let store = session.store().await?;
    let is_new = store.cancel_run(request).await.map_err(unknown)?;
    cancel_jobs(&*store).await.map_err(|failure| {
        let failure = failure.within(&format!("run {run} is canceled, but perhaps not yet all of its jobs"));
        failure.hint("Workers cancel the rest, and so does the same command again.")
    })?;
    let record = store.show_run(&sight, run).await?;
    if session.out.is_json() {
        let canceled = if is_new { "now" } else { "before" };
        session.out.json(&json!({ "id": run.to_string(), "canceled": canceled, "run": RunLine::from(&record) }))?;
        return Ok(Answer::Done);
    }
    session.out.line(match is_new {
        true => format!("Run {run} is canceled."),
        false => format!("Run {run} had been canceled before."),
    });
    session.out.line(what_happens(&record));
    Ok(Answer::Done)
}

/// What waits is canceled here and now, also where no worker is there to do it.
async fn cancel_jobs(store: &dyn Store) -> Result<(), Failure> {
    let progress = Progress::of_things(None, "changes");
    let mut changes = 0;
    for _ in 0..ROUNDS_MAX {
        let folded = store.fold_runs().await?;
        changes += folded.changes;
        progress.set(changes);
        if !folded.more {
            break;
        }
    }
    Ok(())
}

fn what_happens(record: &RunRecord) -> String {
    let mut said = format!("Its members: {}.", counts(record));
    said.push_str("\nWhat still runs is asked to stop, and no page of it is stored any more.");
    if record.rows > 0 {
        said.push_str(&format!("\nThe rows that were stored stay: {}.", record.rows));
    }
    said
}
