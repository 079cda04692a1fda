//! Schedules: where each stands, and the fires it had. When they fire is decided above; see `tenure_store::schedule`.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Row, named_params};
use tenure_core::cron::{Missed, Timing};
use tenure_core::journal::JournalEvent;
use tenure_core::json::quote;
use tenure_core::name::{ScheduleName, TenantName};
use tenure_core::{Invalid, Json, Timestamp};
use tenure_store::operate::Word;
use tenure_store::schedule::{
    DUE_RANKED_MAX, DueSchedules, FIRES_KEPT, FireRecord, FireResult, FireSchedule, Fired, PauseSchedule,
    RemoveSchedule, SCHEDULES_MAX, ScheduleFilter, ScheduleId, ScheduleRecord, ScheduleSet, SetSchedule, Template,
};
use tenure_store::{ScheduleStore, StoreError};

use crate::enqueue;
use crate::fault;
use crate::journal::{self, Entry};
use crate::lane::Urgency;
use crate::queue;
use crate::row::{RulesReader, blob, job_id, number, optional_word, priority, text, time, word};
use crate::show;
use crate::store::SqliteStore;
use crate::tx::Tx;

const FIND_SCHEDULE: &str = include_str!("sql/find_schedule.sql");
const LIST_SCHEDULES: &str = include_str!("sql/list_schedules.sql");
const DUE_SCHEDULES: &str = include_str!("sql/due_schedules.sql");
const NEXT_LOOK: &str = include_str!("sql/next_look.sql");
const COUNT_SCHEDULES: &str = include_str!("sql/count_schedules.sql");
const SET_SCHEDULE: &str = include_str!("sql/set_schedule.sql");
const PAUSE_SCHEDULE: &str = include_str!("sql/pause_schedule.sql");
const REMOVE_SCHEDULE: &str = include_str!("sql/remove_schedule.sql");
const MOVE_SCHEDULE: &str = include_str!("sql/move_schedule.sql");
const ADD_FIRE: &str = include_str!("sql/add_fire.sql");
const HAS_FIRE: &str = include_str!("sql/has_fire.sql");
const LIST_FIRES: &str = include_str!("sql/list_fires.sql");
const PRUNE_FIRES: &str = include_str!("sql/prune_fires.sql");

#[async_trait]
impl ScheduleStore for SqliteStore {
    async fn set_schedule(&self, request: SetSchedule) -> Result<ScheduleSet, StoreError> {
        request.check()?;
        self.write(Urgency::Verb, move |tx| set_schedule(tx, &request)).await
    }

    async fn remove_schedule(&self, request: RemoveSchedule) -> Result<(), StoreError> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| remove_schedule(tx, &request)).await
    }

    async fn pause_schedule(&self, request: PauseSchedule) -> Result<(), StoreError> {
        request.word.check()?;
        self.write(Urgency::Verb, move |tx| pause_schedule(tx, &request)).await
    }

    async fn list_schedules(&self, filter: &ScheduleFilter) -> Result<Vec<ScheduleRecord>, StoreError> {
        filter.check()?;
        let filter = filter.clone();
        self.read(move |tx| list_schedules(tx, &filter)).await
    }

    async fn show_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<(ScheduleRecord, Vec<FireRecord>), StoreError> {
        let (tenant, name) = (tenant.clone(), name.clone());
        self.read(move |tx| show_schedule(tx, &tenant, &name)).await
    }

    async fn due_schedules(&self, limit: u32) -> Result<DueSchedules, StoreError> {
        DueSchedules::check_limit(limit)?;
        self.read(move |tx| due_schedules(tx, limit)).await
    }

    async fn fire_schedules(&self, requests: Vec<FireSchedule>) -> Result<Vec<FireResult>, StoreError> {
        FireSchedule::check_batch(&requests)?;
        self.write(Urgency::Verb, move |tx| requests.iter().map(|request| fire_one(tx, request)).collect()).await
    }
}

