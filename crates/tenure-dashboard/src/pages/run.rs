//! One run: its counts, its partitions as a strip and one by one, its consolidate.

use askama::Template;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use tenure_core::name::PartitionName;
use tenure_core::run::Fan;
use tenure_core::{RunId, RunState};
use tenure_store::run::{PartitionFilter, PartitionRecord, RunRecord};

use super::Shown;
use super::runs::{STUCK_FOR, ended};
use crate::act::Act;
use crate::asked::{address, parsed};
use crate::bits::{self, Markup, encoded};
use crate::chart::{self, Cell};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

/// Partitions in the strip.
const STRIP_MAX: u32 = 1_000;
/// Partitions in the table.
const PAGE: usize = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    after: String,
}

#[derive(Template)]
#[template(path = "run.html")]
struct RunPage {
    frame: Frame,
    run: RunRecord,
    /// From the first one on, as many as the strip shows.
    partitions: Vec<PartitionRecord>,
    listed: Vec<PartitionRecord>,
    next: Option<String>,
}

pub(crate) async fn show(
    State(desk): State<Desk>,
    visit: Visit,
    Path(id): Path<String>,
    Query(asked): Query<Asked>,
) -> Shown {
    let (sight, id): (_, RunId) = (visit.sight(&None)?, id.parse()?);
    let run = desk.store().show_run(&sight, id).await?;
    let filter = PartitionFilter { sight, run: Some(id), limit: STRIP_MAX, ..PartitionFilter::default() };
    let partitions = desk.store().list_partitions(&filter).await?;
    let mut listed = match parsed::<PartitionName>(&asked.after)? {
        None => partitions.clone(),
        Some(after) => {
            let page = PartitionFilter { after: Some((id, after)), limit: PAGE as u32 + 1, ..filter };
            desk.store().list_partitions(&page).await?
        }
    };
    let has_more = listed.len() > PAGE;
    listed.truncate(PAGE);
    let last = listed.last().filter(|_| has_more).map(|partition| partition.name.to_string());
    let next = last.map(|last| address(&format!("/runs/{id}"), &[("after", &last)]));
    let title = run.source.clone().unwrap_or_else(|| format!("Run {}", bits::short(&id.to_string())));
    Ok(visit.show(&RunPage { frame: visit.frame(title, "runs"), run, partitions, listed, next }))
}

/// How far it is, of 1; as good as whole where nobody knows how much there is.
fn done(partition: &PartitionRecord) -> f64 {
    match (partition.state, partition.expected) {
        (RunState::Succeeded, _) | (_, None | Some(0)) => 1.0,
        (_, Some(expected)) => partition.rows as f64 / expected as f64,
    }
}

impl RunPage {
    /// What the bar shows: rows where it is known how many there will be, or else members that have ended.
    fn progress(&self) -> (u64, u64, &'static str) {
        let expected: Option<u64> = self.partitions.iter().map(|partition| partition.expected).sum();
        match expected {
            Some(expected) if expected > 0 && self.partitions.len() as u64 == self.run.run.total => {
                (self.run.rows.min(expected), expected, "Rows that were stored")
            }
            _ => (ended(&self.run), self.run.run.total.max(1), "Members that have ended"),
        }
    }

    fn is_stuck(&self, partition: &PartitionRecord) -> bool {
        partition.state.is_open() && self.frame.now.since(partition.moved_at) >= STUCK_FOR
    }

    fn word(&self, partition: &PartitionRecord) -> &'static str {
        if self.is_stuck(partition) { "stuck" } else { partition.state.as_str() }
    }

    fn strip(&self) -> Markup {
        let boxes = self.partitions.iter().map(|partition| {
            let word = self.word(partition);
            let title =
                format!("{}: {word}, {} rows, offset {}", partition.name, partition.rows, partition.next_offset);
            Cell { state: word, done: done(partition), title }
        });
        let count = |state: &str| self.partitions.iter().filter(|partition| self.word(partition) == state).count();
        let words = ["queued", "running", "stuck", "succeeded", "failed", "canceled"];
        let said: Vec<String> = words
            .iter()
            .map(|word| (count(word), word))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        chart::strip(boxes, &format!("Partitions: {}", said.join(", ")))
    }

    fn consolidate(&self) -> &'static str {
        match self.run.run.fan {
            Fan::None => "none",
            Fan::Waiting => "waits for the others",
            Fan::Skipped => "skipped: too many were missing",
            Fan::Open => "its turn has come",
            fan @ Fan::Ended(_) => fan.as_str(),
        }
    }

    fn cancel(&self) -> Markup {
        if matches!(self.run.run.state, RunState::Succeeded | RunState::Canceled) {
            return Markup::default();
        }
        let act =
            Act::new("Cancel run", format!("/v1/runs/{}/cancel", self.run.id), "The run is canceled; its jobs follow.");
        self.frame.act(
            &act.ask(format!(
                "No page goes on, and the {} that are left are canceled.",
                bits::many(self.run.run.left(), "job")
            ))
            .grave(),
        )
    }

    fn acts(&self, partition: &PartitionRecord) -> Markup {
        let name = &partition.name;
        let path = |verb: &str| format!("/v1/runs/{}/partitions/{}/{verb}", self.run.id, encoded(name));
        let settled = matches!(self.run.run.state, RunState::Succeeded | RunState::Canceled);
        if settled
            || matches!(partition.state, RunState::Succeeded | RunState::Queued | RunState::Running)
                && !self.is_stuck(partition)
        {
            return Markup::default();
        }
        let resume = Act::new("Resume", path("resume"), format!("Partition {name} goes on."))
            .ask(format!("It goes on at offset {}.", bits::count(partition.next_offset)));
        let reset = Act::new("Reset", path("reset"), format!("Partition {name} begins again."))
            .text("offset:number", "Begin again at offset", "0")
            .ask("Rows that it stored are stored again: its handler has to bear that.")
            .grave();
        // One that goes on by itself needs no help, but may begin again.
        let resume = if partition.state.is_open() { Markup::default() } else { self.frame.act(&resume) };
        Markup(format!("{resume}{}", self.frame.act(&reset)))
    }
}
