//! Producers and operators.

use async_trait::async_trait;
use tenure_core::journal::JournalEvent;
use tenure_core::new_job::Due;
use tenure_core::{Event, Job, JobId, Line, NewJob, Refused, State, Timestamp};
use tenure_store::enqueue::Enqueued;
use tenure_store::operate::{CancelJob, Canceled, HastenJob, OpenJob, RequeueJob};
use tenure_store::record::{JobFilter, JobRecord, JobSummary, JobsFound, SEARCHED_MAX, Sight, check_search};
use tenure_store::{JobStore, StoreError};

use super::ModelStore;
use super::mutant::Mutant;
use super::run_steps::refuse_requeue;
use super::tables::{Key, Queue, Row, Tables, key_name};

#[async_trait]
impl JobStore for ModelStore {
    async fn enqueue_jobs(&self, jobs: Vec<NewJob>) -> Result<Vec<Enqueued>, StoreError> {
        let stored = self.transact(|tables, now| {
            jobs.iter().try_for_each(|job| job.check(now))?;
            jobs.into_iter().map(|job| self.enqueue(tables, job, Room::Needed, now)).collect()
        })?;
        self.work.notify_one();
        Ok(stored)
    }

    async fn show_job(&self, sight: &Sight, job: JobId) -> Result<JobRecord, StoreError> {
        let sight = if self.has(Mutant::SightIgnored) { &Sight::All } else { sight };
        self.look(|tables, _| tables.seen(sight, job).map(|row| record(tables, row)))
    }

    async fn list_jobs(&self, filter: &JobFilter) -> Result<Vec<JobSummary>, StoreError> {
        filter.check()?;
        self.look(|tables, now| {
            let newest_first = tables.jobs.values().rev().filter(|row| matches(tables, row, filter, now));
            Ok(newest_first.take(filter.limit as usize).map(|row| record(tables, row).summary).collect())
        })
    }

    async fn search_jobs(&self, filter: &JobFilter, text: &str) -> Result<JobsFound, StoreError> {
        filter.check()?;
        check_search(text)?;
        self.look(|tables, now| {
            let mut found = JobsFound::default();
            for row in tables.jobs.values().rev().filter(|row| matches(tables, row, filter, now)) {
                if found.looked_at == SEARCHED_MAX || found.jobs.len() == filter.limit as usize {
                    return Ok(found);
                }
                found.looked_at += 1;
                found.next = Some(row.asked.id);
                let payload = row.asked.payload.as_str().to_ascii_lowercase();
                if payload.contains(&text.to_ascii_lowercase()) {
                    found.jobs.push(record(tables, row).summary);
                }
            }
            Ok(JobsFound { next: None, ..found })
        })
    }

    async fn cancel_job(&self, request: CancelJob) -> Result<Canceled, StoreError> {
        request.word.check()?;
        self.transact(|tables, now| {
            let job = tables.seen(&request.sight, request.job)?.job.clone();
            match job.state {
                State::Canceled => return Ok(Canceled::Before),
                State::Running if !request.force && job.cancel_requested => return Ok(Canceled::Requested),
                _ => {}
            }
            let event = Event::Cancel { force: request.force };
            match tables.step(request.job, &event, now, None).map_err(|why| conflict(request.job, why))? {
                Some((how, lease)) => {
                    tables.write_endings(now, None, &[(request.job, how, lease)], &request.word);
                    Ok(Canceled::Now)
                }
                None => {
                    let event = JournalEvent::CancelRequested;
                    tables.write(now, None, event, job.lease, vec![request.job], &request.word);
                    Ok(Canceled::Requested)
                }
            }
        })
    }

