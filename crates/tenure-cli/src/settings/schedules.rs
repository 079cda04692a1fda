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

/// A schedule that cannot be read: where in the file, and why.
pub(super) type BadSchedule = (usize, String);

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
pub(super) fn read(schedules: &DeTable<'_>) -> Result<Vec<FileSchedule>, BadSchedule> {
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

fn read_schedule(name: ScheduleName, table: &DeTable<'_>, line: usize) -> Result<FileSchedule, BadSchedule> {
    if let Some((key, _)) = table.iter().find(|(key, _)| !KEYS.contains(&key.get_ref().as_ref())) {
        let why = format!("the key `{}` is unknown; a schedule has {}", key.get_ref(), KEYS.join(", "));
        return Err((key.span().start, why));
    }
    let at = |key: &str| table.get(key).map_or(line, |value| value.span().start);
    let refused = |key: &'static str| move |why: Invalid| (at(key), why.to_string());
    let text = |key: &'static str| match table.get(key).map(|value| value.get_ref()) {
        None => Ok(None),
        Some(DeValue::String(text)) => Ok(Some(text.as_ref())),
        Some(_) => Err((at(key), format!("`{key}` is a string in quotes"))),
    };
    let number = |key: &'static str| match table.get(key).map(|value| value.get_ref()) {
        None => Ok(None),
        Some(DeValue::Integer(number)) => match number.as_str().parse::<u16>() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err((at(key), format!("`{key}` is a whole number from 0 on"))),
        },
        Some(_) => Err((at(key), format!("`{key}` is a whole number, without quotes"))),
    };
    let needed = |key: &'static str| text(key)?.ok_or_else(|| (line, format!("schedule {name} has no `{key}`")));
    let mut timing = Timing::new(needed("cron")?.parse().map_err(refused("cron"))?);
    if let Some(zone) = text("zone")? {
        timing.zone = zone.parse().map_err(refused("zone"))?;
    }
    if let Some(missed) = text("missed")? {
        timing.missed = missed.parse().map_err(refused("missed"))?;
    }
    if let Some(grace) = text("grace")? {
        timing.grace = duration::parse("grace", grace).map_err(refused("grace"))?;
    }
    let payload = Json::parse("payload", text("payload")?.unwrap_or("{}").to_owned()).map_err(refused("payload"))?;
    let mut template = Template::new(KindName::new(needed("kind")?).map_err(refused("kind"))?, payload);
    if let Some(queue) = text("queue")? {
        template.queue = queue.parse().map_err(refused("queue"))?;
    }
    if let Some(priority) = number("priority")? {
        let priority = u8::try_from(priority).unwrap_or(u8::MAX);
        template.priority = Priority::new(priority.into()).map_err(refused("priority"))?;
    }
    if let Some(max) = number("max_attempts")? {
        (template.rules.max_attempts, template.rules.max_losses) = (max, max.saturating_add(SPARE_LOSSES));
    }
    if let Some(backoff) = text("backoff")? {
        template.rules.backoff = backoff.parse().map_err(refused("backoff"))?;
    }
    template.gate = text("gate")?.map(str::parse).transpose().map_err(refused("gate"))?;
    let tenant = text("tenant")?.map(str::parse).transpose().map_err(refused("tenant"))?;
    let schedule = FileSchedule { name, tenant, timing, template };
    schedule.clone().request(None, Word::default()).check().map_err(|why| (line, why.to_string()))?;
    Ok(schedule)
}
