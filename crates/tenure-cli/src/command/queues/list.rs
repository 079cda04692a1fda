//! `tenure queues list`: every queue and what is in it.

use clap::Args;
use tenure_core::Timestamp;
use tenure_store::operate::BATCH_MAX;
use tenure_store::record::QueueRecord;

use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use tenure_server::moment;
use tenure_server::wire::worker::ServedQueueLine;

const EXAMPLES: &str = "\
Examples:
  tenure queues list
  tenure queues list --json

DUE has reached its time (it may wait for its gate), SCHEDULED has not, RUNNING is in a worker's hands.
OLDEST is how long the job that waits longest has been due.
QUOTA is how many jobs may be due or scheduled, of each tenant where the queue is fair: see tenure queues set --help.";

/// List queues with their counts
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {}

pub(super) async fn run(_: &ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let store = session.store().await?;
    let queues = store.list_queues().await?;
    if session.out.is_json() {
        let (workers, now) = (store.list_workers(BATCH_MAX).await?, store.now().await?);
        let lines = queues.iter().map(|queue| ServedQueueLine::new(queue, &workers, now));
        session.out.json(&lines.collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if queues.is_empty() {
        session.out.line("No queues yet: the first job of a queue creates it.");
        return Ok(Answer::Done);
    }
    session.out.table(&table(&queues, store.now().await?));
    Ok(Answer::Done)
}

/// Also what `jobs watch` and `stats` show.
pub(crate) fn table(queues: &[QueueRecord], now: Timestamp) -> Table {
    let mut table = Table::new(&["QUEUE", "STATE", "DUE", "SCHEDULED", "RUNNING", "OLDEST", "LEASE", "QUOTA"]);
    for queue in queues {
        let state = match queue.paused {
            true => Cell::painted(if queue.fair { "paused, fair" } else { "paused" }, Paint::Yellow),
            false => Cell::painted(if queue.fair { "open, fair" } else { "open" }, Paint::Green),
        };
        let oldest = queue.oldest_due.map_or_else(|| "-".to_owned(), |due| moment::span(now.since(due)));
        table.row(vec![
            queue.name.as_str().into(),
            state,
            Cell::number(queue.due),
            Cell::number(queue.scheduled),
            Cell::number(queue.running),
            Cell::number(oldest),
            Cell::dim(tenure_core::duration::format(queue.lease_ttl)),
            Cell::dim(queue.quota.map_or_else(|| "-".to_owned(), |quota| quota.to_string())),
        ]);
    }
    table
}
