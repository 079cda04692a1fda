//! Schedules as JSON.

use serde::Serialize;
use serde_json::value::RawValue;
use tenure_store::schedule::{FireRecord, ScheduleRecord};
use utoipa::ToSchema;

use super::{date, raw};

/// One schedule; its fires where it is shown alone.
#[derive(Debug, Serialize, ToSchema)]
pub struct ScheduleLine {
    name: String,
    tenant: String,
    /// Null, as the three after it, when what is stored cannot be read: `unreadable` says why.
    cron: Option<String>,
    zone: Option<String>,
    missed: Option<String>,
    grace_ms: Option<u64>,
    unreadable: Option<String>,
    kind: String,
    queue: String,
    #[schema(value_type = Option<Value>)]
    payload: Option<Box<RawValue>>,
    priority: u8,
    gate: Option<String>,
    max_attempts: u16,
    max_losses: u16,
    backoff: String,
    paused: bool,
    pause_reason: Option<String>,
    next_at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fires: Vec<FireLine>,
}

/// One fire of a schedule.
#[derive(Debug, Serialize, ToSchema)]
pub struct FireLine {
    fire_at: String,
    job: String,
    /// Null when it was pruned.
    state: Option<&'static str>,
}

impl ScheduleLine {
    /// A schedule, and its fires where they are told.
    pub fn new(record: &ScheduleRecord, fires: &[FireRecord]) -> Self {
        let (timing, template) = (record.timing.as_ref().ok(), &record.template);
        let fire = |fire: &FireRecord| FireLine {
            fire_at: fire.fire_at.to_string(),
            job: fire.job.to_string(),
            state: fire.state.map(|state| state.as_str()),
        };
        Self {
            name: record.name.to_string(),
            tenant: record.tenant.to_string(),
            cron: timing.map(|timing| timing.cron.to_string()),
            zone: timing.map(|timing| timing.zone.to_string()),
            missed: timing.map(|timing| timing.missed.to_string()),
            grace_ms: timing.map(|timing| u64::try_from(timing.grace.as_millis()).unwrap_or(u64::MAX)),
            unreadable: record.timing.as_ref().err().map(ToString::to_string),
            kind: template.kind.to_string(),
            queue: template.queue.to_string(),
            payload: raw(Some(&template.payload)),
            priority: template.priority.get(),
            gate: template.gate.as_ref().map(ToString::to_string),
            max_attempts: template.rules.max_attempts,
            max_losses: template.rules.max_losses,
            backoff: template.rules.backoff.to_string(),
            paused: record.paused,
            pause_reason: record.pause_reason.clone(),
            next_at: date(record.next()),
            fires: fires.iter().map(fire).collect(),
        }
    }
}
