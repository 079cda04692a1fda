//! `[schedules]` of a settings file: what is asked for again and again, kept beside the rest of the settings.
//!
//! ```toml
//! [schedules.nightly]
//! cron = "0 3 * * *"
//! kind = "report"
//! payload = '{"full": true}'
//! zone = "Europe/Berlin"
//! missed = "once"
//! ```

use tenure_core::apply::SPARE_LOSSES;
use tenure_core::cron::Timing;
use tenure_core::name::{KindName, ScheduleName, TenantName};
use tenure_core::{Invalid, Json, Priority, duration};
use tenure_store::operate::Word;
use tenure_store::schedule::{SetSchedule, Template};
use toml::de::{DeTable, DeValue};

use super::keys::{Bad, Keys};

/// What a schedule may say.
const KEYS: [&str; 12] = [
    "cron",
    "kind",
    "payload",
    "zone",
    "missed",
    "grace",
    "queue",
    "priority",
    "max_attempts",
    "backoff",
    "gate",
    "tenant",
];

/// A schedule of the file; one without a tenant is that of whoever applies it.
#[derive(Debug, Clone)]
pub(crate) struct FileSchedule {
    name: ScheduleName,
    tenant: Option<TenantName>,
    timing: Timing,
    template: Template,
}

impl FileSchedule {
    /// The request, for this tenant unless the file names one.
    pub(crate) fn request(self, tenant: Option<TenantName>, word: Word) -> SetSchedule {
        let Self { name, tenant: own, timing, template } = self;
        SetSchedule { tenant: own.or(tenant).unwrap_or_default(), name, timing, template, word }
    }
}

/// Reads the table of all schedules.
pub(super) fn read(schedules: &DeTable<'_>) -> Result<Vec<FileSchedule>, Bad> {
    let mut read = Vec::new();
    for (name, value) in schedules {
        let at = name.span().start;
        let name: ScheduleName = name.get_ref().parse().map_err(|why: Invalid| (at, why.to_string()))?;
        let DeValue::Table(schedule) = value.get_ref() else {
            let way = "and below it cron = \"0 3 * * *\" and kind = \"report\"";
            return Err((at, format!("`schedules.{name}` is a table, such as [schedules.\"{name}\"] {way}")));
        };
        read.push(read_schedule(name, schedule, at)?);
    }
    Ok(read)
}

fn read_schedule(name: ScheduleName, table: &DeTable<'_>, line: usize) -> Result<FileSchedule, Bad> {
    let keys = Keys::new(table, line, "a schedule", &KEYS)?;
    let needed = |key: &'static str| keys.text(key)?.ok_or_else(|| (line, format!("schedule {name} has no `{key}`")));
    let mut timing = Timing::new(needed("cron")?.parse().map_err(keys.refused("cron"))?);
    if let Some(zone) = keys.text("zone")? {
        timing.zone = zone.parse().map_err(keys.refused("zone"))?;
    }
    if let Some(missed) = keys.text("missed")? {
        timing.missed = missed.parse().map_err(keys.refused("missed"))?;
    }
    if let Some(grace) = keys.text("grace")? {
        timing.grace = duration::parse("grace", grace).map_err(keys.refused("grace"))?;
    }
    let payload =
        Json::parse("payload", keys.text("payload")?.unwrap_or("{}").to_owned()).map_err(keys.refused("payload"))?;
    let mut template = Template::new(KindName::new(needed("kind")?).map_err(keys.refused("kind"))?, payload);
    if let Some(queue) = keys.text("queue")? {
        template.queue = queue.parse().map_err(keys.refused("queue"))?;
    }
    // A name in quotes, or a number.
    if let Ok(Some(name)) = keys.text("priority") {
        template.priority = name.parse().map_err(keys.refused("priority"))?;
    } else if let Some(number) = keys.number::<u16>("priority")? {
        template.priority = Priority::new(number.into()).map_err(keys.refused("priority"))?;
    }
    if let Some(max) = keys.number::<u16>("max_attempts")? {
        (template.rules.max_attempts, template.rules.max_losses) = (max, max.saturating_add(SPARE_LOSSES));
    }
    if let Some(backoff) = keys.text("backoff")? {
        template.rules.backoff = backoff.parse().map_err(keys.refused("backoff"))?;
    }
    template.gate = keys.text("gate")?.map(str::parse).transpose().map_err(keys.refused("gate"))?;
    let tenant = keys.text("tenant")?.map(str::parse).transpose().map_err(keys.refused("tenant"))?;
    let schedule = FileSchedule { name, tenant, timing, template };
    schedule.clone().request(None, Word::default()).check().map_err(|why| (line, why.to_string()))?;
    Ok(schedule)
}