    async fn requeue_job(&self, request: RequeueJob) -> Result<(), StoreError> {
        request.word.check()?;
        self.transact(|tables, now| {
            let row = tables.seen(&request.sight, request.job)?;
            if let Some(name) = row.key_name()
                && let Some(key) = tables.keys.get(&name).filter(|key| key.job != request.job)
                && !self.has(Mutant::RequeueIgnoresKey)
            {
                let (job, key, holder) = (request.job, &name.2, key.job);
                return Err(StoreError::Conflict(format!("job {job} lost its unique key {key} to job {holder}")));
            }
            refuse_requeue(tables, request.job)?;
            tables.step(request.job, &Event::Requeue, now, None).map_err(|why| conflict(request.job, why))?;
            tables.write(now, None, JournalEvent::Requeued, None, vec![request.job], &request.word);
            Ok(())
        })?;
        self.work.notify_one();
        Ok(())
    }

    async fn open_job(&self, request: OpenJob) -> Result<(), StoreError> {
        request.word.check()?;
        self.transact(|tables, now| {
            tables.seen(&request.sight, request.job)?;
            tables.step(request.job, &Event::Open, now, None).map_err(|why| conflict(request.job, why))?;
            tables.write(now, None, JournalEvent::Opened, None, vec![request.job], &request.word);
            Ok(())
        })?;
        self.work.notify_one();
        Ok(())
    }

    async fn hasten_job(&self, request: HastenJob) -> Result<bool, StoreError> {
        let HastenJob { sight, job, word } = request;
        word.check()?;
        let is_news = self.transact(|tables, now| {
            let Job { state, run_at, .. } = tables.seen(&sight, job)?.job;
            let event = match state {
                State::Waiting => {
                    tables.step(job, &Event::Open, now, None).map_err(|why| conflict(job, why))?;
                    JournalEvent::Opened
                }
                State::Queued | State::Retryable if run_at <= now => return Ok(false),
                State::Queued | State::Retryable => {
                    if let Some(row) = tables.jobs.get_mut(&job) {
                        row.job.run_at = now;
                    }
                    JournalEvent::Hastened
                }
                state => return Err(StoreError::Conflict(format!("job {job} is {}", state.as_str()))),
            };
            tables.write(now, None, event, None, vec![job], &word);
            Ok(true)
        })?;
        self.work.notify_one();
        Ok(is_news)
    }
}

/// Whether a job may go past the quota of its queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// It may not.
    Needed,
    /// It goes on with what is there already.
    Always,
}

impl ModelStore {
    pub(super) fn enqueue(
        &self,
        tables: &mut Tables,
        asked: NewJob,
        room: Room,
        now: Timestamp,
    ) -> Result<Enqueued, StoreError> {
        let found = |job: JobId, tables: &Tables| {
            Ok(Enqueued::Found { job, state: tables.jobs.get(&job).map(|row| row.job.state) })
        };
        if let Some(row) = tables.jobs.get(&asked.id) {
            return if row.asked.tenant == asked.tenant {
                found(asked.id, tables)
            } else {
                Err(asked.id.in_use().into())
            };
        }
        if let Some(earlier) = tables.jobs.values().find(|row| same_request(&row.asked, &asked)) {
            if !same_body(&earlier.asked, &asked) {
                let (key, id, earlier) = (asked.idempotency_key.unwrap_or_default(), asked.id, earlier.asked.id);
                let text = format!("idempotency key {key} of job {id} belongs to job {earlier} with another body");
                return Err(StoreError::Conflict(text));
            }
            return found(earlier.asked.id, tables);
        }
        if let (Some(name), Some(unique)) = (key_name(&asked), &asked.unique) {
            if let Some(key) = tables.keys.get(&name) {
                let expired = key.expires_at.is_some_and(|at| at <= now);
                let held = match tables.jobs.get(&key.job) {
                    Some(row) => key.policy.holds(row.job.state, expired),
                    None => !expired, // pruned; prune frees the keys that its holder had let go
                };
                if held && !self.has(Mutant::KeyTakenFromHolder) {
                    return found(key.job, tables);
                }
            }
            let expires_at = unique.policy.window().map(|window| now.plus(window));
            tables.keys.insert(name, Key { job: asked.id, policy: unique.policy, expires_at });
        }
        let tenant = tables.tenant_no(&asked.tenant);
        let Queue { fair, quota, .. } = tables.queues.entry(asked.queue.clone()).or_default().clone();
        let line = Line::new(fair.then_some(tenant), asked.gate.as_ref());
        let own = tables.tenant_quotas.get(&asked.tenant).copied().filter(|_| fair);
        if let Some(quota) = own.or(quota)
            && room == Room::Needed
            && tables.pending(&asked.queue, fair.then_some(line.tenant())) >= quota as usize
        {
            return Err(StoreError::full(&asked.queue, fair.then_some(&asked.tenant), quota));
        }
        let job = Job {
            state: if asked.due == Due::WhenOpened { State::Waiting } else { State::Queued },
            attempt: 0,
            losses: 0,
            run_at: asked.run_at(now),
            lease: None,
            cancel_requested: false,
            rules: asked.rules.clone(),
        };
        let id = asked.id;
        tables.jobs.insert(id, Row { asked, line, part: None, created_at: now, job, attempts: Vec::new() });
        Ok(Enqueued::Created(id))
    }
}

