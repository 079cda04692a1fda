//! The rows of the model, and the one step that changes a job.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::failure::lease_lost;
use tenure_core::gate::{GateEvent, GateRule, Pattern};
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::key::SecretHash;
use tenure_core::name::{GateName, QueueName, TenantName, WorkerName};
use tenure_core::seal::Seal;
use tenure_core::unique::Policy;
use tenure_core::{
    Effect, EndpointId, Event, How, Job, JobId, Json, KeyId, KindName, LeaseNo, Line, NewJob, Part, PartitionName,
    Refused, RunId, State, Timestamp, WorkerId, apply,
};
use tenure_store::StoreError;
use tenure_store::access::{KeyRecord, RemoteToken, SessionRecord};
use tenure_store::cache::Cached;
use tenure_store::lease::EndJob;
use tenure_store::operate::{LEASE_TTL_DEFAULT, Word};
use tenure_store::operation::OperationRecord;
use tenure_store::record::{AttemptRecord, Sight};
use tenure_store::rollup::{Figures, Step};
use tenure_store::usage::{USAGE_NAME_CHARS_MAX, day_of};
use tenure_store::webhook::{Cursor, EndpointRecord};
use tenure_store::worker::WorkerRecord;

use super::gates::GateRow;
use super::rollups::RollupKey;
use super::run_steps as runs;
use super::runs::{PartitionRow, RunRow, Said};
use super::schedules::{ScheduleKey, ScheduleRow};
use super::webhooks::Delivery;

/// Everything the model holds.
#[derive(Clone, Default)]
pub(super) struct Tables {
    pub(super) jobs: BTreeMap<JobId, Row>,
    pub(super) leases: BTreeMap<LeaseNo, Lease>,
    pub(super) keys: BTreeMap<KeyName, Key>,
    pub(super) queues: BTreeMap<QueueName, Queue>,
    /// In the order they came; a tenant's place is its number.
    pub(super) tenants: Vec<TenantName>,
    pub(super) tenant_quotas: BTreeMap<TenantName, u32>,
    pub(super) api_keys: BTreeMap<KeyId, KeyRecord>,
    pub(super) remotes: BTreeMap<WorkerId, RemoteToken>,
    pub(super) sessions: BTreeMap<SecretHash, SessionRecord>,
    pub(super) endpoints: BTreeMap<EndpointId, EndpointRecord>,
    pub(super) deliveries: BTreeMap<JobId, Delivery>,
    pub(super) operations: BTreeMap<JobId, OperationRecord>,
    /// Sums by step, its first moment, tenant, queue and kind.
    pub(super) rollups: BTreeMap<RollupKey, Figures>,
    /// How jobs of gates ended, and how many of them badly, by step, its first moment, tenant and gate.
    pub(super) gate_rollups: BTreeMap<(Step, Timestamp, TenantName, GateName), (u64, u64)>,
    /// The last row of the journal that is summed.
    pub(super) rolled_up: i64,
    /// How far the journal is told.
    pub(super) cursor: Option<Cursor>,
    pub(super) rules: BTreeMap<Pattern, GateRule>,
    pub(super) gates: BTreeMap<GateName, GateRow>,
    pub(super) schedules: BTreeMap<ScheduleKey, ScheduleRow>,
    pub(super) last_schedule: i64,
    pub(super) runs: BTreeMap<RunId, RunRow>,
    pub(super) partitions: BTreeMap<(RunId, PartitionName), PartitionRow>,
    pub(super) run_events: Vec<Said>,
    /// Answers by key, and when each was put there.
    pub(super) cache: BTreeMap<String, (Timestamp, Cached)>,
    /// What was used: day, tenant, kind and name; how much, and by how many attempts.
    pub(super) usage: BTreeMap<(Timestamp, TenantName, KindName, String), (f64, u64)>,
    pub(super) workers: Vec<WorkerRecord>,
    pub(super) journal: Vec<JournalRow>,
    /// Each seal with the id of its last row.
    pub(super) seals: Vec<(Seal, i64)>,
    pub(super) last_lease: i64,
}

