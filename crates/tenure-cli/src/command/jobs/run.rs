//! `tenure jobs run`: a job that waits for its time is due now.

use clap::Args;
use serde_json::json;
use tenure_core::JobId;
use tenure_store::operate::HastenJob;

use crate::args::{TenantArg, WordArgs, job_id};
use crate::command::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure jobs run 01933c5e-7b5a-7000-8000-000000000001
  tenure jobs run 01933c5e-7b5a-7000-8000-000000000001 --reason 'the shop is back'

A job that is delayed, waits for its next try or waits to be opened is due now; a worker takes it when one is free.
One that runs or has ended is refused: `jobs requeue` revives it.";

/// Make a job due now that waits for its time
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RunArgs {
    /// The job's id
    #[arg(value_parser = job_id)]
    id: JobId,
    #[command(flatten)]
    word: WordArgs,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: RunArgs, session: &mut Session) -> Result<Answer, Failure> {
    let job = args.id;
    let request = HastenJob { sight: session.sight(args.tenant), job, word: session.word(args.word) };
    let hastened = session.store().await?.hasten_job(request).await?;
    if session.out.is_json() {
        session.out.json(&json!({ "id": job.to_string(), "hastened": hastened }))?;
    } else if hastened {
        session.out.line(format!("Job {job} is due now."));
    } else {
        session.out.line(format!("Job {job} was due already."));
    }
    Ok(Answer::Done)
}
