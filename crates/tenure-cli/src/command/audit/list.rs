//! `tenure audit list`: rows of the journal that match, newest first.

use clap::Args;
use tenure_core::journal::JournalEvent;
use tenure_core::{JobId, When};
use tenure_store::journal::JournalFilter;

use super::tail::table;
use crate::args::{job_id, limit, page_size};
use crate::command::{Answer, Session};
use crate::failure::Failure;
use tenure_server::moment;
use tenure_server::wire::journal::JournalLine;

const EXAMPLES: &str = "\
Examples:
  tenure audit list --acts                          what people and rules did
  tenure audit list --about source:ebay             the history of a gate, a queue, a key, …
  tenure audit list --event queue_paused --since 7d
  tenure audit list --job 01933c5e-7b5a-7000-8000-000000000001
  tenure audit list --acts --before 4711            the page after the one that ended with row 4711";

/// List rows of the journal, newest first
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ListArgs {
    /// Only this event; may be said more than once
    #[arg(long = "event", value_name = "NAME", value_parser = event)]
    events: Vec<JournalEvent>,
    /// Only what this one asked for
    #[arg(long, value_name = "WHO")]
    actor: Option<String>,
    /// Only what names this job
    #[arg(long, value_name = "ID", value_parser = job_id)]
    job: Option<JobId>,
    /// Only what is about this queue, gate, schedule, key, tenant, endpoint, run or worker
    #[arg(long, value_name = "NAME")]
    about: Option<String>,
    /// Only what people and rules did
    #[arg(long)]
    acts: bool,
    /// Only rows from then on: a date, or how long ago, such as 1h
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<When>,
    /// Only rows before: likewise
    #[arg(long, value_name = "WHEN", value_parser = until)]
    until: Option<When>,
    /// Only rows before this one
    #[arg(long, value_name = "ROW")]
    before: Option<i64>,
    /// At most this many, up to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = page_size)]
    limit: u32,
}

pub(super) async fn run(args: ListArgs, session: &mut Session) -> Result<Answer, Failure> {
    let mut filter = JournalFilter {
        events: args.events,
        actor: args.actor,
        job: args.job,
        subject: args.about,
        acts_only: args.acts,
        since: args.since.map(|when| when.at(moment::now())),
        until: args.until.map(|when| when.at(moment::now())),
        before: args.before,
        limit: args.limit,
    };
    let store = session.store().await?;
    let mut rows = Vec::new();
    // One call looks at a bounded number of rows.
    loop {
        let found = store.list_journal(&filter).await?;
        filter.limit -= found.rows.len() as u32;
        rows.extend(found.rows);
        filter.before = found.next;
        if filter.limit == 0 || found.next.is_none() {
            break;
        }
    }
    if session.out.is_json() {
        session.out.json(&rows.iter().map(JournalLine::from).collect::<Vec<_>>())?;
        return Ok(Answer::Done);
    }
    if rows.is_empty() {
        session.out.line("No such rows.");
        return Ok(Answer::Done);
    }
    session.out.table_with_note(table(&rows));
    if let Some(next) = filter.before {
        session.out.line(format!("\nThere may be more: add --before {next}"));
    }
    Ok(Answer::Done)
}

fn event(word: &str) -> Result<JournalEvent, String> {
    let known = JournalEvent::ALL.into_iter().find(|event| event.as_str() == word);
    known.ok_or_else(|| "an event is named as `tenure audit tail` shows it, such as queue_paused".to_owned())
}

fn since(text: &str) -> Result<When, String> {
    When::parse("since", text).map_err(limit)
}

fn until(text: &str) -> Result<When, String> {
    When::parse("until", text).map_err(limit)
}