/// A job: what its producer asked, where it stands, how its attempts ended.
#[derive(Clone)]
pub(super) struct Row {
    pub(super) asked: NewJob,
    /// Where it waits inside its queue.
    pub(super) line: Line,
    /// What it is of a run.
    pub(super) part: Option<Part>,
    pub(super) created_at: Timestamp,
    pub(super) job: Job,
    pub(super) attempts: Vec<Attempt>,
}

/// One ended attempt.
#[derive(Clone)]
pub(super) struct Attempt {
    pub(super) record: AttemptRecord,
    /// Whose grant it was, if it was one.
    pub(super) holder: Option<WorkerId>,
    /// Cleared when the job is requeued.
    pub(super) is_final: bool,
}

/// What was claimed together.
#[derive(Clone)]
pub(super) struct Lease {
    pub(super) worker: WorkerId,
    pub(super) claimed_at: Timestamp,
    pub(super) renewed_at: Option<Timestamp>,
    pub(super) expires_at: Timestamp,
    pub(super) jobs: Vec<JobId>,
}

/// Tenant, scope, key.
pub(super) type KeyName = (TenantName, String, String);

/// Who holds a unique key.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) job: JobId,
    pub(super) policy: Policy,
    pub(super) expires_at: Option<Timestamp>,
}

/// Settings of a queue.
#[derive(Clone)]
pub(super) struct Queue {
    pub(super) paused: bool,
    pub(super) lease_ttl: Duration,
    pub(super) fair: bool,
    pub(super) quota: Option<u32>,
}

impl Default for Queue {
    fn default() -> Self {
        Self { paused: false, lease_ttl: LEASE_TTL_DEFAULT, fair: false, quota: None }
    }
}

impl Row {
    pub(super) fn visible(&self, sight: &Sight) -> bool {
        match sight {
            Sight::All => true,
            Sight::Tenant(tenant) => *tenant == self.asked.tenant,
        }
    }

    pub(super) fn key_name(&self) -> Option<KeyName> {
        key_name(&self.asked)
    }

    pub(super) fn ended_under(&self, lease: LeaseNo) -> Option<How> {
        self.attempts.iter().find(|attempt| attempt.record.lease == lease).map(|attempt| attempt.record.how)
    }

    pub(super) fn final_attempt(&self) -> Option<&AttemptRecord> {
        self.attempts.iter().find(|attempt| attempt.is_final).map(|attempt| &attempt.record)
    }
}

pub(super) fn key_name(asked: &NewJob) -> Option<KeyName> {
    let unique = asked.unique.as_ref()?;
    let scope = unique.scope.clone().unwrap_or_else(|| asked.kind.to_string());
    Some((asked.tenant.clone(), scope, unique.key.clone()))
}

impl Tables {
    /// The number of a tenant, which is made known.
    pub(super) fn tenant_no(&mut self, tenant: &TenantName) -> i64 {
        let at = self.tenants.iter().position(|known| known == tenant).unwrap_or_else(|| {
            self.tenants.push(tenant.clone());
            self.tenants.len() - 1
        });
        at as i64 + 1
    }

    /// How many jobs are stored in a queue and not yet claimed: of a tenant, as its lines tell, or of all.
    pub(super) fn pending(&self, queue: &QueueName, tenant: Option<&str>) -> usize {
        let waits = |row: &&Row| matches!(row.job.state, State::Waiting | State::Queued | State::Retryable);
        let of = |row: &&Row| row.asked.queue == *queue && tenant.is_none_or(|tenant| row.line.tenant() == tenant);
        self.jobs.values().filter(waits).filter(of).count()
    }

    /// The job, or the answer that there is none in sight.
    pub(super) fn seen(&self, sight: &Sight, job: JobId) -> Result<&Row, StoreError> {
        let row = self.jobs.get(&job).filter(|row| row.visible(sight));
        row.ok_or_else(|| StoreError::NotFound(format!("job {job}")))
    }

    /// The last fence that was drawn.
    pub(super) fn newest_lease(&self) -> LeaseNo {
        LeaseNo(self.last_lease)
    }

