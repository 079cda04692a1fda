//! Operations: one act on many jobs, and how far it is.

use askama::Template;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use tenure_core::{JobId, State as JobState};
use tenure_store::StoreError;
use tenure_store::operation::{OperationFilter, OperationRecord};
use tenure_store::record::Sight;

use super::Shown;
use crate::act::Act;
use crate::asked::{address, parsed};
use crate::bits::{self, Markup};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

const PAGE: u32 = 50;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    before: String,
}

#[derive(Template)]
#[template(path = "operations.html")]
struct Operations {
    frame: Frame,
    operations: Vec<(OperationRecord, Option<JobState>)>,
    next: Option<String>,
}

pub(crate) async fn list(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    let filter =
        OperationFilter { sight: visit.sight(&None)?, before: parsed::<JobId>(&asked.before)?, limit: PAGE + 1 };
    let mut operations = desk.store().list_operations(&filter).await?;
    let has_more = operations.len() > PAGE as usize;
    operations.truncate(PAGE as usize);
    let last = operations.last().filter(|_| has_more);
    let next = last.map(|last| address("/operations", &[("before", &last.id.to_string())]));
    let mut listed = Vec::new();
    for operation in operations {
        let standing = standing(&desk, &operation).await?;
        listed.push((operation, standing));
    }
    Ok(visit.show(&Operations { frame: visit.frame("Operations", "operations"), operations: listed, next }))
}

#[derive(Template)]
#[template(path = "operation.html")]
struct Operation {
    frame: Frame,
    operation: OperationRecord,
    standing: Option<JobState>,
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit, Path(id): Path<String>) -> Shown {
    let operation = desk.store().show_operation(&visit.sight(&None)?, id.parse()?).await?;
    let standing = standing(&desk, &operation).await?;
    Ok(visit.show(&Operation { frame: visit.frame(operation.name.clone(), "operations"), operation, standing }))
}

impl Operation {
    fn stop(&self) -> Markup {
        if self.standing.is_none_or(JobState::is_terminal) {
            return Markup::default();
        }
        let path = format!("/v1/operations/{}/cancel", self.operation.id);
        self.frame
            .act(&Act::new("Stop", path, "It stops; what it has done stays.").ask("What it has done stays.").grave())
    }
}

/// How far it is, in words.
fn progress(operation: &OperationRecord) -> String {
    let done = bits::count(operation.progress.done);
    match operation.progress.total {
        Some(total) => format!("{done} of {}", bits::count(total)),
        None => format!("{done}, still counting"),
    }
}

/// Where it stands: one that has not come to its end is as its job is, which may have been stopped. `None`: that is gone.
async fn standing(desk: &Desk, operation: &OperationRecord) -> Result<Option<JobState>, StoreError> {
    if operation.finished_at.is_some() {
        return Ok(Some(JobState::Succeeded));
    }
    match desk.store().show_job(&Sight::All, operation.id).await {
        Ok(job) => Ok(Some(job.summary.state)),
        Err(StoreError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn badge(standing: &Option<JobState>) -> Markup {
    bits::badge(standing.map_or("gone", JobState::as_str))
}
