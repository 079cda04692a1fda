//! `tenure stats`: what waits, and how attempts ended lately.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use tenure_core::How;
use tenure_core::name::{KindName, QueueName};
use tenure_store::record::{ENDING_COUNTS_MAX, EndingCount};

use super::queues::list::table as queue_table;
use super::{Answer, Session};
use crate::args::{limit, queue};
use crate::failure::Failure;
use crate::output::Output;
use crate::paint::Paint;
use crate::table::{Cell, Table, shorten};
use tenure_server::moment;
use tenure_server::wire::stats::{Counted, Endings, StatsDocument};

/// Characters of a kind in the table.
const KIND_CHARS_MAX: usize = 40;
/// Endings in the order of the table, with their headings. Those that everybody has are always there.
const COLUMNS: [(How, &str, bool); 8] = [
    (How::Succeeded, "SUCCEEDED", true),
    (How::Retry, "RETRY", true),
    (How::Failed, "FAILED", true),
    (How::Dead, "DEAD", true),
    (How::Lost, "LOST", true),
    (How::Canceled, "CANCELED", false),
    (How::Snoozed, "SNOOZED", false),
    (How::Released, "RELEASED", false),
];

const EXAMPLES: &str = "\
Examples:
  tenure stats                        every queue, and the endings of the last hour by kind
  tenure stats --within 24h           of the last day; up to 7d
  tenure stats --queue mail --json

FAILURES is the share of retry, failed, dead and lost among the attempts that did the work or failed at it;
canceled, snoozed and released ones count for neither.";

/// Count what waits, and how attempts ended lately
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatsArgs {
    /// How far to look back, up to 7d
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = within)]
    within: Duration,
    /// Only this queue
    #[arg(long, value_name = "NAME", value_parser = queue)]
    queue: Option<QueueName>,
}

pub(crate) async fn run(args: StatsArgs, session: &mut Session) -> Result<Answer, Failure> {
    let store = session.store().await?;
    let wanted = |name: &QueueName| args.queue.as_ref().is_none_or(|queue| queue == name);
    let mut queues = store.list_queues().await?;
    queues.retain(|queue| wanted(&queue.name));
    let counted = Counted::new(store.count_endings(args.within).await?, |count| wanted(&count.queue));
    let out = &mut session.out;
    if out.is_json() {
        out.json(&StatsDocument::new(args.within, &queues, &counted))?;
        return Ok(Answer::Done);
    }
    match queues.is_empty() {
        true if args.queue.is_some() => out.line("No such queue yet: its first job creates it."),
        true => out.line("No queues yet: the first job of a queue creates it."),
        false => out.table(&queue_table(&queues, store.now().await?)),
    }
    out.line("");
    print(&counted.kinds, &counted.total, args.within, out);
    if !counted.complete {
        out.line(format!(
            "There are more: only the first {ENDING_COUNTS_MAX} counts were read; a shorter --within has fewer."
        ));
    }
    Ok(Answer::Done)
}

fn print(kinds: &BTreeMap<KindName, Endings>, total: &Endings, within: Duration, out: &mut Output) {
    let span = moment::span(within);
    if kinds.is_empty() {
        return out.line(format!("No attempt ended in the last {span}."));
    }
    let columns: Vec<_> = COLUMNS.iter().filter(|(how, _, always)| *always || total.get(*how) > 0).collect();
    let titles: Vec<&str> =
        ["KIND"].into_iter().chain(columns.iter().map(|(_, title, _)| *title)).chain(["FAILURES"]).collect();
    let mut table = Table::new(&titles);
    let row = |name: Cell, endings: &Endings| {
        let counts = columns.iter().map(|(how, ..)| cell(endings, *how));
        std::iter::once(name).chain(counts).chain([Cell::number(share(endings))]).collect()
    };
    for (kind, endings) in kinds {
        table.row(row(shorten(kind.as_str(), KIND_CHARS_MAX).into(), endings));
    }
    if kinds.len() > 1 {
        table.row(row(Cell::painted("all", Paint::Bold), total));
    }
    out.table(&table);
    let attempts = total.sum();
    let (word, minutes) = (if attempts == 1 { "attempt" } else { "attempts" }, within.as_secs_f64() / 60.0);
    out.line(format!("\n{attempts} {word} ended in the last {span}, {:.1} a minute.", attempts as f64 / minutes));
}

fn share(endings: &Endings) -> String {
    endings.share().map_or_else(|| "-".to_owned(), |share| format!("{:.1}%", share * 100.0))
}

/// Only what should worry somebody is coloured.
fn cell(endings: &Endings, how: How) -> Cell {
    match (endings.get(how), how) {
        (0, _) => Cell::number(0).paint(Paint::Dim),
        (count, How::Succeeded) => Cell::number(count),
        (count, how) => Cell::number(count).paint(Paint::of_ending(how)),
    }
}

fn within(text: &str) -> Result<Duration, String> {
    let within = tenure_core::duration::parse("within", text).map_err(limit)?;
    EndingCount::check_within(within).map_err(limit).map(|()| within)
}
