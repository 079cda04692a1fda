//! Queues: what waits, whether it is handed out.

use askama::Template;
use axum::extract::State;
use tenure_store::record::QueueRecord;

use super::Shown;
use crate::act::Act;
use crate::bits::{self, Markup, encoded, many, span};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

#[derive(Template)]
#[template(path = "queues.html")]
struct Queues {
    frame: Frame,
    queues: Vec<QueueRecord>,
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit) -> Shown {
    visit.need_operator()?;
    let queues = desk.queues().await?;
    Ok(visit.show(&Queues { frame: visit.frame("Queues", "queues"), queues }))
}

impl Queues {
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
