//! Schedules: what fires next, and what came of the last fires.

use askama::Template;
use axum::extract::{Path, Query, State};
use serde::Deserialize;
use tenure_core::Timestamp;
use tenure_core::name::{ScheduleName, TenantName};
use tenure_store::StoreError;
use tenure_store::schedule::{FireRecord, ScheduleFilter, ScheduleRecord};

use super::Shown;
use crate::act::Act;
use crate::asked::{address, parsed};
use crate::bits::{self, Markup, encoded};
use crate::desk::Desk;
use crate::frame::{Frame, Visit};

/// Schedules on a page.
const PAGE: u32 = 50;
/// Fires that are foretold.
const NEXT: usize = 5;

struct Line {
    schedule: ScheduleRecord,
    last: Option<FireRecord>,
}

#[derive(Template)]
#[template(path = "schedules.html")]
struct Schedules {
    frame: Frame,
    lines: Vec<Line>,
    next: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    tenant: String,
    after: String,
}

pub(crate) async fn list(State(desk): State<Desk>, visit: Visit, Query(asked): Query<Asked>) -> Shown {
    let after = parsed::<TenantName>(&asked.tenant)?.zip(parsed::<ScheduleName>(&asked.after)?);
    let filter = ScheduleFilter { sight: visit.sight(&None)?, after, limit: PAGE + 1 };
    let mut schedules = desk.store().list_schedules(&filter).await?;
    let has_more = schedules.len() > PAGE as usize;
    schedules.truncate(PAGE as usize);
    let last = schedules.last().filter(|_| has_more);
    let next =
        last.map(|last| address("/schedules", &[("tenant", last.tenant.as_str()), ("after", last.name.as_str())]));
    let mut lines = Vec::with_capacity(schedules.len());
    for schedule in schedules {
        match desk.store().show_schedule(&schedule.tenant, &schedule.name).await {
            // Somebody has just removed it.
            Err(StoreError::NotFound(_)) => {}
            found => {
                let last = found?.1.first().copied();
                lines.push(Line { schedule, last });
            }
        }
    }
    Ok(visit.show(&Schedules { frame: visit.frame("Schedules", "schedules"), lines, next }))
}

#[derive(Template)]
#[template(path = "schedule.html")]
struct SchedulePage {
    frame: Frame,
    schedule: ScheduleRecord,
    fires: Vec<FireRecord>,
    next: Vec<Timestamp>,
}

pub(crate) async fn show(
    State(desk): State<Desk>,
    visit: Visit,
    Path((tenant, name)): Path<(String, String)>,
) -> Shown {
    let tenant = visit.person.caller.acts_for(Some(tenant.parse()?))?;
    let (schedule, fires) = desk.store().show_schedule(&tenant, &name.parse()?).await?;
    let mut next = Vec::new();
    if let (Ok(timing), false) = (&schedule.timing, schedule.paused) {
        let mut after = visit.now;
        while let Some(at) = timing.cron.next_after(&timing.zone, after).filter(|_| next.len() < NEXT) {
            next.push(at);
            after = at;
        }
    }
    let frame = visit.frame(name, "schedules");
    Ok(visit.show(&SchedulePage { frame, schedule, fires, next }))
}

fn link(schedule: &ScheduleRecord) -> String {
    format!("/schedules/{}/{}", encoded(&schedule.tenant), encoded(&schedule.name))
}

fn timing(schedule: &ScheduleRecord) -> String {
    match &schedule.timing {
        Ok(timing) => format!("{} {}", timing.cron, timing.zone),
        Err(error) => error.to_string(),
    }
}

fn act(frame: &Frame, schedule: &ScheduleRecord) -> Markup {
    let name = &schedule.name;
    let path = |verb: &str| format!("/v1/schedules/{}/{verb}?tenant={}", encoded(name), encoded(&schedule.tenant));
    frame.act(&match schedule.paused {
        true => Act::new("Resume", path("resume"), format!("Schedule {name} is resumed."))
            .ask("It goes on from now; what it missed is not made up."),
        false => Act::new("Pause", path("pause"), format!("Schedule {name} is paused."))
            .ask("It fires nothing until it is resumed."),
    })
}
