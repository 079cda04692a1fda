//! Runs and how far they are; partitions that are active or do not move.

use std::time::Duration;

use askama::Template;
use axum::extract::{Query, State};
use serde::Deserialize;
use tenure_core::name::TenantName;
use tenure_core::{Invalid, RunId, RunState};
use tenure_store::run::{PartitionFilter, PartitionRecord, RunFilter, RunRecord};

use super::Shown;
use crate::asked::{address, parsed, word};
use crate::bits;
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

const PAGE: u32 = 30;
/// A partition that has not moved for so long is stuck.
pub(super) const STUCK_FOR: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    show: String,
    tenant: String,
    before: String,
}

#[derive(Template)]
#[template(path = "runs.html")]
struct Runs {
    frame: Frame,
    asked: Asked,
    runs: Vec<RunRecord>,
    next: Option<String>,
    active: Vec<PartitionRecord>,
    stuck: Vec<PartitionRecord>,
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    let sight = visit.sight(&parsed::<TenantName>(&asked.tenant)?)?;
    let refused = |word| Invalid::new("show", word, "it is open, queued, running, succeeded, failed or canceled");
    let state = word(&asked.show).filter(|word| *word != "open");
    let state = state.map(|word| RunState::parse(word).ok_or_else(|| refused(word))).transpose()?;
    let filter = RunFilter {
        sight: sight.clone(),
        open: asked.show == "open",
        state,
        before: parsed::<RunId>(&asked.before)?,
        limit: PAGE + 1,
    };
    let mut runs = desk.store().list_runs(&filter).await?;
    let has_more = runs.len() > PAGE as usize;
    runs.truncate(PAGE as usize);
    let last = runs.last().filter(|_| has_more).map(|run| run.id.to_string());
    let next =
        last.map(|last| address("/runs", &[("show", &asked.show), ("tenant", &asked.tenant), ("before", &last)]));
    let partitions = PartitionFilter { sight, limit: 20, ..PartitionFilter::default() };
    let stuck = PartitionFilter { stuck_for: Some(STUCK_FOR), ..partitions.clone() };
    let active = desk.store().list_partitions(&PartitionFilter { active: true, ..partitions }).await?;
    let stuck = desk.store().list_partitions(&stuck).await?;
    Ok(visit.show(&Runs { frame: visit.frame("Runs", "runs"), asked, runs, next, active, stuck }))
}

/// Members that have ended, of all.
pub(super) fn ended(record: &RunRecord) -> u64 {
    record.run.done + record.run.failed + record.run.canceled
}

impl Runs {
    fn tabs(&self) -> [(&'static str, &'static str, bool); 5] {
        let here = |word: &str| self.asked.show == word;
        [
            ("all", "/runs", here("")),
            ("open", "/runs?show=open", here("open")),
            ("succeeded", "/runs?show=succeeded", here("succeeded")),
            ("failed", "/runs?show=failed", here("failed")),
            ("canceled", "/runs?show=canceled", here("canceled")),
        ]
    }
}