fn same_request(earlier: &NewJob, asked: &NewJob) -> bool {
    asked.idempotency_key.is_some()
        && earlier.idempotency_key == asked.idempotency_key
        && earlier.tenant == asked.tenant
}

fn same_body(earlier: &NewJob, asked: &NewJob) -> bool {
    (&earlier.kind, &earlier.queue, &earlier.payload) == (&asked.kind, &asked.queue, &asked.payload)
}

fn conflict(job: JobId, why: Refused) -> StoreError {
    StoreError::Conflict(format!("job {job}: {why}"))
}

fn matches(tables: &Tables, row: &Row, filter: &JobFilter, now: Timestamp) -> bool {
    let lease = row.job.lease.and_then(|no| tables.leases.get(&no));
    let quiet_since = lease.map(|lease| lease.renewed_at.unwrap_or(lease.claimed_at));
    row.visible(&filter.sight)
        && filter.state.is_none_or(|state| state == row.job.state)
        && filter.queue.as_ref().is_none_or(|queue| *queue == row.asked.queue)
        && filter.kind.as_ref().is_none_or(|kind| *kind == row.asked.kind)
        && filter.before.is_none_or(|before| row.asked.id < before)
        && filter.from.is_none_or(|from| row.asked.id >= from)
        && filter.meets(row.created_at)
        && filter.stuck_for.is_none_or(|stuck| quiet_since.is_some_and(|since| now.since(since) >= stuck))
}

fn record(tables: &Tables, row: &Row) -> JobRecord {
    let Row { asked, created_at, job, attempts, .. } = row;
    let lease = job.lease.and_then(|no| tables.leases.get(&no));
    let summary = JobSummary {
        id: asked.id,
        tenant: asked.tenant.clone(),
        queue: asked.queue.clone(),
        kind: asked.kind.clone(),
        priority: asked.priority,
        gate: asked.gate.clone(),
        state: job.state,
        attempt: job.attempt,
        max_attempts: job.rules.max_attempts,
        run_at: job.run_at,
        created_at: *created_at,
        finished_at: row.final_attempt().map(|attempt| attempt.ended_at),
        locked_by: lease.and_then(|lease| tables.worker_name(lease.worker)).map(ToString::to_string),
        error: attempts.last().and_then(|attempt| attempt.record.error.clone()),
    };
    JobRecord {
        summary,
        payload: asked.payload.clone(),
        rules: job.rules.clone(),
        losses: job.losses,
        trace: asked.trace.clone(),
        callback_url: asked.callback_url.clone(),
        part: row.part.clone(),
        lease: job.lease,
        lease_expires_at: lease.map(|lease| lease.expires_at),
        heartbeat_at: lease.map(|lease| lease.renewed_at.unwrap_or(lease.claimed_at)),
        cancel_requested: job.cancel_requested,
        attempts: attempts.iter().map(|attempt| attempt.record.clone()).collect(),
    }
}
