//! One job: what it asks for, every transition, and why it is not running yet.

mod timeline;
mod why;

use askama::Template;
use axum::extract::{Path, State};
use tenure_core::{JobId, Json, State as JobState};
use tenure_store::record::JobRecord;

use super::Shown;
use crate::act::Act;
use crate::bits::{self, Markup};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};
use timeline::Entry;

#[derive(Template)]
#[template(path = "job.html")]
struct JobPage {
    frame: Frame,
    job: JobRecord,
    why: Option<String>,
    timeline: Vec<Entry>,
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit, Path(id): Path<String>) -> Shown {
    let (sight, id): (_, JobId) = (visit.sight(&None)?, id.parse()?);
    let job = desk.store().show_job(&sight, id).await?;
    let rows = desk.store().list_job_rows(&sight, id).await?;
    let why = why::not_running(&desk, &visit, &job).await?;
    let timeline = timeline::of(&job, &rows, visit.person.caller.tenant.is_none());
    let frame = visit.frame(format!("Job {}", bits::short(&id.to_string())), "jobs");
    Ok(visit.show(&JobPage { frame, job, why, timeline }))
}

impl JobPage {
    /// What its last attempt returned.
    fn result(&self) -> Option<&Json> {
        self.job.attempts.iter().rev().find_map(|attempt| attempt.result.as_ref())
    }

    fn trace_id(&self) -> Option<&str> {
        self.job.trace.as_deref()?.split('-').nth(1)
    }

    /// The run that it is a part of.
    fn run(&self) -> Option<String> {
        self.job.part.as_ref().map(|part| part.run().to_string())
    }

    fn acts(&self) -> Markup {
        let (id, state) = (self.job.summary.id, self.job.summary.state);
        let path = |verb: &str| format!("/v1/jobs/{id}/{verb}");
        let mut acts = String::new();
        let mut add = |act: &Act| acts.push_str(&self.frame.act(act).0);
        match state {
            JobState::Waiting => {
                add(&Act::new("Run now", path("open"), "It is due now.")
                    .ask("It is opened, and the next free worker takes it."));
            }
            JobState::Queued | JobState::Retryable if self.job.summary.run_at > self.frame.now => {
                add(&Act::new("Run now", path("run"), "It is due now.")
                    .ask("It is due now, and the next free worker takes it."));
            }
            JobState::Failed | JobState::Dead | JobState::Canceled => {
                add(&Act::new("Requeue", path("requeue"), "It is queued again.")
                    .ask("It is queued again; attempts and losses start again."));
            }
            _ => {}
        }
        match state {
            JobState::Running => {
                add(&Act::new("Cancel", path("cancel"), "Its worker is asked to stop.")
                    .ask("Its worker is asked to stop.")
                    .grave());
                add(&Act::new(
                    "Cancel by force",
                    path("cancel"),
                    "It is canceled; what its worker reports is refused.",
                )
                .hidden("force:bool", "true")
                .ask("It ends now, and whatever its worker still reports is refused.")
                .grave());
            }
            JobState::Waiting | JobState::Queued | JobState::Retryable => {
                add(&Act::new("Cancel", path("cancel"), "It is canceled.")
                    .ask("It will not run. It can be requeued later.")
                    .grave());
            }
            _ => {}
        }
        Markup(acts)
    }
}
