//! `tenure jobs`: look at jobs, end them, revive them.

mod cancel;
mod list;
mod requeue;
mod show;

use clap::{Args, Subcommand};
use tenure_core::name::{KindName, QueueName};
use tenure_core::{Json, State};

use super::{Answer, Session};
use crate::args::limit;
use crate::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  tenure jobs list --recent 20             the newest jobs
  tenure jobs list --stuck 5m              running, and silent for five minutes
  tenure jobs show ID                      one job and its attempts
  tenure jobs cancel ID                    end it
  tenure jobs requeue --state dead         revive every dead letter";

/// List, show, cancel and requeue jobs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct JobsArgs {
    #[command(subcommand)]
    what: JobsCommand,
}

#[derive(Debug, Subcommand)]
enum JobsCommand {
    List(list::ListArgs),
    Show(show::ShowArgs),
    Cancel(cancel::CancelArgs),
    Requeue(requeue::RequeueArgs),
}

pub(crate) async fn run(args: JobsArgs, session: &mut Session) -> Result<Answer, Failure> {
    match args.what {
        JobsCommand::List(args) => list::run(args, session).await,
        JobsCommand::Show(args) => show::run(args, session).await,
        JobsCommand::Cancel(args) => cancel::run(args, session).await,
        JobsCommand::Requeue(args) => requeue::run(args, session).await,
    }
}

fn state(word: &str) -> Result<State, String> {
    let words: Vec<&str> = State::ALL.iter().map(|state| state.as_str()).collect();
    State::parse(word).ok_or_else(|| format!("states are {}", words.join(", ")))
}

fn queue(text: &str) -> Result<QueueName, String> {
    text.parse().map_err(limit)
}

fn kind(text: &str) -> Result<KindName, String> {
    text.parse().map_err(limit)
}

/// What an error says to a person: its `message` where it has one, its text otherwise.
fn error_text(error: &Json) -> String {
    match serde_json::from_str(error.as_str()) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(serde_json::Value::Object(members)) => match members.get("message") {
            Some(serde_json::Value::String(text)) => text.clone(),
            _ => error.to_string(),
        },
        _ => error.to_string(),
    }
}
