//! `tenure runs watch`: one run until it ends, drawn on a terminal, a line for each change elsewhere.

use std::time::{Duration, Instant};

use clap::Args;
use tenure_core::{Json, RunId, RunState, Timestamp};
use tenure_store::record::Sight;
use tenure_store::run::{PartitionFilter, PartitionRecord, RunRecord};
use tenure_store::{Store, StoreError};

use super::{consolidate, counts, progress, unknown};
use crate::args::{TenantArg, every, run_id, timeout};
use crate::bar::{NARROW, WIDE};
use crate::command::partitions::list::table as partition_table;
use crate::command::{Answer, Session};
use crate::failure::{Failure, exit};
use crate::follow::Follow;
use crate::output::Output;
use crate::paint::Paint;
use crate::screen::Screen;
use crate::table::{Cell, Table};
use tenure_server::moment;
use tenure_server::pretty::error_text;
use tenure_server::wire::run::RunLine;

/// Partitions that are read for a picture; a screen has not more rows.
const PARTITIONS_MAX: u32 = 100;
/// Widths that most lines keep, so that later ones line up.
const WIDTHS: [usize; 4] = [20, 9, NARROW, 0];

const EXAMPLES: &str = "\
Examples:
  tenure runs watch ID                       until it ends
  tenure runs watch ID --timeout 2h          but not longer than that
  tenure runs watch ID --json | jq .done     one JSON object for each change

Ctrl-C ends it; the run goes on. Where the output is no terminal, each change is a line.

Exit codes:
  0  the run succeeded
  1  it failed or was canceled, or it goes on and nobody knows yet";

/// Follow a run until it ends
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct WatchArgs {
    /// The run's id
    #[arg(value_parser = run_id)]
    id: RunId,
    /// How often to look
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = every)]
    every: Duration,
    /// Give up after this long, with exit code 1
    #[arg(long, value_name = "DURATION", value_parser = timeout)]
    timeout: Option<Duration>,
    #[command(flatten)]
    tenant: TenantArg,
}

/// What one look saw.
struct Look {
    at: Timestamp,
    run: RunRecord,
    /// What stopped and what goes on, for a picture.
    partitions: Vec<PartitionRecord>,
}

