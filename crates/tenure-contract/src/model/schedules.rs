//! Schedules: bookkeeping around what `tenure_store::schedule` decides.

use std::collections::BTreeMap;

use async_trait::async_trait;
use tenure_core::cron::Timing;
use tenure_core::journal::JournalEvent;
use tenure_core::name::{ScheduleName, TenantName};
use tenure_core::{JobId, Timestamp};
use tenure_store::enqueue::Enqueued;
use tenure_store::record::Sight;
use tenure_store::schedule::{
    DUE_RANKED_MAX, DueSchedules, FIRES_KEPT, FireRecord, FireResult, FireSchedule, Fired, PauseSchedule,
    RemoveSchedule, SCHEDULES_MAX, ScheduleFilter, ScheduleId, ScheduleRecord, ScheduleSet, SetSchedule, Template,
};
use tenure_store::{ScheduleStore, StoreError};

use super::ModelStore;
use super::jobs::Room;
use super::mutant::Mutant;
use super::tables::Tables;

/// Tenant and name.
pub(super) type ScheduleKey = (TenantName, ScheduleName);

/// A schedule and the fires it had.
#[derive(Clone)]
pub(super) struct ScheduleRow {
    id: ScheduleId,
    version: i64,
    timing: Timing,
    template: Template,
    paused: bool,
    pause_reason: Option<String>,
    last: Timestamp,
    look_at: Timestamp,
    fires: BTreeMap<Timestamp, JobId>,
}

#[async_trait]
impl ScheduleStore for ModelStore {
    async fn set_schedule(&self, request: SetSchedule) -> Result<ScheduleSet, StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            let refusal = request.beyond_limit();
            let SetSchedule { tenant, name, timing, template, word } = request;
            let key = (tenant, name);
            let set = match tables.schedules.get_mut(&key) {
                Some(row) if row.timing == timing && row.template == template => return Ok(ScheduleSet::Same),
                Some(row) => {
                    if row.timing != timing {
                        (row.last, row.look_at) = (now, now);
                    }
                    (row.timing, row.template, row.version) = (timing, template, row.version + 1);
                    ScheduleSet::Changed
                }
                None => {
                    let others = tables.schedules.keys().filter(|(tenant, _)| *tenant == key.0).count();
                    if others >= SCHEDULES_MAX as usize {
                        return Err(refusal);
                    }
                    tables.last_schedule += 1;
                    let row = ScheduleRow {
                        id: ScheduleId(tables.last_schedule),
                        version: 1,
                        timing,
                        template,
                        paused: false,
                        pause_reason: None,
                        last: now,
                        look_at: now,
                        fires: BTreeMap::new(),
                    };
                    tables.schedules.insert(key.clone(), row);
                    ScheduleSet::Created
                }
            };
            tables.write(now, None, JournalEvent::ScheduleSet, None, Vec::new(), &word);
            tables.naming(&[("tenant", key.0.as_str()), ("schedule", key.1.as_str())]);
            Ok(set)
        })
    }

    async fn remove_schedule(&self, request: RemoveSchedule) -> Result<(), StoreError> {
        request.word.check()?;
        self.transact(|tables, now| {
            let gone = tables.schedules.remove(&(request.tenant.clone(), request.name.clone()));
            gone.ok_or_else(|| unknown(&request.name))?;
            tables.write(now, None, JournalEvent::ScheduleRemoved, None, Vec::new(), &request.word);
            tables.naming(&[("tenant", request.tenant.as_str()), ("schedule", request.name.as_str())]);
            Ok(())
        })
    }

    async fn pause_schedule(&self, request: PauseSchedule) -> Result<(), StoreError> {
        request.word.check()?;
        self.transact(|tables, now| {
            let row = tables.schedules.get_mut(&(request.tenant.clone(), request.name.clone()));
            let row = row.ok_or_else(|| unknown(&request.name))?;
            if row.paused == request.paused {
                return Ok(());
            }
            (row.paused, row.version) = (request.paused, row.version + 1);
            row.pause_reason = request.word.reason.clone().filter(|_| request.paused);
            let event = if request.paused {
                JournalEvent::SchedulePaused
            } else {
                (row.last, row.look_at) = (now, now);
                JournalEvent::ScheduleResumed
            };
            tables.write(now, None, event, None, Vec::new(), &request.word);
            tables.naming(&[("tenant", request.tenant.as_str()), ("schedule", request.name.as_str())]);
            Ok(())
        })
    }

    async fn list_schedules(&self, filter: &ScheduleFilter) -> Result<Vec<ScheduleRecord>, StoreError> {
        filter.check()?;
        self.look(|tables, now| {
            let wanted = |(key, _): &(&ScheduleKey, &ScheduleRow)| {
                let seen = match &filter.sight {
                    Sight::All => true,
                    Sight::Tenant(tenant) => *tenant == key.0,
                };
                seen && filter.after.as_ref().is_none_or(|after| *key > after)
            };
            let rows = tables.schedules.iter().filter(wanted).take(filter.limit as usize);
            Ok(rows.map(|(key, row)| row.record(key, now)).collect())
        })
    }

    async fn show_schedule(
        &self,
        tenant: &TenantName,
        name: &ScheduleName,
    ) -> Result<(ScheduleRecord, Vec<FireRecord>), StoreError> {
        self.look(|tables, now| {
            let key = (tenant.clone(), name.clone());
            let row = tables.schedules.get(&key).ok_or_else(|| unknown(name))?;
            let fires = row.fires.iter().rev().map(|(fire_at, job)| {
                let state = tables.jobs.get(job).map(|row| row.job.state);
                FireRecord { fire_at: *fire_at, job: *job, state }
            });
            Ok((row.record(&key, now), fires.collect()))
        })
    }

    async fn due_schedules(&self, limit: u32) -> Result<DueSchedules, StoreError> {
        DueSchedules::check_limit(limit)?;
        self.look(|tables, now| {
            let mut rows: Vec<_> = tables.schedules.iter().filter(|(_, row)| !row.paused).collect();
            rows.sort_by_key(|(_, row)| (row.look_at, row.id));
            let next = rows.iter().find(|(_, row)| row.look_at > now).map(|(_, row)| row.look_at.since(now));
            let due = rows.into_iter().filter(|(_, row)| row.look_at <= now).take(DUE_RANKED_MAX as usize);
            let mut ranks: BTreeMap<&TenantName, u32> = BTreeMap::new();
            let mut ranked: Vec<_> = due
                .map(|(key, row)| {
                    let rank = ranks.entry(&key.0).or_default();
                    *rank += 1;
                    (*rank, key, row)
                })
                .collect();
            if !self.has(Mutant::TenantsNotInTurn) {
                ranked.sort_by_key(|(rank, _, row)| (*rank, row.look_at, row.id));
            }
            let page = ranked.into_iter().take(limit as usize);
            Ok(DueSchedules { due: page.map(|(_, key, row)| row.record(key, now)).collect(), next_in: next })
        })
    }

    async fn fire_schedules(&self, requests: Vec<FireSchedule>) -> Result<Vec<FireResult>, StoreError> {
        FireSchedule::check_batch(&requests)?;
        let fired = self.transact(|tables, now| {
            let mut answers = Vec::with_capacity(requests.len());
            for request in &requests {
                let mut copy = tables.clone();
                let fired = self.fire(&mut copy, request, now);
                if fired.is_ok() {
                    *tables = copy;
                }
                answers.push(fired);
            }
            Ok(answers)
        })?;
        self.work.notify_one();
        Ok(fired)
    }
}