fn set_schedule(tx: &Tx<'_>, request: &SetSchedule) -> fault::Result<ScheduleSet> {
    let SetSchedule { timing, template, .. } = request;
    let grace_ms = i64::try_from(timing.grace.as_millis()).unwrap_or(i64::MAX);
    let kept = Timing { grace: Duration::from_millis(grace_ms.unsigned_abs()), ..timing.clone() };
    let before = find(tx, &request.tenant, &request.name)?;
    let anew = before.as_ref().is_none_or(|before| before.timing.as_ref() != Ok(&kept));
    if !anew && before.as_ref().is_some_and(|before| before.template == *template) {
        return Ok(ScheduleSet::Same);
    }
    let tenant = queue::ensure_tenant(tx, &request.tenant)?;
    tx.execute(
        SET_SCHEDULE,
        named_params! {
            ":tenant": tenant,
            ":name": request.name.as_str(),
            ":cron": timing.cron.to_string(),
            ":zone": timing.zone.name(),
            ":missed": timing.missed == Missed::Once,
            ":grace_ms": grace_ms,
            ":queue": template.queue.as_str(),
            ":kind": template.kind.as_str(),
            ":payload": template.payload.as_str(),
            ":priority": template.priority.get(),
            ":gate": template.gate.as_ref().map(|gate| gate.as_str()),
            ":max_attempts": template.rules.max_attempts,
            ":max_losses": template.rules.max_losses,
            ":backoff": template.rules.backoff.to_string(),
            ":anew": anew,
            ":now": tx.now.as_micros(),
        },
    )?;
    if before.is_none()
        && queue::count_of_tenant(tx, COUNT_SCHEDULES, named_params! { ":tenant": tenant })? > SCHEDULES_MAX
    {
        return Err(request.beyond_limit().into());
    }
    write_down(tx, JournalEvent::ScheduleSet, (&request.tenant, &request.name), Some(timing), &request.word)?;
    Ok(if before.is_some() { ScheduleSet::Changed } else { ScheduleSet::Created })
}

fn remove_schedule(tx: &Tx<'_>, request: &RemoveSchedule) -> fault::Result<()> {
    let known = found(tx, &request.tenant, &request.name)?;
    tx.execute(REMOVE_SCHEDULE, named_params! { ":id": known.id.0 })?;
    write_down(tx, JournalEvent::ScheduleRemoved, (&request.tenant, &request.name), None, &request.word)
}

fn pause_schedule(tx: &Tx<'_>, request: &PauseSchedule) -> fault::Result<()> {
    let known = found(tx, &request.tenant, &request.name)?;
    let reason = request.word.reason.as_deref().filter(|_| request.paused);
    let params = named_params! {
        ":id": known.id.0, ":paused": request.paused, ":reason": reason, ":now": tx.now.as_micros(),
    };
    if tx.execute(PAUSE_SCHEDULE, params)? == 0 {
        return Ok(());
    }
    let event = if request.paused { JournalEvent::SchedulePaused } else { JournalEvent::ScheduleResumed };
    write_down(tx, event, (&request.tenant, &request.name), None, &request.word)
}

fn list_schedules(tx: &Tx<'_>, filter: &ScheduleFilter) -> fault::Result<Vec<ScheduleRecord>> {
    let sight = filter.sight.tenant().map(TenantName::as_str);
    let (tenant, name) = filter.after.as_ref().map_or(("", ""), |(tenant, name)| (tenant.as_str(), name.as_str()));
    let params = named_params! { ":after_tenant": tenant, ":after": name, ":sight": sight, ":limit": filter.limit };
    tx.all(LIST_SCHEDULES, params, |row| read(row, tx.now))
}

fn show_schedule(
    tx: &Tx<'_>,
    tenant: &TenantName,
    name: &ScheduleName,
) -> fault::Result<(ScheduleRecord, Vec<FireRecord>)> {
    let record = found(tx, tenant, name)?;
    let params = named_params! { ":schedule": record.id.0, ":limit": FIRES_KEPT };
    let fires = tx.all(LIST_FIRES, params, |row| {
        let job = job_id(row, 1)?;
        Ok(FireRecord { fire_at: time(row, 0)?, job, state: show::state_of(tx, job)? })
    })?;
    Ok((record, fires))
}

fn due_schedules(tx: &Tx<'_>, limit: u32) -> fault::Result<DueSchedules> {
    let now = tx.now.as_micros();
    let params = named_params! { ":now": now, ":ranked": DUE_RANKED_MAX, ":limit": limit };
    let due = tx.all(DUE_SCHEDULES, params, |row| read(row, tx.now))?;
    let next = tx.one(NEXT_LOOK, named_params! { ":now": now }, |row| time(row, 0))?;
    Ok(DueSchedules { due, next_in: next.map(|at| at.since(tx.now)) })
}

/// Fires one schedule of a batch. A fire that is refused is undone alone; trouble with the store ends the whole batch.
fn fire_one(tx: &Tx<'_>, request: &FireSchedule) -> fault::Result<FireResult> {
    tx.conn().execute_batch("savepoint fire")?;
    match fire_schedule(tx, request).map_err(StoreError::from) {
        Ok(fired) => {
            tx.conn().execute_batch("release fire")?;
            Ok(Ok(fired))
        }
        Err(error) if error.is_passing() => Err(error.into()),
        Err(refused) => {
            tx.conn().execute_batch("rollback to fire; release fire")?;
            Ok(Err(refused))
        }
    }
}

