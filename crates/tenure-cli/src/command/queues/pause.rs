//! `tenure queues pause` and `tenure queues resume`.

use clap::Args;
use serde_json::json;
use tenure_core::name::QueueName;
use tenure_store::operate::PauseQueue;
use tenure_store::{Store, StoreError};

use crate::args::{WordArgs, queue};
use crate::command::{Answer, Session};
use crate::failure::Failure;

/// Names of queues that a refusal shows.
const SHOWN_MAX: usize = 10;

#[derive(Debug, Args)]
pub(super) struct PauseArgs {
    /// The queue, which must exist
    #[arg(value_name = "QUEUE", value_parser = queue)]
    queue: QueueName,
    #[command(flatten)]
    word: WordArgs,
}

pub(super) async fn run(args: PauseArgs, paused: bool, session: &mut Session) -> Result<Answer, Failure> {
    let request = PauseQueue { queue: args.queue.clone(), paused, word: session.word(args.word) };
    let store = session.store().await?;
    let queue = args.queue;
    match store.pause_queue(request).await {
        Err(error @ StoreError::NotFound(_)) => return Err(unknown(&*store, &queue, error).await),
        done => done?,
    }
    if session.out.is_json() {
        session.out.json(&json!({ "queue": queue.as_str(), "paused": paused }))?;
    } else if paused {
        session.out.line(format!("Queue {queue} is paused: nothing is handed out, running jobs go on."));
    } else {
        session.out.line(format!("Queue {queue} is open."));
    }
    Ok(Answer::Done)
}

/// A refusal that shows which queues exist, and how a queue is made.
async fn unknown(store: &dyn Store, queue: &QueueName, error: StoreError) -> Failure {
    let failure = Failure::from(error);
    let queues = match store.list_queues().await {
        Ok(queues) => queues,
        // The refusal is the answer, with or without a list.
        Err(_) => return failure,
    };
    let names: Vec<&str> = queues.iter().map(|queue| queue.name.as_str()).take(SHOWN_MAX).collect();
    let more = if queues.len() > SHOWN_MAX { ", …" } else { "" };
    let known = match names.is_empty() {
        true => "There are no queues yet.".to_owned(),
        false => format!("Queues are: {}{more}.", names.join(", ")),
    };
    failure.hint(format!(
        "{known} The first job of a queue makes it, and so does `tenure queues set {queue} --lease-ttl 1m`."
    ))
}
