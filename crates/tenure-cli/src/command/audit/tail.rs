//! `tenure audit tail`: the newest journal rows, and those that come.

use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value};
use tenure_core::journal::JournalRow;

use super::seen::Seen;
use crate::args::page_size;
use crate::command::{Answer, Session};
use crate::failure::Failure;
use crate::follow::Follow;
use crate::output::Output;
use crate::paint::Paint;
use crate::table::{Cell, Table, shorten};
use tenure_server::moment;
use tenure_server::wire::journal::JournalLine;
use tenure_store::journal::newest;

/// Pause between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// Characters of a row's last column.
const NOTE_CHARS_MAX: usize = 80;
/// Parts of a rule, the weightiest first.
const PARTS: [&str; 6] = ["rate", "concurrency", "breaker", "burst", "cost", "weight"];
const TITLES: [&str; 7] = ["ROW", "WHEN", "EVENT", "LEASE", "JOBS", "BY", "NOTE"];
/// Widths that most rows keep, so that rows that come later line up.
const WIDTHS: [usize; 7] = [6, 20, 16, 6, 36, 12, 0];

const EXAMPLES: &str = "\
Examples:
  tenure audit tail                   the 20 newest rows, newest last
  tenure audit tail --limit 200
  tenure audit tail --follow          and every row that comes, until Ctrl-C
  tenure audit tail --follow --json   one JSON object a line

A row is a transition: what happened to which jobs, under which lease, by whom. The enqueue itself has no row.";

/// Show the newest rows of the journal, and follow it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TailArgs {
    /// Go on and show what comes, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// At most this many to begin with, up to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = page_size)]
    limit: u32,
}

pub(super) async fn run(args: &TailArgs, session: &mut Session) -> Result<Answer, Failure> {
    let store = session.store_to_follow().await?;
    let count = args.limit as usize;
    let out = &mut session.out;
    if !args.follow {
        let (rows, _) = newest(&*store, count).await?;
        if out.is_json() {
            out.json(&rows.iter().map(JournalLine::from).collect::<Vec<_>>())?;
        } else if rows.is_empty() {
            out.line("The journal is empty: its first row comes with the first claim, cancel or pause.");
        } else {
            out.table_with_note(table(&rows));
        }
        return Ok(Answer::Done);
    }
    let mut follow = Follow::begin()?;
    let (mut seen, rows) = Seen::begin(&*store, count).await?;
    print(&rows, true, out)?;
    out.flush()?;
    while !out.is_closed() && follow.pause(EVERY).await {
        let Some(news) = follow.ask(async || seen.look(&*store).await).await? else { break };
        let rows = seen.take(news);
        print(&rows, false, out)?;
        out.flush()?;
    }
    Ok(Answer::Done)
}

fn print(rows: &[JournalRow], head: bool, out: &mut Output) -> Result<(), Failure> {
    if out.is_json() {
        return rows.iter().try_for_each(|row| out.json(&JournalLine::from(row)));
    }
    if rows.is_empty() && !head {
        return Ok(());
    }
    let titles: &[&str] = if head { &TITLES } else { &[] };
    out.table(&fill(Table::with_widths(titles, &WIDTHS), rows));
    Ok(())
}

/// Also what `audit list` shows.
pub(super) fn table(rows: &[JournalRow]) -> Table {
    fill(Table::new(&TITLES), rows)
}

fn fill(mut table: Table, rows: &[JournalRow]) -> Table {
    for row in rows {
        table.row(vec![
            Cell::number(row.id),
            Cell::dim(moment::absolute(row.at)),
            Cell::painted(row.event.as_str(), Paint::of_event(row.event)),
            Cell::number(row.lease.map_or_else(String::new, |lease| lease.to_string())),
            jobs(row).into(),
            by(row).into(),
            shorten(&note(row), NOTE_CHARS_MAX).into(),
        ]);
    }
    table
}

/// The first job; the note tells how many more.
fn jobs(row: &JournalRow) -> String {
    row.jobs.first().map_or_else(String::new, ToString::to_string)
}

fn by(row: &JournalRow) -> String {
    match (&row.actor, row.worker) {
        (Some(actor), _) => actor.clone(),
        (None, Some(worker)) => format!("worker {}", worker.0),
        (None, None) => String::new(),
    }
}

fn note(row: &JournalRow) -> String {
    let more = match row.jobs.len() {
        0 | 1 => None,
        jobs => Some(format!("and {} more", jobs - 1)),
    };
    let details = row.details.as_ref().map(|details| flat(details.as_str()));
    [more, row.reason.clone(), details].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// `queue mail` instead of `{"queue":"mail"}`, and of a changed rule the parts that differ.
fn flat(json: &str) -> String {
    let Ok(Value::Object(members)) = serde_json::from_str(json) else { return json.to_owned() };
    if let (Some(gate), Some(old), Some(new)) = (members.get("gate"), members.get("old"), members.get("new")) {
        return format!("gate {}: {}", bare(gate), changes(old, new));
    }
    let member = |(name, value): (&String, &Value)| format!("{name} {}", bare(value));
    members.iter().map(member).collect::<Vec<_>>().join(", ")
}

/// `rate 30/m → 60/m, concurrency none → 2`; a rule that came or went has all of its parts.
fn changes(old: &Value, new: &Value) -> String {
    let empty = Map::new();
    let (before, after) = (old.as_object().unwrap_or(&empty), new.as_object().unwrap_or(&empty));
    let changed = PARTS.into_iter().filter(|name| before.get(*name) != after.get(*name));
    let shown = |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), bare);
    let part = |name: &str| match (old.is_null(), new.is_null()) {
        (true, _) => format!("{name} {}", shown(after.get(name))),
        (_, true) => format!("{name} {}", shown(before.get(name))),
        _ => format!("{name} {} → {}", shown(before.get(name)), shown(after.get(name))),
    };
    let parts = changed.map(part).collect::<Vec<_>>().join(", ");
    match (old.is_null(), new.is_null()) {
        (true, _) => format!("set to {parts}"),
        (_, true) => format!("removed, was {parts}"),
        _ if parts.is_empty() => "set as it was".to_owned(),
        _ => parts,
    }
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
