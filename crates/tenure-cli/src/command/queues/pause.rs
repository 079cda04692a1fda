//! `tenure queues pause` and `tenure queues resume`.

use clap::Args;
use serde_json::json;
use tenure_core::name::QueueName;
use tenure_store::operate::PauseQueue;

use crate::args::{WordArgs, queue};
use crate::command::{Answer, Session};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub(super) struct PauseArgs {
    /// The queue; a new one is created
    #[arg(value_name = "QUEUE", value_parser = queue)]
    queue: QueueName,
    #[command(flatten)]
    word: WordArgs,
}

pub(super) async fn run(args: PauseArgs, paused: bool, session: &mut Session) -> Result<Answer, Failure> {
    let request = PauseQueue { queue: args.queue.clone(), paused, word: session.word(args.word) };
    session.store().await?.pause_queue(request).await?;
    let queue = args.queue;
    if session.out.is_json() {
        session.out.json(&json!({ "queue": queue.as_str(), "paused": paused }))?;
    } else if paused {
        session.out.line(format!("Queue {queue} is paused: nothing is handed out, running jobs go on."));
    } else {
        session.out.line(format!("Queue {queue} is open."));
    }
    Ok(Answer::Done)
}
