//! Queues: what waits, whether it is handed out.

use askama::Template;
use axum::extract::State;
use tenure_core::Timestamp;
use tenure_store::record::QueueRecord;
use tenure_store::worker::WorkerRecord;

use super::Shown;
use crate::act::Act;
use crate::bits::{self, Markup, encoded, many, span};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

/// Registered workers that are read, the last seen first.
const WORKERS_MAX: u32 = 1_000;

#[derive(Template)]
#[template(path = "queues.html")]
struct Queues {
    frame: Frame,
    queues: Vec<QueueRecord>,
    workers: Vec<WorkerRecord>,
}

/// Whether jobs of a queue are due and no live worker takes them. A paused queue hands out nothing anyway.
pub(super) fn is_unserved<'w>(
    queue: &QueueRecord,
    mut workers: impl Iterator<Item = &'w WorkerRecord>,
    now: Timestamp,
) -> bool {
    queue.due > 0 && !queue.paused && workers.all(|worker| worker.slots_of(&queue.name, now) == 0)
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit) -> Shown {
    visit.need_operator()?;
    let queues = desk.queues().await?;
    let workers = desk.store().list_workers(WORKERS_MAX).await?;
    Ok(visit.show(&Queues { frame: visit.frame("Queues", "queues"), queues, workers }))
}

impl Queues {
    fn is_unserved(&self, queue: &QueueRecord) -> bool {
        is_unserved(queue, self.workers.iter(), self.frame.now)
    }

    /// Slots of live workers.
    fn slots(&self, queue: &QueueRecord) -> u64 {
        self.workers.iter().map(|worker| worker.slots_of(&queue.name, self.frame.now)).sum()
    }

    fn acts(&self, queue: &QueueRecord) -> Markup {
        let name = &queue.name;
        let path = format!("/v1/queues/{}", encoded(name));
        let switch = match queue.paused {
            true => Act::new("Resume", format!("{path}/resume"), format!("Queue {name} is handed out again."))
                .ask("Its jobs are handed out to workers again."),
            false => Act::new("Pause", format!("{path}/pause"), format!("Queue {name} is paused.")).ask(format!(
                "No job of {name} is handed out until it is resumed; {} that run go on.",
                many(queue.running, "job")
            )),
        };
        let change = Act::new("Settings", path, format!("Queue {name} is changed."))
            .method("PUT")
            .confirm("What is left empty stays as it is.")
            .text("lease_ttl_ms:duration", "A silent worker keeps its jobs for", &span(&queue.lease_ttl))
            .text(
                "quota:number",
                "Most pending jobs, 0 for no limit",
                &queue.quota.map_or("0".to_owned(), |quota| quota.to_string()),
            )
            .choice(
                "fair:bool",
                "Tenants in turn",
                vec![(String::new(), "as it is".into()), ("true".into(), "yes".into()), ("false".into(), "no".into())],
            );
        Markup(format!("{}{}", self.frame.act(&switch), self.frame.act(&change)))
    }
}
