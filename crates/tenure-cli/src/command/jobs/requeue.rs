//! `tenure jobs requeue`: revive failed, dead or canceled jobs, by id or by the hundred thousand.

use clap::Args;
use tenure_core::name::{KindName, QueueName};
use tenure_core::{JobId, State};
use tenure_store::operate::RequeueJob;
use tenure_store::record::JobFilter;

use crate::args::{TenantArg, WordArgs, job_id, kind, queue};
use crate::bulk::{self, Tally};
use crate::command::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure jobs requeue ID ID                                 these
  tenure jobs requeue --state dead                          every dead letter
  tenure jobs requeue --state dead --queue mail --dry-run   how many that would be
  tenure jobs requeue --state failed --kind invoice.send --reason 'fixed in 2.1'

Attempts start again at zero; the history stays.
A job whose unique key belongs to another job by now is refused.";

/// Revive failed, dead or canceled jobs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RequeueArgs {
    /// The jobs' ids
    #[arg(value_name = "ID", value_parser = job_id, required_unless_present = "state", conflicts_with = "state")]
    ids: Vec<JobId>,
    /// All that are failed, dead or canceled
    #[arg(long, value_parser = ended_state)]
    state: Option<State>,
    /// With --state: only jobs of this queue
    #[arg(long, value_name = "NAME", value_parser = queue, requires = "state")]
    queue: Option<QueueName>,
    /// With --state: only jobs of this kind
    #[arg(long, value_name = "NAME", value_parser = kind, requires = "state")]
    kind: Option<KindName>,
    /// Say how many, and change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    word: WordArgs,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: RequeueArgs, session: &mut Session) -> Result<Answer, Failure> {
    let (sight, word) = (session.sight(args.tenant), session.word(args.word));
    let store = session.store().await?;
    let jobs = match args.state {
        Some(state) => {
            let filter = JobFilter {
                sight: sight.clone(),
                state: Some(state),
                queue: args.queue,
                kind: args.kind,
                ..JobFilter::default()
            };
            bulk::find(&*store, filter, |_| true).await?
        }
        None => args.ids,
    };
    if args.dry_run {
        return bulk::dry_run(&jobs, &mut session.out);
    }
    // One job that was named is one answer: its refusal is the command's.
    if let ([job], None) = (jobs.as_slice(), args.state) {
        store.requeue_job(RequeueJob { sight, job: *job, word }).await?;
        return Tally { requeued: 1, ..Tally::default() }.print(&mut session.out);
    }
    bulk::requeue(&store, &jobs, &sight, &word).await?.print(&mut session.out)
}

fn ended_state(word: &str) -> Result<State, String> {
    match State::parse(word) {
        Some(state @ (State::Failed | State::Dead | State::Canceled)) => Ok(state),
        _ => Err("only failed, dead and canceled jobs can be requeued".to_owned()),
    }
}
