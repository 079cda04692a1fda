//! `tenure partitions`: streams of pages inside runs, and how to let them go on.

pub(crate) mod list;
mod reset;
mod resume;

use clap::{Args, Subcommand};
use tenure_core::RunId;
use tenure_core::name::PartitionName;
use tenure_store::operate::BATCH_MAX;
use tenure_store::record::Sight;
use tenure_store::run::{PartitionFilter, PartitionRecord};
use tenure_store::{Store, StoreError};

use super::{Answer, Session};
use crate::args::limit;
use crate::failure::{Failure, exit};

const EXAMPLES: &str = "\
Examples:
  tenure partitions list --active           what goes on
  tenure partitions list --stuck 10m        what goes on, but has not moved for ten minutes
  tenure partitions list --run ID           those of one run
  tenure partitions resume RUN us-east      let one go on where it stopped
  tenure partitions resume RUN --all        let every one of a run go on that failed or was canceled
  tenure partitions reset RUN us-east       let one begin again, from the start or from --offset N";

/// List partitions of runs, and let those go on that have stopped
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PartitionsArgs {
    #[command(subcommand)]
    what: PartitionsCommand,
}

#[derive(Debug, Subcommand)]
enum PartitionsCommand {
    List(list::ListArgs),
    Resume(resume::ResumeArgs),
    Reset(reset::ResetArgs),
}

pub(crate) async fn run(args: PartitionsArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.what {
        PartitionsCommand::List(args) => list::run(args, session).await,
        PartitionsCommand::Resume(args) => resume::run(args, session).await,
        PartitionsCommand::Reset(args) => reset::run(args, session).await,
    }
}

fn name(text: &str) -> Result<PartitionName, String> {
    text.parse().map_err(limit)
}

/// One partition by its name.
async fn find(store: &dyn Store, sight: &Sight, run: RunId, name: &PartitionName) -> Result<PartitionRecord, Failure> {
    let (sight, limit) = (sight.clone(), BATCH_MAX);
    let mut filter = PartitionFilter { sight, run: Some(run), limit, ..PartitionFilter::default() };
    loop {
        let page = store.list_partitions(&filter).await?;
        let last = page.last().filter(|_| page.len() == limit as usize).map(|last| (last.run, last.name.clone()));
        if let Some(found) = page.into_iter().find(|one| one.name == *name) {
            return Ok(found);
        }
        if last.is_none() {
            return Err(refused(run, StoreError::NotFound(format!("partition {name} of run {run}"))));
        }
        filter.after = last;
    }
}

/// Why a partition stays as it is, and where to look.
fn refused(run: RunId, error: StoreError) -> Failure {
    let failure = Failure::from(error);
    match failure.exit() {
        exit::REFUSED => failure.hint(format!("`tenure runs show {run}` shows the run and its partitions.")),
        _ => failure,
    }
}