pub(super) async fn run(args: WatchArgs, session: &mut Session) -> Result<Answer, Failure> {
    let (id, sight) = (args.id, session.sight(args.tenant));
    let store = session.store_to_follow().await?;
    store.show_run(&sight, id).await.map_err(unknown)?;
    let out = &mut session.out;
    let mut follow = Follow::begin()?;
    let unseen = |error| Failure::new("output", exit::REFUSED, "the view could not be drawn").caused_by(&error);
    let mut screen = if out.is_live() { Some(Screen::enter().map_err(unseen)?) } else { None };
    let begin = Instant::now();
    let mut before: Option<RunRecord> = None;
    loop {
        // Stopped before it ended: whether it succeeds is not known, so the answer cannot be yes.
        let Some(look) = follow.ask(async || look(&*store, &sight, id, screen.is_some()).await).await? else {
            return Ok(Answer::Findings);
        };
        match &mut screen {
            Some(screen) => screen.draw(&picture(&look, Screen::size().0, out.color())).map_err(unseen)?,
            None if before.as_ref() != Some(&look.run) => print(&look, out)?,
            None => {}
        }
        out.flush()?;
        let state = look.run.run.state;
        if !state.is_open() {
            return Ok(if state == RunState::Succeeded { Answer::Done } else { Answer::Findings });
        }
        before = Some(look.run);
        let left = args.timeout.map(|timeout| timeout.saturating_sub(begin.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            let waited = tenure_core::duration::format(args.timeout.unwrap_or_default());
            let message = format!("run {id} is still {} after {waited}", state.as_str());
            return Err(
                Failure::new("timeout", exit::REFUSED, message).hint("The run goes on; --timeout waits longer.")
            );
        }
        let pause = left.map_or(args.every, |left| left.min(args.every));
        if out.is_closed() || !follow.pause(pause).await {
            return Ok(Answer::Findings);
        }
    }
}

async fn look(store: &dyn Store, sight: &Sight, id: RunId, is_drawn: bool) -> Result<Look, StoreError> {
    let (at, run) = (store.now().await?, store.show_run(sight, id).await?);
    let mut partitions = Vec::new();
    let of_run = || PartitionFilter { run: Some(id), limit: PARTITIONS_MAX, ..PartitionFilter::default() };
    if is_drawn {
        partitions = store.list_partitions(&PartitionFilter { state: Some(RunState::Failed), ..of_run() }).await?;
        partitions.extend(store.list_partitions(&PartitionFilter { active: true, ..of_run() }).await?);
    }
    Ok(Look { at, run, partitions })
}

/// A change, as a line.
fn print(look: &Look, out: &mut Output) -> Result<(), Failure> {
    if out.is_json() {
        return out.json(&RunLine::from(&look.run));
    }
    let (record, run) = (&look.run, &look.run.run);
    let paint = Paint::of_run(run.state);
    let mut detail = format!("{}, {} rows", counts(record), record.rows);
    if record.consolidate.is_some() {
        detail.push_str(&format!(", consolidate {}", run.fan.as_str()));
    }
    if let Some(error) = last_error(record) {
        detail.push_str(&format!(": {error}"));
    }
    let mut table = Table::with_widths(&[], &WIDTHS);
    table.row(vec![
        Cell::dim(moment::absolute(look.at)),
        Cell::painted(run.state.as_str(), paint),
        Cell::painted(progress(record, NARROW), paint),
        detail.into(),
    ]);
    out.table(&table);
    Ok(())
}

/// The whole view, `rows` lines at most.
fn picture(look: &Look, rows: usize, color: bool) -> String {
    let (record, run) = (&look.run, &look.run.run);
    let paint = Paint::of_run(run.state);
    let clock = Paint::Bold.apply(&moment::absolute(look.at), color);
    let hint = if run.state.is_open() { "  Ctrl-C ends" } else { "" };
    let title = Paint::Dim.apply(&format!("run {}{hint}", record.id), color);
    let mut pairs: Vec<(&'static str, Cell)> = vec![
        ("state", Cell::painted(standing(look), paint)),
        ("progress", Cell::painted(format!("{}  {}", progress(record, WIDE), counts(record)), paint)),
        ("rows", record.rows.to_string().into()),
        ("consolidate", consolidate(record).into()),
    ];
    pairs.extend(record.source.as_ref().map(|source| ("source", source.as_str().into())));
    pairs.extend(last_error(record).map(|error| ("last error", Cell::painted(error, Paint::Red))));
    // The title and an empty line, these, an empty line and a heading, and a line for what does not fit.
    let room = rows.saturating_sub(2 + pairs.len() + 3).max(1);
    let mut text = format!("{clock}  {title}\n\n");
    text.push_str(&Table::pairs(pairs).render(color));
    let shown = &look.partitions[..look.partitions.len().min(room)];
    if !shown.is_empty() {
        text.push('\n');
        text.push_str(&partition_table(shown, false, look.at).render(color));
    }
    if shown.len() < look.partitions.len() {
        text.push_str(&format!("and more: tenure partitions list --run {} --active\n", record.id));
    }
    text
}

/// `running for 3m`, `failed after 20s`.
fn standing(look: &Look) -> String {
    let run = &look.run.run;
    let word = run.state.as_str();
    match (run.started_at, run.finished_at) {
        (None, _) => word.to_owned(),
        (Some(start), None) => format!("{word} for {}", moment::span(look.at.since(start))),
        (Some(start), Some(end)) => format!("{word} after {}", moment::span(end.since(start))),
    }
}

fn last_error(record: &RunRecord) -> Option<String> {
    let error = record.run.last_error.as_ref().filter(|_| record.run.state != RunState::Succeeded)?;
    Some(error_text(&Json::from_store(error.as_str())))
}
