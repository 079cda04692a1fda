//! Schedules. When they fire is decided above (`tenure_store::schedule`); `migrations/0011_schedules.sql` moves them on.

use std::time::Duration;

use async_trait::async_trait;
use tenure_core::cron::Timing;
use tenure_core::name::{ScheduleName, TenantName};
use tenure_core::{Backoff, GateName, Invalid, Json, Rules};
use tenure_store::schedule::{
    DUE_RANKED_MAX, DueSchedules, FIRES_KEPT, FireRecord, FireResult, FireSchedule, Fired, PauseSchedule,
    RemoveSchedule, SCHEDULES_MAX, ScheduleFilter, ScheduleId, ScheduleRecord, ScheduleSet, SetSchedule, Template,
};
use tenure_store::{ScheduleStore, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call::Param;
use crate::error::from_code;
use crate::pool::Desk;
use crate::statement::{self, Statement};
use crate::store::PgStore;
use crate::value::{Moment, count, get, job_id, millis, named, priority, state, time};
use crate::wall::Seen;

const PUT_SCHEDULE: Statement = Statement {
    name: "put_schedule",
    sql: "select tenure.put_schedule($1, $2, $3, $4, $5, $6, $7, $8, $9::text::jsonb, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19) as answer",
};
const REMOVE_SCHEDULE: Statement =
    Statement { name: "remove_schedule", sql: "select tenure.remove_schedule($1, $2, $3, $4, $5)" };
const SWITCH_SCHEDULE: Statement =
    Statement { name: "switch_schedule", sql: "select tenure.switch_schedule($1, $2, $3, $4, $5, $6)" };
const FIRE_SCHEDULES: Statement = Statement {
    name: "fire_schedules",
    sql: "select answer, code, message from tenure.fire_schedules($1, $2, $3, $4, $5, $6, $7)",
};

#[async_trait]
impl ScheduleStore for PgStore {
    async fn set_schedule(&self, request: SetSchedule) -> Result<ScheduleSet, StoreError> {
        request.check()?;
        let SetSchedule { tenant, name, timing, template, word } = &request;
        let small = |value: u16| i16::try_from(value).unwrap_or(i16::MAX);
        let (tenant, name, cron, zone) = (tenant.as_str(), name.as_str(), timing.cron.to_string(), timing.zone.name());
        let (missed, grace_ms) = (timing.missed.to_string(), millis(timing.grace));
        let (queue, kind, payload) = (template.queue.as_str(), template.kind.as_str(), template.payload.as_str());
        let (priority, gate) = (i16::from(template.priority.get()), template.gate.as_ref().map(GateName::as_str));
        let Rules { max_attempts, max_losses, backoff } = &template.rules;
        let (max_attempts, max_losses) = (small(*max_attempts), small(*max_losses));
        let backoff = (*backoff != Backoff::default()).then(|| backoff.to_string());
        let (max, refusal, now) = (i64::from(SCHEDULES_MAX), request.beyond_limit().to_string(), self.moment());
        let params: [Param<'_>; 19] = [
            (&tenant, Type::TEXT),
            (&name, Type::TEXT),
            (&cron, Type::TEXT),
            (&zone, Type::TEXT),
            (&missed, Type::TEXT),
            (&grace_ms, Type::INT8),
            (&queue, Type::TEXT),
            (&kind, Type::TEXT),
            (&payload, Type::TEXT),
            (&priority, Type::INT2),
            (&gate, Type::TEXT),
            (&max_attempts, Type::INT2),
            (&max_losses, Type::INT2),
            (&backoff, Type::TEXT),
            (&word.actor, Type::TEXT),
            (&word.reason, Type::TEXT),
            (&now, Type::TIMESTAMPTZ),
            (&max, Type::INT8),
            (&refusal, Type::TEXT),
        ];
        let rows = self.call(Desk::Short, PUT_SCHEDULE, &params).await?;
        match answer(&rows)? {
            "created" => Ok(ScheduleSet::Created),
            "changed" => Ok(ScheduleSet::Changed),
            "same" => Ok(ScheduleSet::Same),
            other => Err(StoreError::Corrupt(format!("put_schedule answered {other}"))),
        }
    }

    async fn remove_schedule(&self, request: RemoveSchedule) -> Result<(), StoreError> {
        request.word.check()?;
        let (name, tenant, now) = (request.name.as_str(), request.tenant.as_str(), self.moment());
        let params: [Param<'_>; 5] = [
            (&name, Type::TEXT),
            (&tenant, Type::TEXT),
            (&request.word.actor, Type::TEXT),
            (&request.word.reason, Type::TEXT),
            (&now, Type::TIMESTAMPTZ),
        ];
        self.call_past(Some(tenant), Seen::Schedule(name), REMOVE_SCHEDULE, &params).await?;
        Ok(())
    }

    async fn pause_schedule(&self, request: PauseSchedule) -> Result<(), StoreError> {
        request.word.check()?;
        let (name, tenant, now) = (request.name.as_str(), request.tenant.as_str(), self.moment());
        let params: [Param<'_>; 6] = [
            (&name, Type::TEXT),
            (&request.paused, Type::BOOL),
            (&request.word.reason, Type::TEXT),
            (&tenant, Type::TEXT),
            (&request.word.actor, Type::TEXT),
            (&now, Type::TIMESTAMPTZ),
        ];
        self.call_past(Some(tenant), Seen::Schedule(name), SWITCH_SCHEDULE, &params).await?;
        Ok(())
    }

    async fn list_schedules(&self, filter: &ScheduleFilter) -> Result<Vec<ScheduleRecord>, StoreError> {
        filter.check()?;
        let rows = self.schedules(filter.sight.tenant(), None, filter.after.as_ref(), filter.limit).await?;
        rows.iter().map(record).collect()
    }

    async fn show_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<(ScheduleRecord, Vec<FireRecord>), StoreError> {
        let rows = self.schedules(Some(tenant), Some(name), None, 1).await?;
        let row = rows.first().ok_or_else(|| StoreError::NotFound(format!("schedule {name}")))?;
        let record = record(row)?;
        let params: [Param<'_>; 2] = [(&record.id.0, Type::INT8), (&i64::from(FIRES_KEPT), Type::INT8)];
        let rows = self.call_within(Some(tenant.as_str()), Desk::Short, statement::LIST_FIRES, &params).await?;
        Ok((record, rows.iter().map(fire).collect::<Result<_, _>>()?))
    }

    async fn due_schedules(&self, limit: u32) -> Result<DueSchedules, StoreError> {
        DueSchedules::check_limit(limit)?;
        let (limit, ranked, now) = (i64::from(limit), i64::from(DUE_RANKED_MAX), self.moment());
        let params: [Param<'_>; 3] = [(&limit, Type::INT8), (&now, Type::TIMESTAMPTZ), (&ranked, Type::INT8)];
        let rows = self.call(Desk::Short, statement::DUE_SCHEDULES, &params).await?;
        let next_us = rows.first().map_or(Ok(None), |row| get::<Option<i64>>(row, "next_us"))?;
        let mut due = Vec::new();
        for row in &rows {
            if get::<Option<i64>>(row, "id")?.is_some() {
                due.push(record(row)?);
            }
        }
        Ok(DueSchedules { due, next_in: next_us.map(|us| Duration::from_micros(u64::try_from(us).unwrap_or(0))) })
    }

    async fn fire_schedules(&self, requests: Vec<FireSchedule>) -> Result<Vec<FireResult>, StoreError> {
        FireSchedule::check_batch(&requests)?;
        if requests.is_empty() {
            return Ok(Vec::new());
        }
        let schedules: Vec<i64> = requests.iter().map(|fire| fire.schedule.0).collect();
        let versions: Vec<i64> = requests.iter().map(|fire| fire.version).collect();
        let fire_ats: Vec<Option<Moment>> = requests.iter().map(|fire| fire.fire_at.map(Moment)).collect();
        let jobs: Vec<Uuid> = requests.iter().map(|fire| *fire.job.as_uuid()).collect();
        let look_ats: Vec<Moment> = requests.iter().map(|fire| Moment(fire.look_at)).collect();
        let (kept, now) = (i64::from(FIRES_KEPT), self.moment());
        let params: [Param<'_>; 7] = [
            (&schedules, Type::INT8_ARRAY),
            (&versions, Type::INT8_ARRAY),
            (&fire_ats, Type::TIMESTAMPTZ_ARRAY),
            (&jobs, Type::UUID_ARRAY),
            (&look_ats, Type::TIMESTAMPTZ_ARRAY),
            (&kept, Type::INT8),
            (&now, Type::TIMESTAMPTZ),
        ];
        let rows = self.call(Desk::Short, FIRE_SCHEDULES, &params).await?;
        if rows.len() != requests.len() {
            let (asked, got) = (requests.len(), rows.len());
            return Err(StoreError::Corrupt(format!("fire_schedules answered {got} of {asked} fires")));
        }
        requests.iter().zip(&rows).map(|(request, row)| fired(request, row)).collect()
    }
}

impl PgStore {
    async fn schedules(
        &self,
        tenant: Option<&TenantName>,
        name: Option<&ScheduleName>,
        after: Option<&(TenantName, ScheduleName)>,
        limit: u32,
    ) -> Result<Vec<Row>, StoreError> {
        let (tenant, name) = (tenant.map(TenantName::as_str), name.map(ScheduleName::as_str));
        let (after_tenant, after) = after.map(|(tenant, name)| (tenant.as_str(), name.as_str())).unzip();
        let (limit, now) = (i64::from(limit), self.moment());
        let params: [Param<'_>; 6] = [
            (&tenant, Type::TEXT),
            (&name, Type::TEXT),
            (&after_tenant, Type::TEXT),
            (&after, Type::TEXT),
            (&limit, Type::INT8),
            (&now, Type::TIMESTAMPTZ),
        ];
        self.call_within(tenant, Desk::Short, statement::LIST_SCHEDULES, &params).await
    }
}

fn answer(rows: &[Row]) -> Result<&str, StoreError> {
    rows.first().map_or(Ok("nothing"), |row| get(row, "answer"))
}

/// What became of one fire of a batch.
fn fired(request: &FireSchedule, row: &Row) -> Result<FireResult, StoreError> {
    match get(row, "answer")? {
        "stored" => Ok(Ok(Fired::Stored(request.job))),
        "passed" => Ok(Ok(Fired::Passed)),
        "lost" => Ok(Ok(Fired::Lost)),
        "refused" => {
            let (code, message): (&str, &str) = (get(row, "code")?, get(row, "message")?);
            let refused = from_code(code, message);
            Ok(Err(refused.unwrap_or_else(|| StoreError::Corrupt(format!("{message} (SQLSTATE {code})")))))
        }
        other => Err(StoreError::Corrupt(format!("fire_schedules answered {other}"))),
    }
}

fn record(row: &Row) -> Result<ScheduleRecord, StoreError> {
    Ok(ScheduleRecord {
        id: ScheduleId(get(row, "id")?),
        version: get(row, "version")?,
        tenant: named(row, "tenant")?,
        name: named(row, "name")?,
        timing: timing(row)?,
        template: template(row)?,
        paused: get(row, "paused")?,
        pause_reason: get(row, "pause_reason")?,
        last: time(row, "last_at")?,
        now: time(row, "now")?,
    })
}

/// A timing that this release may not be able to read.
fn timing(row: &Row) -> Result<Result<Timing, Invalid>, StoreError> {
    let (cron, zone, missed): (&str, &str, &str) = (get(row, "cron")?, get(row, "zone")?, get(row, "missed")?);
    let grace = Duration::from_millis(u64::try_from(get::<i64>(row, "grace_ms")?).unwrap_or(0));
    let read = || Ok(Timing { cron: cron.parse()?, zone: zone.parse()?, missed: missed.parse()?, grace });
    Ok(read())
}

fn template(row: &Row) -> Result<Template, StoreError> {
    let corrupt = |refused: Invalid| StoreError::Corrupt(refused.to_string());
    let gate = get::<Option<&str>>(row, "gate")?.map(str::parse).transpose().map_err(corrupt)?;
    let backoff = get::<Option<&str>>(row, "backoff")?.map(str::parse).transpose().map_err(corrupt)?;
    let rules = Rules {
        max_attempts: count(row, "max_attempts")?,
        max_losses: count(row, "max_losses")?,
        backoff: backoff.unwrap_or_default(),
    };
    Ok(Template {
        queue: named(row, "queue")?,
        kind: named(row, "kind")?,
        payload: Json::from_store(get::<String>(row, "payload")?),
        priority: priority(row, "priority")?,
        gate,
        rules,
    })
}

fn fire(row: &Row) -> Result<FireRecord, StoreError> {
    let state = get::<Option<&str>>(row, "state")?.map(state).transpose()?;
    Ok(FireRecord { fire_at: time(row, "fire_at")?, job: job_id(row, "job")?, state })
}