    /// The next fence.
    pub(super) fn next_lease(&mut self) -> LeaseNo {
        self.last_lease += 1;
        LeaseNo(self.last_lease)
    }

    /// Lets core decide and writes what it says; answers how an attempt ended under which number, if one did.
    pub(super) fn step(
        &mut self,
        id: JobId,
        event: &Event,
        now: Timestamp,
        end: Option<&EndJob>,
    ) -> Result<Option<(How, LeaseNo)>, Refused> {
        let Some(row) = self.jobs.get(&id).cloned() else { return Err(Refused::LeaseLost) };
        let applied = apply(&row.job, event, now)?;
        let mut ended = None;
        for effect in &applied.effects {
            match *effect {
                Effect::EndAttempt(how) => {
                    let is_lost = matches!(event, Event::Lose { .. });
                    ended = Some((how, self.end_attempt(id, &row.job, how, now, (end, is_lost))));
                }
                Effect::ReopenAttempt => {
                    self.attempts(id).for_each(|attempt| attempt.is_final = false);
                    if let Some(code) = runs::revived(row.job.state) {
                        runs::tell(self, id, code, None, now);
                    }
                }
                // Where a job waits and whether its end was asked for is part of the job itself here.
                Effect::RemoveReady | Effect::PutReady | Effect::RequestCancel | Effect::ForgetCancelRequest => {}
            }
        }
        if let Some(row) = self.jobs.get_mut(&id) {
            row.job = applied.job;
        }
        Ok(ended)
    }

    fn attempts(&mut self, id: JobId) -> impl Iterator<Item = &mut Attempt> {
        self.jobs.get_mut(&id).into_iter().flat_map(|row| row.attempts.iter_mut())
    }

    /// Ends an attempt, by a report or because its lease expired.
    fn end_attempt(
        &mut self,
        id: JobId,
        job: &Job,
        how: How,
        now: Timestamp,
        (end, is_lost): (Option<&EndJob>, bool),
    ) -> LeaseNo {
        let number = match job.lease {
            Some(lease) => lease,
            None => self.next_lease(),
        };
        let lease = job.lease.and_then(|lease| self.leases.get(&lease));
        let holder = lease.map(|lease| lease.worker);
        let (error, result, usage) = end.map_or((None, None, None), |end| end.ending.details());
        let worker = lease.and_then(|lease| self.worker_name(lease.worker)).map(|name| name.to_string());
        let lost = is_lost.then(|| lease_lost(number, worker.as_deref().unwrap_or_default()));
        let record = AttemptRecord {
            lease: number,
            attempt: job.attempt,
            how,
            worker,
            started_at: lease.map(|lease| lease.claimed_at),
            ended_at: now,
            error: error.cloned().or(lost),
            result: result.cloned(),
            usage: usage.cloned(),
        };
        let gate = self.jobs.get(&id).and_then(|row| row.asked.gate.as_ref());
        if let Some(row) = gate.filter(|_| job.lease.is_some()).and_then(|gate| self.gates.get_mut(gate)) {
            let (health, hold_until) =
                (end.and_then(EndJob::health), end.and_then(EndJob::hold).map(|hold| now.plus(hold)));
            row.events.push(GateEvent { lease: number, at: now, health, hold_until });
        }
        if how.is_final() {
            runs::tell(self, id, how.code(), record.error.as_ref(), now);
        }
        if let Some(usage) = &record.usage {
            self.add_usage(id, usage, now);
        }
        if let Some(row) = self.jobs.get_mut(&id) {
            row.attempts.push(Attempt { record, holder, is_final: how.is_final() });
        }
        number
    }

