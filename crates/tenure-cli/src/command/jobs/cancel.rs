//! `tenure jobs cancel`: end a job, or ask its worker to.

use clap::Args;
use serde_json::json;
use tenure_core::JobId;
use tenure_store::operate::{CancelJob, Canceled};

use crate::args::{TenantArg, WordArgs, job_id};
use crate::command::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure jobs cancel ID                            a queued job ends at once, a running one is asked to stop
  tenure jobs cancel ID --force                    end a running one at once: its worker's result is dropped
  tenure jobs cancel ID --reason 'wrong customer'  say why, for the journal";

/// End a job; a running one is asked to stop
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct CancelArgs {
    /// The job's id
    #[arg(value_parser = job_id)]
    id: JobId,
    /// End a running job at once instead of asking its worker
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    word: WordArgs,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: CancelArgs, session: &mut Session) -> Result<Answer, Failure> {
    let CancelArgs { id: job, force, .. } = args;
    let request = CancelJob { sight: session.sight(args.tenant), job, force, word: session.word(args.word) };
    let canceled = session.store().await?.cancel_job(request).await?;
    let (word, sentence) = match canceled {
        Canceled::Now => ("now", format!("Job {job} is canceled.")),
        Canceled::Requested => (
            "requested",
            format!(
                "The worker of job {job} is asked to stop. The job is canceled when it does or when its lease ends;\n\
                 --force ends it at once."
            ),
        ),
        Canceled::Before => ("before", format!("Job {job} had been canceled before.")),
    };
    if session.out.is_json() {
        session.out.json(&json!({ "id": job.to_string(), "canceled": word }))?;
    } else {
        session.out.line(sentence);
    }
    Ok(Answer::Done)
}
