//! `tenure dead requeue`: revive dead letters, a group at a time.

use std::collections::HashSet;
use std::sync::Arc;

use clap::{ArgGroup, Args};
use tenure_core::name::{KindName, QueueName};
use tenure_core::{JobId, State};
use tenure_server::dead::{Cause, key, parse_key};
use tenure_store::Store;
use tenure_store::record::{JobFilter, JobSummary, Sight};

use super::filter;
use crate::args::{TenantArg, WordArgs, job_id, kind, queue};
use crate::bulk::{self, Tally, counted};
use crate::command::{Answer, Session};
use crate::confirm;
use crate::failure::{Failure, exit};

const EXAMPLES: &str = "\
Examples:
  tenure dead requeue --group 4f1c2a9e --reason 'fixed in 2.1'   one group of `tenure dead list`
  tenure dead requeue --kind mail.send --queue mail              all that match
  tenure dead requeue ID ID                                      these
  tenure dead requeue --all --dry-run                            how many that would be
  tenure dead requeue --all --yes                                every dead letter, unasked

Attempts start again at zero; the history stays.
A job whose unique key belongs to another job by now is refused.";

/// Revive dead letters
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group = ArgGroup::new("which").args(["ids", "group", "kind", "queue", "all"]).required(true).multiple(true))]
pub(super) struct RequeueArgs {
    /// The jobs' ids
    #[arg(value_name = "ID", value_parser = job_id, conflicts_with_all = ["group", "kind", "queue", "all"])]
    ids: Vec<JobId>,
    /// Those that died of the same, as `tenure dead list` names them
    #[arg(long, value_name = "KEY", value_parser = parse_key)]
    group: Option<String>,
    /// Those of this kind
    #[arg(long, value_name = "NAME", value_parser = kind)]
    kind: Option<KindName>,
    /// Those of this queue
    #[arg(long, value_name = "NAME", value_parser = queue)]
    queue: Option<QueueName>,
    /// Every dead letter
    #[arg(long, conflicts_with = "group")]
    all: bool,
    /// Say how many, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before reviving more than one
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    word: WordArgs,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: RequeueArgs, session: &mut Session) -> Result<Answer, Failure> {
    let (sight, word) = (session.sight(args.tenant), session.word(args.word));
    let store = session.store().await?;
    let (jobs, refused) = if args.ids.is_empty() {
        let filter = filter(sight.clone(), args.queue, args.kind);
        let jobs = match &args.group {
            Some(group) => find_group(&store, filter, group).await?,
            None => bulk::find(&*store, filter, |_| true).await?,
        };
        (jobs, Vec::new())
    } else {
        only_dead(&store, &sight, &args.ids).await?
    };
    if args.dry_run {
        return bulk::dry_run(&jobs, &mut session.out);
    }
    if jobs.len() > 1 && !args.yes {
        confirm::ask(&format!("Requeue {}?", counted(jobs.len() as u64)), &session.out)?;
    }
    let done = bulk::requeue(&store, &jobs, &sight, &word).await?;
    let refused = refused.into_iter().chain(done.refused).collect();
    Tally { requeued: done.requeued, refused }.print(&mut session.out)
}

/// The jobs of one group. Keys are short, so two groups might share one: then neither is taken for the other.
async fn find_group(store: &Arc<dyn Store>, filter: JobFilter, group: &str) -> Result<Vec<JobId>, Failure> {
    let mut found = Vec::new();
    let mut causes: HashSet<(KindName, Cause)> = HashSet::new();
    let see = |job: &JobSummary| {
        let cause = Cause::of(job.error.as_ref());
        if key(&job.kind, &cause) == group {
            found.push(job.id);
            causes.insert((job.kind.clone(), cause));
        }
    };
    bulk::walk(&**store, filter, u64::MAX, see).await?;
    if causes.is_empty() {
        let message = format!("no dead letter is in group {group}");
        return Err(Failure::new("not_found", exit::REFUSED, message).hint("`tenure dead list` shows the groups."));
    }
    if causes.len() > 1 {
        let message = format!("two groups are called {group}");
        return Err(Failure::new("conflict", exit::REFUSED, message).hint("Name its kind as well: --kind NAME."));
    }
    found.reverse();
    Ok(found)
}

/// Of the jobs that were named, those that are dead; and why the others are not touched.
async fn only_dead(
    store: &Arc<dyn Store>,
    sight: &Sight,
    ids: &[JobId],
) -> Result<(Vec<JobId>, Vec<(JobId, Failure)>), Failure> {
    let (mut dead, mut refused) = (Vec::new(), Vec::new());
    for id in ids {
        let state = store.show_job(sight, *id).await.map(|job| job.summary.state).map_err(Failure::from);
        match state {
            Ok(State::Dead) => dead.push(*id),
            Ok(state) => {
                let message = format!("job {id} is {}, not dead", state.as_str());
                refused.push((*id, Failure::new("conflict", exit::REFUSED, message)));
            }
            Err(failure) if failure.exit() == exit::REFUSED => refused.push((*id, failure)),
            Err(failure) => return Err(failure),
        }
    }
    // One job that was named is one answer: its refusal is the command's.
    if ids.len() == 1
        && let Some((_, failure)) = refused.pop()
    {
        return Err(failure.hint("`tenure jobs requeue` revives failed and canceled jobs as well."));
    }
    Ok((dead, refused))
}
