//! Workers: where their loops stand, what they hold, what they are told.

use std::time::Duration;

use askama::Template;
use axum::extract::{Query, State};
use serde::Deserialize;
use tenure_store::worker::{Order, Standing, WorkerRecord};

use super::Shown;
use crate::act::Act;
use crate::bits::{self, Markup};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

/// Workers that are looked at.
const LISTED_MAX: u32 = 500;
/// Workers are seen every few seconds.
const LATE_AFTER: Duration = Duration::from_secs(15);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    all: bool,
}

#[derive(Template)]
#[template(path = "workers.html")]
struct Workers {
    frame: Frame,
    asked: Asked,
    workers: Vec<(WorkerRecord, Standing)>,
    left_out: usize,
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    visit.need_operator()?;
    let workers = desk.store().list_workers(LISTED_MAX).await?;
    let all = workers.len();
    let workers: Vec<_> = workers
        .into_iter()
        .map(|worker| {
            let standing = Standing::of(&worker, visit.now);
            (worker, standing)
        })
        .filter(|(_, standing)| asked.all || standing.is_there())
        .collect();
    let left_out = all - workers.len();
    Ok(visit.show(&Workers { frame: visit.frame("Workers", "workers"), asked, workers, left_out }))
}

fn queues(worker: &WorkerRecord) -> String {
    let queues = worker.beat.iter().flat_map(|beat| &beat.about.queues);
    queues.map(|(queue, slots)| format!("{queue} ×{slots}")).collect::<Vec<_>>().join(", ")
}

impl Workers {
    /// It should have been seen since; a little later it counts as gone.
    fn is_late(&self, worker: &WorkerRecord) -> bool {
        worker.seen_at.is_some_and(|seen| self.frame.now.since(seen) >= LATE_AFTER)
    }

    fn acts(&self, worker: &WorkerRecord, standing: &Standing) -> Markup {
        if !standing.is_there() {
            return Markup::default();
        }
        let path = |order: &str| format!("/v1/workers/{}/{order}", worker.id);
        let name = &worker.name;
        let quiet = match worker.order {
            Order::Work => Act::new("Quiet", path("quiet"), format!("{name} claims nothing more."))
                .ask("It claims nothing more, finishes what it has, and stays."),
            Order::Quiet | Order::Stop => {
                Act::new("Resume", path("work"), format!("{name} works again.")).ask("It claims jobs again.")
            }
        };
        let stop = Act::new("Stop", path("stop"), format!("{name} finishes what it has and goes."))
            .ask("It claims nothing more, finishes what it has, and its process ends.")
            .grave();
        let stop = if worker.order == Order::Stop { Markup::default() } else { self.frame.act(&stop) };
        Markup(format!("{}{stop}", self.frame.act(&quiet)))
    }
}
