//! `tenure partitions reset`: let a partition begin again.

use clap::Args;
use tenure_core::RunId;
use tenure_core::name::PartitionName;
use tenure_store::run::{OperatePartition, PartitionAct, check_offset};

use super::{find, name, refused};
use crate::args::{TenantArg, WordArgs, limit, run_id};
use crate::command::runs::unknown;
use crate::command::{Answer, Session};
use crate::confirm;
use crate::failure::Failure;
use tenure_server::new_job::Ids;
use tenure_server::wire::run::PartitionLine;

const EXAMPLES: &str = "\
Examples:
  tenure partitions reset RUN us-east                          from the start
  tenure partitions reset RUN us-east --offset 3000            from there
  tenure partitions reset RUN us-east --yes --reason 'bad rows'

It goes on from the offset with a new job, and its rows are counted from zero. Rows that your pages stored stay where
they are: what is fetched again must find its own rows there. A page that still runs is asked to stop.
To go on where it stopped instead: tenure partitions resume.";

/// Let a partition begin again, from the start or from an offset
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ResetArgs {
    /// The run's id
    #[arg(value_name = "RUN", value_parser = run_id)]
    run: RunId,
    /// The partition
    #[arg(value_name = "NAME", value_parser = name)]
    name: PartitionName,
    /// Where its next page begins
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = offset)]
    offset: u64,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    word: WordArgs,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: ResetArgs, session: &mut Session) -> Result<Answer, Failure> {
    let ResetArgs { run, name, offset, .. } = args;
    let (sight, word) = (session.sight(args.tenant), session.word(args.word));
    let store = session.store().await?;
    let record = store.show_run(&sight, run).await.map_err(unknown)?;
    // Nobody is asked about what cannot be done.
    record.refuse_settled().map_err(|error| refused(run, error))?;
    let before = find(&*store, &sight, run, &name).await?;
    if !args.yes {
        let (rows, at) = (before.rows, before.next_offset);
        let state = before.state.as_str();
        let question =
            format!("Partition {name} is {state} at offset {at}, with {rows} rows. Begin again at {offset}?");
        confirm::ask(&question, &session.out)?;
    }
    let act = PartitionAct::Reset { offset, job: Ids::new().make()? };
    let request = OperatePartition { sight: sight.clone(), run, partition: name.clone(), act, word };
    store.operate_partition(request).await.map_err(|error| refused(run, error))?;
    let after = find(&*store, &sight, run, &name).await?;
    if session.out.is_json() {
        session.out.json(&PartitionLine::from(&after))?;
        return Ok(Answer::Done);
    }
    let from = before.next_offset;
    session
        .out
        .line(format!("Partition {name} begins again at offset {offset}, with job {}; it was at {from}.", after.job));
    session.out.line(format!("Follow its run: tenure runs watch {run}"));
    Ok(Answer::Done)
}

fn offset(text: &str) -> Result<u64, String> {
    let offset = text.parse().map_err(|_| "it is a whole number of rows, such as 3000".to_owned())?;
    check_offset(offset).map_err(limit).map(|()| offset)
}
