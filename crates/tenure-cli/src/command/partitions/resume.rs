//! `tenure partitions resume`: let partitions go on where they stopped.

use clap::{ArgGroup, Args};
use serde_json::json;
use tenure_core::name::PartitionName;
use tenure_core::{RunId, RunState};
use tenure_store::operate::{BATCH_MAX, Word};
use tenure_store::record::Sight;
use tenure_store::run::{OperatePartition, PartitionAct, PartitionFilter};
use tenure_store::{Store, StoreError};

use super::{find, name, refused};
use crate::args::{TenantArg, WordArgs, run_id};
use crate::command::runs::unknown;
use crate::command::{Answer, Session};
use crate::confirm;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use tenure_server::wire::run::PartitionLine;

/// Refusals that are printed one by one.
const REFUSALS_SHOWN_MAX: usize = 20;

const EXAMPLES: &str = "\
Examples:
  tenure partitions resume RUN us-east --reason 'fixed in 2.1'
  tenure partitions resume RUN --all         every one of the run that failed or was canceled
  tenure partitions resume RUN --all --yes   the same, unasked

A partition goes on at its offset: rows that were stored are not fetched again, and the attempts of its page start
again at zero. Its run goes on with it, without a deadline if that was over.
What a canceled run has stays as it is.";

/// Let partitions go on where they stopped
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "tenure partitions resume [OPTIONS] <RUN> <NAME|--all>")]
#[command(group = ArgGroup::new("which").args(["name", "all"]).required(true))]
pub(super) struct ResumeArgs {
    /// The run's id
    #[arg(value_name = "RUN", value_parser = run_id)]
    run: RunId,
    /// The partition
    #[arg(value_name = "NAME", value_parser = name)]
    name: Option<PartitionName>,
    /// Every partition of the run that failed or was canceled
    #[arg(long)]
    all: bool,
    /// Do not ask before resuming more than one
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    word: WordArgs,
    #[command(flatten)]
    tenant: TenantArg,
}

/// What became of many.
#[derive(Default)]
struct Tally {
    resumed: u64,
    refused: Vec<(PartitionName, Failure)>,
}

/// In which run, and who says why.
struct Order {
    sight: Sight,
    run: RunId,
    word: Word,
}

pub(super) async fn run(args: ResumeArgs, session: &mut Session) -> Result<Answer, Failure> {
    let order = Order { sight: session.sight(args.tenant), run: args.run, word: session.word(args.word) };
    let store = session.store().await?;
    let record = store.show_run(&order.sight, order.run).await.map_err(unknown)?;
    record.refuse_settled().map_err(|error| refused(order.run, error))?;
    if let Some(name) = args.name {
        return resume_one(&*store, &order, &name, &mut session.out).await;
    }
    let stopped = find_stopped(&*store, &order).await?;
    if stopped.len() > 1 && !args.yes {
        confirm::ask(&format!("Resume {} of run {}?", counted(stopped.len()), order.run), &session.out)?;
    }
    resume_all(&*store, &order, stopped).await?.print(order.run, &mut session.out)
}

async fn resume_one(
    store: &dyn Store,
    order: &Order,
    name: &PartitionName,
    out: &mut Output,
) -> Result<Answer, Failure> {
    let run = order.run;
    resume(store, order, name).await.map_err(|error| refused(run, error))?;
    let found = find(store, &order.sight, run, name).await?;
    if out.is_json() {
        out.json(&PartitionLine::from(&found))?;
    } else {
        out.line(format!("Partition {name} goes on at offset {}, with job {}.", found.next_offset, found.job));
        out.line(format!("Follow its run: tenure runs watch {run}"));
    }
    Ok(Answer::Done)
}

/// One after the other: each of them changes the counts of the same run. Refusals do not stop the others.
async fn resume_all(store: &dyn Store, order: &Order, names: Vec<PartitionName>) -> Result<Tally, Failure> {
    let progress = Progress::of_things(Some(names.len() as u64), "partitions resumed");
    let mut tally = Tally::default();
    for name in names {
        match resume(store, order, &name).await {
            Ok(()) => tally.resumed += 1,
            Err(error @ (StoreError::Conflict(_) | StoreError::NotFound(_))) => {
                tally.refused.push((name, error.into()));
            }
            Err(error) => {
                let before = format!("after {} partitions were resumed", tally.resumed);
                return Err(Failure::from(error).within(&before).hint("Run the same command again for the rest."));
            }
        }
        progress.set(tally.resumed + tally.refused.len() as u64);
    }
    Ok(tally)
}

async fn resume(store: &dyn Store, order: &Order, name: &PartitionName) -> Result<(), StoreError> {
    let (sight, partition, word) = (order.sight.clone(), name.clone(), order.word.clone());
    let act = PartitionAct::Resume;
    store.operate_partition(OperatePartition { sight, run: order.run, partition, act, word }).await
}

/// Those that stopped, before any work: one that fails again meanwhile is not resumed twice.
async fn find_stopped(store: &dyn Store, order: &Order) -> Result<Vec<PartitionName>, StoreError> {
    let mut names = Vec::new();
    for state in [RunState::Failed, RunState::Canceled] {
        let (sight, run, limit) = (order.sight.clone(), Some(order.run), BATCH_MAX);
        let mut filter = PartitionFilter { sight, run, state: Some(state), limit, ..PartitionFilter::default() };
        loop {
            let page = store.list_partitions(&filter).await?;
            names.extend(page.iter().map(|partition| partition.name.clone()));
            let Some(last) = page.last().filter(|_| page.len() == limit as usize) else { break };
            filter.after = Some((last.run, last.name.clone()));
        }
    }
    Ok(names)
}

impl Tally {
    /// Prints the counts, and why some were refused.
    fn print(&self, run: RunId, out: &mut Output) -> Result<Answer, Failure> {
        let answer = if self.refused.is_empty() { Answer::Done } else { Answer::Findings };
        if out.is_json() {
            let line = |(name, why): &(PartitionName, Failure)| json!({ "name": name.as_str(), "code": why.code(), "message": why.message() });
            let refused: Vec<_> = self.refused.iter().map(line).collect();
            out.json(&json!({ "run": run.to_string(), "resumed": self.resumed, "refused": refused }))?;
            return Ok(answer);
        }
        if self.resumed == 0 && self.refused.is_empty() {
            out.line(format!("No partition of run {run} has failed or was canceled: nothing to resume."));
            return Ok(answer);
        }
        let resumed = usize::try_from(self.resumed).unwrap_or(usize::MAX);
        out.line(format!("Resumed {} of run {run}, each where it stopped.", counted(resumed)));
        if !self.refused.is_empty() {
            out.line(format!("Refused {}:", counted(self.refused.len())));
        }
        for (name, why) in self.refused.iter().take(REFUSALS_SHOWN_MAX) {
            out.line(format!("  {name}  {}", why.message()));
        }
        if let Some(more) = self.refused.len().checked_sub(REFUSALS_SHOWN_MAX).filter(|more| *more > 0) {
            out.line(format!("  and {more} more; --json lists all"));
        }
        if self.resumed > 0 {
            out.line(format!("Follow the run: tenure runs watch {run}"));
        }
        Ok(answer)
    }
}

/// `1 partition`, `7 partitions`.
fn counted(n: usize) -> String {
    if n == 1 { "1 partition".to_owned() } else { format!("{n} partitions") }
}