impl ModelStore {
    fn fire(&self, tables: &mut Tables, request: &FireSchedule, now: Timestamp) -> Result<Fired, StoreError> {
        let FireSchedule { schedule, version, fire_at, job, look_at } = *request;
        let known = tables.schedules.iter_mut().find(|(_, row)| row.id == schedule);
        let Some(((tenant, _), row)) = known else { return Ok(Fired::Lost) };
        let as_read = row.version == version || self.has(Mutant::VersionIgnored);
        if !as_read || row.paused || fire_at.is_some_and(|fire_at| fire_at > now) {
            let before = fire_at.is_some_and(|fire_at| row.fires.get(&fire_at) == Some(&job));
            return Ok(if before { Fired::Stored(job) } else { Fired::Lost });
        }
        (row.version, row.look_at) = (row.version + 1, look_at);
        let Some(fire_at) = fire_at else { return Ok(Fired::Passed) };
        row.last = row.last.max(fire_at);
        if row.fires.contains_key(&fire_at) && !self.has(Mutant::FiredTwice) {
            return Ok(Fired::Lost);
        }
        row.fires.insert(fire_at, job);
        while row.fires.len() > FIRES_KEPT as usize {
            row.fires.pop_first();
        }
        let asked = row.template.job(job, tenant.clone(), fire_at);
        asked.check(now)?;
        match self.enqueue(tables, asked, Room::Needed, now)? {
            Enqueued::Created(job) => Ok(Fired::Stored(job)),
            Enqueued::Found { .. } => Err(job.in_use().into()),
        }
    }
}

impl ScheduleRow {
    fn record(&self, (tenant, name): &ScheduleKey, now: Timestamp) -> ScheduleRecord {
        ScheduleRecord {
            id: self.id,
            version: self.version,
            tenant: tenant.clone(),
            name: name.clone(),
            timing: Ok(self.timing.clone()),
            template: self.template.clone(),
            paused: self.paused,
            pause_reason: self.pause_reason.clone(),
            last: self.last,
            now,
        }
    }
}

fn unknown(name: &ScheduleName) -> StoreError {
    StoreError::NotFound(format!("schedule {name}"))
}
