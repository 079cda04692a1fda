//! `tenure operations cancel`: stop an operation.

use clap::Args;
use tenure_core::JobId;
use tenure_store::operate::CancelJob;

use super::details;
use crate::args::{TenantArg, WordArgs, job_id};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use tenure_server::wire::operation::OperationLine;

const EXAMPLES: &str = "\
Examples:
  tenure operations cancel ID
  tenure operations cancel ID --reason 'wrong group'";

/// Stop an operation; what it has done stays
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CancelArgs {
    /// The operation's id
    #[arg(value_parser = job_id)]
    id: JobId,
    #[command(flatten)]
    word: WordArgs,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: CancelArgs, session: &mut Session) -> Result<Answer, Failure> {
    let (sight, job, word) = (session.sight(args.tenant), args.id, session.word(args.word));
    let store = session.store().await?;
    // Only operations: any other job is not known here.
    let operation = store.show_operation(&sight, job).await?;
    store.cancel_job(CancelJob { sight, job, force: false, word }).await?;
    if session.out.is_json() {
        session.out.json(&OperationLine::from(&operation))?;
        return Ok(Answer::Done);
    }
    session.out.line(format!("Operation {job} is told to stop; what it has done stays."));
    session.out.table(&details(&operation));
    Ok(Answer::Done)
}
