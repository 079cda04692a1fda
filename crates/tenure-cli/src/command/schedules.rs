//! `tenure schedules`: jobs that are asked for again and again, by the clock.

mod apply;
mod list;
mod next;
mod operate;
mod run;
mod set;
mod show;

use clap::{Args, Subcommand};
use tenure_core::name::ScheduleName;
use tenure_core::{Cron, Timestamp, Zone};

use super::{Answer, Session};
use crate::args::limit;
use crate::failure::Failure;
pub(crate) use apply::apply;

const EXAMPLES: &str = "\
Examples:
  tenure schedules set nightly '0 3 * * *' report --zone Europe/Berlin     at three in the morning, in Berlin
  tenure schedules set pulse '*/10 * * * * *' ping '{\"deep\": true}'         every ten seconds, with a payload
  tenure schedules next '0 3 * * MON-FRI' --zone Europe/Berlin             when would that be? Stores nothing
  tenure schedules list                                                    every schedule and its next fire
  tenure schedules show nightly                                            its last fires, and what became of them
  tenure schedules run nightly                                             fire it now, beside its own times
  tenure schedules pause nightly --reason 'month end'
  tenure schedules remove nightly

Workers fire schedules; each fire time has one job, however many there are.";

/// Ask for jobs again and again: cron with seconds and time zones
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SchedulesArgs {
    #[command(subcommand)]
    what: SchedulesCommand,
}

#[derive(Debug, Subcommand)]
enum SchedulesCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Set(Box<set::SetArgs>),
    Apply(apply::ApplyArgs),
    Next(next::NextArgs),
    Run(run::RunArgs),
    /// Let a schedule fire nothing until it is resumed
    #[command(after_help = "Examples:\n  tenure schedules pause nightly --reason 'month end'")]
    Pause(operate::OperateArgs),
    /// Let a schedule go on from now; what it would have fired meanwhile is not made up
    #[command(after_help = "Examples:\n  tenure schedules resume nightly")]
    Resume(operate::OperateArgs),
    /// Remove a schedule; the jobs it asked for stay
    #[command(after_help = "Examples:\n  tenure schedules remove nightly --reason 'nobody reads it'")]
    Remove(operate::OperateArgs),
}

pub(crate) async fn run(args: SchedulesArgs, session: &mut Session) -> Result<Answer, Failure> {
    use operate::Act;
    match args.what {
        SchedulesCommand::List(args) => list::run(args, session).await,
        SchedulesCommand::Show(args) => show::run(args, session).await,
        SchedulesCommand::Set(args) => set::run(*args, session).await,
        SchedulesCommand::Apply(args) => apply::run(&args, session).await,
        SchedulesCommand::Next(args) => next::run(&args, session),
        SchedulesCommand::Run(args) => run::run(args, session).await,
        SchedulesCommand::Pause(args) => operate::run(args, Act::Pause, session).await,
        SchedulesCommand::Resume(args) => operate::run(args, Act::Resume, session).await,
        SchedulesCommand::Remove(args) => operate::run(args, Act::Remove, session).await,
    }
}

fn name(text: &str) -> Result<ScheduleName, String> {
    text.parse().map_err(limit)
}

/// A refusal names the field that is wrong: an expression has six.
fn cron(text: &str) -> Result<Cron, String> {
    text.parse().map_err(|refused: tenure_core::Invalid| refused.to_string())
}

fn zone(text: &str) -> Result<Zone, String> {
    text.parse().map_err(limit)
}

/// A moment in UTC, and on the clock of the schedule where that is another one.
fn both_clocks(at: Timestamp, zone: &Zone) -> (String, String) {
    (tenure_server::moment::absolute(at), zone.local(at))
}
