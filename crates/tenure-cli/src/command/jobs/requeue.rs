//! `tenure jobs requeue`: revive failed, dead or canceled jobs, by id or by the hundred thousand.

use std::sync::Arc;

use clap::Args;
use serde_json::json;
use tenure_core::name::{KindName, QueueName};
use tenure_core::{JobId, State};
use tenure_store::operate::{BATCH_MAX, RequeueJob, Word};
use tenure_store::record::{JobFilter, Sight};
use tenure_store::{Store, StoreError};
use tokio::task::JoinSet;

use super::{kind, queue};
use crate::args::{TenantArg, WordArgs, job_id};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;

/// Requeues that are asked for at once.
const IN_FLIGHT_MAX: usize = 8;
/// Refusals that are printed one by one.
const REFUSALS_SHOWN_MAX: usize = 20;

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

/// What became of a bulk.
#[derive(Default)]
struct Tally {
    requeued: u64,
    refused: Vec<(JobId, Failure)>,
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
                limit: BATCH_MAX,
                ..JobFilter::default()
            };
            find(&store, filter).await?
        }
        None => args.ids,
    };
    if args.dry_run {
        return dry_run(&jobs, &mut session.out);
    }
    // One job that was named is one answer: its refusal is the command's.
    if let ([job], None) = (jobs.as_slice(), args.state) {
        store.requeue_job(RequeueJob { sight, job: *job, word }).await?;
        print(&Tally { requeued: 1, ..Tally::default() }, &mut session.out)?;
        return Ok(Answer::Done);
    }
    let tally = requeue(&store, &jobs, &sight, &word).await?;
    print(&tally, &mut session.out)?;
    Ok(if tally.refused.is_empty() { Answer::Done } else { Answer::Findings })
}

/// The ids first, then the work: a job that dies again meanwhile is not revived twice. Oldest first, as they were.
async fn find(store: &Arc<dyn Store>, mut filter: JobFilter) -> Result<Vec<JobId>, Failure> {
    let mut found = Vec::new();
    let progress = Progress::of_things(None, "jobs found");
    loop {
        let page = store.list_jobs(&filter).await?;
        let Some(last) = page.last() else { break };
        filter.before = Some(last.id);
        found.extend(page.iter().map(|job| job.id));
        progress.set(found.len() as u64);
    }
    found.reverse();
    Ok(found)
}

/// Several at a time, so that they share commits and round trips; refusals do not stop the others.
async fn requeue(store: &Arc<dyn Store>, jobs: &[JobId], sight: &Sight, word: &Word) -> Result<Tally, Failure> {
    let progress = Progress::of_things(Some(jobs.len() as u64), "jobs requeued");
    let mut tally = Tally::default();
    let mut stopped: Option<StoreError> = None;
    let mut rest = jobs.iter();
    let mut asked = JoinSet::new();
    loop {
        while stopped.is_none() && asked.len() < IN_FLIGHT_MAX {
            let Some(job) = rest.next().copied() else { break };
            let request = RequeueJob { sight: sight.clone(), job, word: word.clone() };
            let store = Arc::clone(store);
            asked.spawn(async move { (job, store.requeue_job(request).await) });
        }
        match asked.join_next().await {
            None => break,
            Some(Ok((_, Ok(())))) => tally.requeued += 1,
            Some(Ok((job, Err(error @ (StoreError::Conflict(_) | StoreError::NotFound(_)))))) => {
                tally.refused.push((job, error.into()));
            }
            // What is in flight is waited for, nothing new is sent.
            Some(Ok((_, Err(error)))) => stopped = stopped.or(Some(error)),
            Some(Err(panic)) => stopped = stopped.or(Some(StoreError::unavailable(panic))),
        }
        progress.set(tally.requeued + tally.refused.len() as u64);
    }
    tally.refused.sort_by_key(|(job, _)| *job);
    match stopped {
        None => Ok(tally),
        Some(error) => {
            let before = format!("after {} of {} jobs were requeued", tally.requeued, jobs.len());
            Err(Failure::from(error).within(&before).hint("Run the same command again for the rest."))
        }
    }
}

fn dry_run(jobs: &[JobId], out: &mut Output) -> Result<Answer, Failure> {
    if out.is_json() {
        out.json(&json!({ "would_requeue": jobs.len() }))?;
    } else {
        out.line(format!("Would requeue {}.", counted(jobs.len() as u64)));
    }
    Ok(Answer::Done)
}

fn print(tally: &Tally, out: &mut Output) -> Result<(), Failure> {
    if out.is_json() {
        let refused: Vec<_> = tally
            .refused
            .iter()
            .map(|(job, why)| json!({ "id": job.to_string(), "code": why.code(), "message": why.message() }))
            .collect();
        return out.json(&json!({ "requeued": tally.requeued, "refused": refused }));
    }
    out.line(format!("Requeued {}.", counted(tally.requeued)));
    if !tally.refused.is_empty() {
        out.line(format!("Refused {}:", counted(tally.refused.len() as u64)));
    }
    for (job, why) in tally.refused.iter().take(REFUSALS_SHOWN_MAX) {
        out.line(format!("  {job}  {}", why.message()));
    }
    if let Some(more) = tally.refused.len().checked_sub(REFUSALS_SHOWN_MAX).filter(|more| *more > 0) {
        out.line(format!("  and {more} more; --json lists all"));
    }
    Ok(())
}

fn counted(n: u64) -> String {
    if n == 1 { "1 job".to_owned() } else { format!("{n} jobs") }
}

fn ended_state(word: &str) -> Result<State, String> {
    match State::parse(word) {
        Some(state @ (State::Failed | State::Dead | State::Canceled)) => Ok(state),
        _ => Err("only failed, dead and canceled jobs can be requeued".to_owned()),
    }
}