fn fire_schedule(tx: &Tx<'_>, request: &FireSchedule) -> fault::Result<Fired> {
    let FireSchedule { schedule, version, fire_at, job, look_at } = request;
    let params = named_params! {
        ":id": schedule.0,
        ":version": version,
        ":fire_at": fire_at.map(Timestamp::as_micros),
        ":look_at": look_at.as_micros(),
        ":now": tx.now.as_micros(),
    };
    let moved = tx.one(MOVE_SCHEDULE, params, |row| Ok((read_template(row)?, word::<TenantName>(row, 8)?)))?;
    let Some(fire_at) = *fire_at else { return Ok(if moved.is_some() { Fired::Passed } else { Fired::Lost }) };
    let fire = named_params! { ":schedule": schedule.0, ":fire_at": fire_at.as_micros(), ":job": blob(job) };
    let Some((template, tenant)) = moved else {
        // This very request may have come through before, and its reply was lost.
        let stored = tx.one(HAS_FIRE, fire, |_| Ok(()))?.is_some();
        return Ok(if stored { Fired::Stored(*job) } else { Fired::Lost });
    };
    if tx.execute(ADD_FIRE, fire)? == 0 {
        return Ok(Fired::Lost);
    }
    let new = template.job(*job, tenant, fire_at);
    new.check(tx.now)?;
    if !matches!(enqueue::enqueue_jobs(tx, &[new])?.as_slice(), [tenure_store::enqueue::Enqueued::Created(_)]) {
        return Err(StoreError::from(job.in_use()).into());
    }
    tx.execute(PRUNE_FIRES, named_params! { ":schedule": schedule.0, ":kept": FIRES_KEPT })?;
    Ok(Fired::Stored(*job))
}

fn find(tx: &Tx<'_>, tenant: &TenantName, name: &ScheduleName) -> fault::Result<Option<ScheduleRecord>> {
    let params = named_params! { ":tenant": tenant.as_str(), ":name": name.as_str() };
    tx.one(FIND_SCHEDULE, params, |row| read(row, tx.now))
}

fn found(tx: &Tx<'_>, tenant: &TenantName, name: &ScheduleName) -> fault::Result<ScheduleRecord> {
    find(tx, tenant, name)?.ok_or_else(|| StoreError::NotFound(format!("schedule {name}")).into())
}

fn read(row: &Row<'_>, now: Timestamp) -> fault::Result<ScheduleRecord> {
    let missed = if row.get(14)? { Missed::Once } else { Missed::Skip };
    let grace = Duration::from_millis(number::<i64, u64>(row, 15, "schedule.grace_ms")?);
    let timing = |cron: &str, zone: &str| -> Result<Timing, Invalid> {
        Ok(Timing { cron: cron.parse()?, zone: zone.parse()?, missed, grace })
    };
    Ok(ScheduleRecord {
        id: ScheduleId(row.get(9)?),
        version: row.get(10)?,
        tenant: word(row, 8)?,
        name: word(row, 11)?,
        timing: timing(text(row, 12)?, text(row, 13)?),
        template: read_template(row)?,
        paused: row.get(16)?,
        pause_reason: row.get(17)?,
        last: time(row, 18)?,
        now,
    })
}

fn read_template(row: &Row<'_>) -> fault::Result<Template> {
    Ok(Template {
        queue: word(row, 0)?,
        kind: word(row, 1)?,
        payload: Json::from_store(text(row, 2)?),
        priority: priority(row, 3)?,
        gate: optional_word(row, 4)?,
        rules: RulesReader::default().read(row, 5, 6, 7)?,
    })
}

fn write_down(
    tx: &Tx<'_>,
    event: JournalEvent,
    (tenant, name): (&TenantName, &ScheduleName),
    timing: Option<&Timing>,
    word: &Word,
) -> fault::Result<()> {
    let (tenant, name) = (quote(tenant.as_str()), quote(name.as_str()));
    let timing = timing.map_or_else(String::new, |timing| {
        format!(",\"cron\":{},\"zone\":{}", quote(&timing.cron.to_string()), quote(timing.zone.name()))
    });
    let details = format!("{{\"tenant\":{tenant},\"schedule\":{name}{timing}}}");
    journal::add_json(tx, &Entry { details: Some(details), ..Entry::said(event, word) }, "[]")
}