    /// Adds up the numbers of a usage record; whatever else is in it is kept with its attempt only.
    fn add_usage(&mut self, id: JobId, usage: &Json, now: Timestamp) {
        let Some(asked) = self.jobs.get(&id).map(|row| &row.asked) else { return };
        let (tenant, kind) = (asked.tenant.clone(), asked.kind.clone());
        let used: serde_json::Value = serde_json::from_str(usage.as_str()).unwrap_or_default();
        for (name, value) in used.as_object().into_iter().flatten() {
            let Some(amount) = value.as_f64() else { continue };
            let name: String = name.chars().take(USAGE_NAME_CHARS_MAX).collect();
            let total = self.usage.entry((day_of(now), tenant.clone(), kind.clone(), name)).or_default();
            *total = (total.0 + amount, total.1 + 1);
        }
    }

    pub(super) fn worker_name(&self, worker: WorkerId) -> Option<&WorkerName> {
        usize::try_from(worker.0 - 1).ok().and_then(|at| self.workers.get(at)).map(|worker| &worker.name)
    }

    /// Jobs of a lease that have not ended under it.
    pub(super) fn held(&self, no: LeaseNo) -> Vec<JobId> {
        let listed = self.leases.get(&no).map_or(&[][..], |lease| &lease.jobs);
        let open = |id: &&JobId| self.jobs.get(id).is_some_and(|row| row.ended_under(no).is_none());
        listed.iter().filter(open).copied().collect()
    }

    /// One row of the journal.
    pub(super) fn write(
        &mut self,
        at: Timestamp,
        worker: Option<WorkerId>,
        event: JournalEvent,
        lease: Option<LeaseNo>,
        jobs: Vec<JobId>,
        word: &Word,
    ) {
        let id = self.journal.len() as i64 + 1;
        let (actor, reason) = (word.actor.clone(), word.reason.clone());
        self.journal.push(JournalRow { id, at, worker, actor, event, lease, jobs, reason, details: None });
    }

    /// What the last row of the journal is about.
    pub(super) fn naming(&mut self, names: &[(&str, &str)]) {
        if let Some(row) = self.journal.last_mut() {
            let details: serde_json::Map<_, _> =
                names.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
            row.details = Some(Json::from_store(serde_json::Value::from(details).to_string()));
        }
    }

    /// Rows for attempts that ended in one verb: one for each way and lease.
    pub(super) fn write_endings(
        &mut self,
        at: Timestamp,
        worker: Option<WorkerId>,
        ended: &[(JobId, How, LeaseNo)],
        word: &Word,
    ) {
        let mut groups: BTreeMap<(How, LeaseNo), Vec<JobId>> = BTreeMap::new();
        for (job, how, lease) in ended {
            groups.entry((*how, *lease)).or_default().push(*job);
        }
        for ((how, lease), jobs) in groups {
            self.write(at, worker, JournalEvent::Ended(how), Some(lease), jobs, word);
        }
    }

    /// Rows for reports that came too late: one for each way of ending that was reported. A job that is not there is not
    /// written down, or whoever invents ids could fill the record.
    pub(super) fn write_refused(&mut self, at: Timestamp, worker: WorkerId, lease: LeaseNo, late: &[(JobId, How)]) {
        let mut groups: BTreeMap<How, Vec<JobId>> = BTreeMap::new();
        for (job, how) in late.iter().filter(|(job, _)| self.jobs.contains_key(job)) {
            groups.entry(*how).or_default().push(*job);
        }
        for (how, jobs) in groups {
            self.write(at, Some(worker), JournalEvent::Refused, Some(lease), jobs, &Word::default());
            if let Some(row) = self.journal.last_mut() {
                row.details = Some(Json::from_store(format!("{{\"reported\":\"{}\"}}", how.as_str())));
            }
        }
    }

    /// Due jobs of a queue, most urgent first.
    pub(super) fn due(&self, queue: &QueueName, now: Timestamp) -> Vec<JobId> {
        let mut due: Vec<_> = self
            .jobs
            .iter()
            .filter(|(_, row)| row.asked.queue == *queue && row.job.run_at <= now)
            .filter(|(_, row)| matches!(row.job.state, State::Queued | State::Retryable))
            .map(|(id, row)| (row.asked.priority, row.job.run_at, *id))
            .collect();
        due.sort_unstable();
        due.into_iter().map(|(_, _, id)| id).collect()
    }
}
