//! `tenure operations show`: one operation and how far it is.

use clap::Args;
use tenure_core::JobId;

use super::details;
use crate::args::{TenantArg, job_id};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use tenure_server::wire::operation::OperationLine;

const EXAMPLES: &str = "\
Examples:
  tenure operations show ID
  tenure operations show ID --json";

/// Show one operation and how far it is
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ShowArgs {
    /// The operation's id
    #[arg(value_parser = job_id)]
    id: JobId,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: ShowArgs, session: &mut Session) -> Result<Answer, Failure> {
    let sight = session.sight(args.tenant);
    let operation = session.store().await?.show_operation(&sight, args.id).await?;
    match session.out.is_json() {
        true => session.out.json(&OperationLine::from(&operation))?,
        false => session.out.table(&details(&operation)),
    }
    Ok(Answer::Done)
}
