//! Dead letters, by what killed them.

use askama::Template;
use axum::extract::{Query, State};
use serde::Deserialize;
use tenure_core::Invalid;
use tenure_core::name::{KindName, QueueName, TenantName};
use tenure_server::dead::{Cause, Group};

use super::Shown;
use crate::act::Act;
use crate::asked::{Refused, address, parsed, word};
use crate::bits::{self, Markup};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    kind: String,
    queue: String,
    tenant: String,
}

#[derive(Template)]
#[template(path = "dead.html")]
struct Dead {
    frame: Frame,
    asked: Asked,
    groups: Vec<Group>,
    looked_at: u64,
    is_complete: bool,
    refused: Refused,
}

pub(crate) async fn show(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    let (found, refused) = match asked.wanted() {
        Ok((tenant, queue, kind)) => {
            let sight = visit.sight(&tenant)?;
            let found = match (queue, kind) {
                (None, None) => desk.dead(&sight).await?,
                (queue, kind) => tenure_server::dead::group(desk.store(), sight, queue, kind).await?,
            };
            Refused::or(Ok(Some(found)))
        }
        Err(invalid) => Refused::or(Err(invalid)),
    };
    let frame = visit.frame("Dead letters", "dead");
    let (groups, looked_at, is_complete) =
        found.map_or((Vec::new(), 0, true), |found| (found.groups, found.looked_at, found.complete));
    Ok(visit.show_list(refused.is_some(), &Dead { frame, asked, groups, looked_at, is_complete, refused }))
}

type Wanted = (Option<TenantName>, Option<QueueName>, Option<KindName>);

impl Asked {
    fn wanted(&self) -> Result<Wanted, Invalid> {
        Ok((parsed(&self.tenant)?, parsed(&self.queue)?, parsed(&self.kind)?))
    }
}

impl Dead {
    fn act(&self, group: &Group) -> Markup {
        let many = bits::many(group.count, "job");
        let mut act = Act::new("Requeue", "/v1/operations", "It has begun; this page follows it.")
            .hidden("act", "requeue")
            .hidden("state", "dead")
            .hidden("group", group.key())
            .hidden("kind", group.kind.as_str())
            .hidden("name", format!("requeue dead {}", group.kind))
            .ask(format!("{many} of {} are queued again; attempts and losses start again.", group.kind));
        for (name, value) in [("queue", &self.asked.queue), ("tenant", &self.asked.tenant)] {
            if let Some(value) = word(value) {
                act = act.hidden(name, value);
            }
        }
        self.frame.act(&act)
    }

    fn jobs(&self, group: &Group) -> String {
        address(
            "/jobs",
            &[
                ("state", "dead"),
                ("kind", group.kind.as_str()),
                ("queue", &self.asked.queue),
                ("tenant", &self.asked.tenant),
            ],
        )
    }

    fn cause(&self, group: &Group) -> String {
        match &group.cause {
            Cause::Code(code) => code.clone(),
            Cause::Message(message) => bits::cut(message, 160),
            Cause::Unknown => "nobody said why".to_owned(),
        }
    }
}
