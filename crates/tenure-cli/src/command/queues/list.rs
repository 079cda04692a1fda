//! `tenure queues list`: every queue and what is in it.

use clap::Args;

use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::paint::Paint;
use crate::table::{Cell, Table};
use crate::wire::QueueLine;

const EXAMPLES: &str = "\
Examples:
  tenure queues list
  tenure queues list --json

DUE can be claimed now, SCHEDULED waits for its time, RUNNING is in a worker's hands.";

/// List queues with their counts
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {}

pub(super) async fn run(_: &ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let queues = session.store().await?.list_queues().await?;
    if session.out.is_json() {
        session.out.json(&queues.iter().map(QueueLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if queues.is_empty() {
        session.out.line("No queues yet: the first job of a queue creates it.");
        return Ok(Answer::Done);
    }
    let mut table = Table::new(&["QUEUE", "STATE", "DUE", "SCHEDULED", "RUNNING", "LEASE"]);
    for queue in &queues {
        let state = match queue.paused {
            true => Cell::painted("paused", Paint::Yellow),
            false => Cell::painted("open", Paint::Green),
        };
        table.row(vec![
            queue.name.as_str().into(),
            state,
            Cell::number(queue.due),
            Cell::number(queue.scheduled),
            Cell::number(queue.running),
            tenure_core::duration::format(queue.lease_ttl).into(),
        ]);
    }
    session.out.table(&table);
    Ok(Answer::Done)
}
