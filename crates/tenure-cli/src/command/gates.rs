//! `tenure gates`: shared resources, what they allow, and how they do.

mod apply;
mod list;
mod operate;
mod set;
mod show;

use clap::{Args, Subcommand};

use super::{Answer, Session};
use crate::failure::Failure;
pub(crate) use apply::apply;

const EXAMPLES: &str = "\
Examples:
  tenure gates set 'domain:*' --concurrency 2                  two at once for each domain, also for new ones
  tenure gates set source:ebay --rate 30/m --breaker 5:5m      thirty a minute; nothing for 5m after 5 failures
  tenure gates list                                            every gate: what it lets through now, and why not
  tenure gates show source:ebay
  tenure gates pause source:ebay --for 10m --reason 'upgrade'
  tenure gates trip source:ebay --reason 'wrong prices'        open its breaker by hand; reset closes it
  tenure enqueue price.fetch '{\"coin\": 7}' --gate source:ebay  a job that passes it";

/// Govern shared resources: rate, concurrency, breaker, pause
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GatesArgs {
    #[command(subcommand)]
    what: GatesCommand,
}

#[derive(Debug, Subcommand)]
enum GatesCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Set(Box<set::SetArgs>),
    Apply(apply::ApplyArgs),
    /// Let nothing through, for a time or until it is resumed; jobs inside go on
    #[command(after_help = "Examples:\n  tenure gates pause source:ebay --for 10m --reason 'upgrade'")]
    Pause(operate::TimedArgs),
    /// Take a pause back, and a silence that the resource asked for
    #[command(after_help = "Examples:\n  tenure gates resume source:ebay")]
    Resume(operate::OperateArgs),
    /// Open the breaker by hand, for a time or until it is reset
    #[command(after_help = "Examples:\n  tenure gates trip source:ebay --reason 'wrong prices'")]
    Trip(operate::TimedArgs),
    /// Close the breaker, forget its failures, and fill the bucket
    #[command(after_help = "Examples:\n  tenure gates reset source:ebay")]
    Reset(operate::OperateArgs),
}

pub(crate) async fn run(args: GatesArgs, session: &mut Session) -> Result<Answer, Failure> {
    use tenure_store::gate::GateAct;
    match args.what {
        GatesCommand::List(args) => list::run(args, session).await,
        GatesCommand::Show(args) => show::run(&args, session).await,
        GatesCommand::Set(args) => set::run(*args, session).await,
        GatesCommand::Apply(args) => apply::run(&args, session).await,
        GatesCommand::Pause(args) => operate::run(args.gate, GateAct::Pause(args.time), session).await,
        GatesCommand::Resume(args) => operate::run(args, GateAct::Resume, session).await,
        GatesCommand::Trip(args) => operate::run(args.gate, GateAct::Trip(args.time), session).await,
        GatesCommand::Reset(args) => operate::run(args, GateAct::Reset, session).await,
    }
}
