//! `tenure workers quiet`, `stop` and `resume`: tell a worker what to do.

use clap::Args;
use serde_json::json;
use tenure_core::WorkerId;
use tenure_store::worker::{Order, OrderWorker};

use crate::args::WordArgs;
use crate::command::{Answer, Session};
use crate::failure::Failure;

#[derive(Debug, Args)]
pub(super) struct OrderArgs {
    /// Its number, NO in tenure workers list
    #[arg(value_name = "NO")]
    worker: i32,
    #[command(flatten)]
    word: WordArgs,
}

pub(super) async fn run(args: OrderArgs, order: Order, session: &mut Session) -> Result<Answer, Failure> {
    let (worker, word) = (WorkerId(args.worker), session.word(args.word));
    session.store().await?.order_worker(OrderWorker { worker, order, word }).await?;
    if session.out.is_json() {
        session.out.json(&json!({ "worker": worker.0, "order": order.as_str() }))?;
        return Ok(Answer::Done);
    }
    session.out.line(match order {
        Order::Work => format!("Worker {worker} claims again, a few seconds from now."),
        Order::Quiet => {
            format!("Worker {worker} claims nothing more, a few seconds from now, and finishes what it has.")
        }
        Order::Stop => format!("Worker {worker} finishes what it has, and goes."),
    });
    Ok(Answer::Done)
}
