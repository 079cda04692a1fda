//! `tenure operations start`: begin one act on many jobs.

use clap::Args;
use tenure_core::State;
use tenure_core::name::{KindName, QueueName};
use tenure_server::dead::parse_key;
use tenure_server::new_job::Ids;
use tenure_server::wire::operation::OperationLine;
use tenure_store::operation::{Act, NewOperation};

use super::details;
use crate::args::{TenantArg, WordArgs, kind, queue};
use crate::command::{Answer, Session};
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure operations start requeue --state dead --group 4f1c2a9e --reason 'fixed in 2.1'
  tenure operations start requeue --state failed --kind mail.send
  tenure operations start cancel --state queued --queue mail
  tenure operations start cancel_by_force --state running --kind import

What is requeued is failed, dead or canceled; what is canceled is waiting, queued, retryable or running.
Only jobs that are there now are meant. tenure server or tenure dev does the work.";

/// Begin an act on many jobs, in the background
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct StartArgs {
    /// requeue, cancel, or cancel_by_force, which also fences the worker of a running job
    #[arg(value_parser = act)]
    act: Act,
    /// Only jobs in this state, see below
    #[arg(long, value_parser = state)]
    state: State,
    /// Only jobs of this queue
    #[arg(long, value_name = "NAME", value_parser = queue)]
    queue: Option<QueueName>,
    /// Only jobs of this kind
    #[arg(long, value_name = "NAME", value_parser = kind)]
    kind: Option<KindName>,
    /// Only dead letters of this group, as `tenure dead list` names it
    #[arg(long, value_name = "KEY", value_parser = parse_key)]
    group: Option<String>,
    /// The operation's name for people [default: the act and the state]
    #[arg(long, value_name = "TEXT")]
    name: Option<String>,
    #[command(flatten)]
    word: WordArgs,
    #[command(flatten)]
    tenant: TenantArg,
}

pub(super) async fn run(args: StartArgs, session: &mut Session) -> Result<Answer, Failure> {
    let StartArgs { act, state, queue, kind, group, name, word, tenant } = args;
    let request = NewOperation {
        id: Ids::new().make()?,
        tenant: session.tenant(tenant.tenant),
        name: name.unwrap_or_else(|| format!("{} {}", act.as_str(), state.as_str())),
        act,
        state,
        queue,
        kind,
        group,
        word: session.word(word),
    };
    request.check()?;
    let operation = session.store().await?.create_operation(request).await?;
    if session.out.is_json() {
        session.out.json(&OperationLine::from(&operation))?;
        return Ok(Answer::Done);
    }
    session.out.table(&details(&operation));
    session.out.line(format!("\nA server does it: tenure operations show {}", operation.id));
    Ok(Answer::Done)
}

fn act(word: &str) -> Result<Act, String> {
    let words: Vec<&str> = Act::ALL.iter().map(|act| act.as_str()).collect();
    Act::parse(word).ok_or_else(|| format!("acts are {}", words.join(", ")))
}

fn state(word: &str) -> Result<State, String> {
    crate::command::jobs::state(word)
}
