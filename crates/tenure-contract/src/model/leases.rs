//! Workers.

use std::time::Duration;

use async_trait::async_trait;
use tenure_core::backoff::Roll;
use tenure_core::journal::JournalEvent;
use tenure_core::{Class, Event, How, JobId, LeaseNo, State, Timestamp, WorkerId};
use tenure_store::lease::{
    CLAIM_KIB_MAX, ClaimJobs, Claimed, ClaimedJob, EndJob, EndJobs, Ended, Ending, Reclaimed, RenewLeases, Renewed,
    check_listed,
};
use tenure_store::lines::Served;
use tenure_store::operate::Word;
use tenure_store::{LeaseStore, StoreError};

use super::mutant::Mutant;
use super::tables::{Attempt, Lease, Tables};
use super::{ModelStore, gates};

#[async_trait]
impl LeaseStore for ModelStore {
    async fn claim_jobs(&self, request: ClaimJobs) -> Result<Option<Claimed>, StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            let queue = tables.queues.get(&request.queue).cloned().unwrap_or_default();
            let limit = if self.has(Mutant::LimitIgnored) { usize::MAX } else { request.limit as usize };
            let mut due = tables.due(&request.queue, now);
            let urgency = |id: &JobId| request.order().iter().position(|p| *p == tables.jobs[id].asked.priority);
            due.sort_by_key(urgency);
            if queue.paused && !self.has(Mutant::PauseIgnored) {
                return Ok(None);
            }
            let mut parts = Vec::new();
            if due.iter().any(|id| !tables.jobs[id].line.is_only()) && !self.has(Mutant::GateIgnored) {
                let asked = (request.limit, request.worker, now);
                parts = gates::divide(tables, &self.lines, &request.queue, &due, asked);
                due = parts.iter().flat_map(|(_, jobs)| jobs.clone()).collect();
                let served: Vec<Served> = parts.iter().map(|(served, _)| served.clone()).collect();
                self.lines.served(&request.queue, &served);
            }
            due.truncate(limit);
            let mut kib = 0;
            due.retain(|id| {
                let fits = kib < CLAIM_KIB_MAX as usize;
                kib += tables.jobs[id].asked.payload.as_str().len().div_ceil(1 << 10).max(1);
                fits
            });
            let place = |id: &JobId| (tables.jobs[id].asked.priority, tables.jobs[id].job.run_at, *id);
            due.sort_by_key(place);
            if due.is_empty() {
                return Ok(None);
            }
            let lease = if self.has(Mutant::FenceRepeats) { repeated_fence(tables) } else { tables.next_lease() };
            let mut claimed = Claimed { lease, ttl: queue.lease_ttl, jobs: Vec::new(), canceled: Vec::new() };
            let mut doomed = Vec::new();
            for id in due {
                let run_at = tables.jobs[&id].job.run_at;
                match tables.step(id, &Event::Claim { lease }, now, None).map_err(refused)? {
                    Some((how, number)) => doomed.push((id, how, number)),
                    None => claimed.jobs.push(handed_out(tables, id, run_at)),
                }
            }
            let jobs: Vec<JobId> = claimed.jobs.iter().map(|job| job.id).collect();
            for (served, of_line) in parts {
                let taken = of_line.iter().filter(|id| jobs.contains(id)).count();
                gates::take(tables, &served.share.line, taken as u32, lease, now);
            }
            claimed.canceled = doomed.iter().map(|(id, ..)| *id).collect();
            tables.write_endings(now, Some(request.worker), &doomed, &Word::default());
            if !jobs.is_empty() {
                let event = JournalEvent::Claimed;
                tables.write(now, Some(request.worker), event, Some(lease), jobs.clone(), &Word::default());
                let expires_at = now.plus(queue.lease_ttl);
                let row = Lease { worker: request.worker, claimed_at: now, renewed_at: None, expires_at, jobs };
                tables.leases.insert(lease, row);
            }
            Ok(Some(claimed))
        })
    }

    async fn renew_leases(&self, request: RenewLeases) -> Result<Renewed, StoreError> {
        self.transact(|tables, now| {
            let mut renewed = Renewed::default();
            for no in request.leases {
                let Some(lease) = tables.leases.get_mut(&no) else { continue };
                if lease.worker != request.worker && !self.has(Mutant::WorkerIgnored) {
                    continue;
                }
                let ttl = lease.expires_at.since(lease.renewed_at.unwrap_or(lease.claimed_at));
                (lease.renewed_at, lease.expires_at) = (Some(now), now.plus(ttl));
                let asked = |id: &JobId| tables.jobs[id].job.cancel_requested;
                renewed.cancel_requested.extend(tables.held(no).into_iter().filter(asked));
                renewed.leases.push(no);
            }
            Ok(renewed)
        })
    }

    async fn end_jobs(&self, request: EndJobs) -> Result<Vec<Ended>, StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            let mut answers = Vec::new();
            let (mut ended, mut late) = (Vec::new(), Vec::new());
            for end in &request.jobs {
                let answer = self.end(tables, request.worker, request.lease, end, now);
                match answer {
                    Ended::Now(how) => ended.push((end.job, how, request.lease)),
                    Ended::LeaseLost { .. } => late.push((end.job, end.ending.how())),
                    Ended::Before(_) | Ended::Busy => {}
                }
                answers.push(answer);
            }
            // Whoever reports all of a lease at once need not drop it.
            let listed = tables.leases.get(&request.lease).map_or(0, |lease| lease.jobs.len());
            if ended.len() == listed {
                tables.leases.remove(&request.lease);
            }
            if !self.has(Mutant::JournalSkipped) {
                tables.write_endings(now, Some(request.worker), &ended, &Word::default());
            }
            if !self.has(Mutant::RefusalSkipped) {
                tables.write_refused(now, request.worker, request.lease, &late);
            }
            Ok(answers)
        })
    }

    async fn find_cancel_requests(&self, jobs: Vec<JobId>) -> Result<Vec<JobId>, StoreError> {
        self.look(|tables, _| {
            let asked = |job: &JobId| tables.jobs.get(job).is_some_and(|row| row.job.cancel_requested);
            Ok(jobs.into_iter().filter(asked).collect())
        })
    }

    async fn find_endings(
        &self,
        worker: WorkerId,
        lease: LeaseNo,
        jobs: Vec<JobId>,
    ) -> Result<Vec<Option<How>>, StoreError> {
        check_listed(&jobs)?;
        let mine = |attempt: &&Attempt| attempt.holder.is_none_or(|it| it == worker) || self.has(Mutant::WorkerIgnored);
        let under = |attempt: &&Attempt| attempt.record.lease == lease || self.has(Mutant::LeaseIgnored);
        self.look(|tables, _| {
            let attempts = |job| tables.jobs.get(&job).map_or(&[][..], |row| &row.attempts);
            let ending = |job| attempts(job).iter().find(|attempt| under(attempt) && mine(attempt));
            Ok(jobs.into_iter().map(|job| ending(job).map(|attempt| attempt.record.how)).collect())
        })
    }

    async fn drop_leases(&self, worker: WorkerId, leases: Vec<LeaseNo>) -> Result<Vec<LeaseNo>, StoreError> {
        self.transact(|tables, _| {
            let mut dropped = Vec::new();
            for no in leases {
                let mine = tables.leases.get(&no).is_some_and(|lease| lease.worker == worker);
                let empty = tables.held(no).is_empty() || self.has(Mutant::HeldLeaseDropped);
                if (mine || self.has(Mutant::WorkerIgnored)) && empty {
                    tables.leases.remove(&no);
                }
                if !tables.leases.contains_key(&no) {
                    dropped.push(no);
                }
            }
            Ok(dropped)
        })
    }

    async fn find_leases(
        &self,
        worker: WorkerId,
        leases: Vec<LeaseNo>,
    ) -> Result<Vec<(LeaseNo, Duration)>, StoreError> {
        self.look(|tables, _| {
            let mine = |no: LeaseNo| tables.leases.get(&no).filter(|lease| lease.worker == worker);
            let ttl = |lease: &Lease| lease.expires_at.since(lease.renewed_at.unwrap_or(lease.claimed_at));
            Ok(leases.into_iter().filter_map(|no| Some((no, ttl(mine(no)?)))).collect())
        })
    }

    async fn newest_lease(&self) -> Result<LeaseNo, StoreError> {
        self.look(|tables, _| Ok(tables.newest_lease()))
    }

    async fn release_unknown(
        &self,
        worker: WorkerId,
        known: Vec<LeaseNo>,
        newest: LeaseNo,
    ) -> Result<Vec<JobId>, StoreError> {
        self.transact(|tables, now| {
            let mine =
                |(no, lease): &(&LeaseNo, &Lease)| lease.worker == worker && **no <= newest && !known.contains(no);
            let unknown: Vec<LeaseNo> = tables.leases.iter().filter(mine).map(|(no, _)| *no).collect();
            let mut ended = Vec::new();
            for lease in unknown {
                for id in tables.held(lease) {
                    let event = Event::Release { lease, delay: Duration::ZERO };
                    let step = tables.step(id, &event, now, None).map_err(refused)?;
                    ended.extend(step.map(|(how, lease)| (id, how, lease)));
                }
                tables.leases.remove(&lease);
            }
            tables.write_endings(now, Some(worker), &ended, &Word::default());
            Ok(ended.into_iter().map(|(id, ..)| id).collect())
        })
    }

    async fn reclaim_jobs(&self, by: Option<WorkerId>, leases_max: u32) -> Result<Vec<Reclaimed>, StoreError> {
        self.transact(|tables, now| {
            let over = |lease: &Lease| lease.expires_at < now || self.has(Mutant::ReclaimBeforeExpiry);
            let expired: Vec<LeaseNo> = tables.leases.iter().filter(|(_, l)| over(l)).map(|(no, _)| *no).collect();
            let mut reclaimed = Vec::new();
            for lease in expired.into_iter().take(leases_max as usize) {
                let worker = tables.leases.get(&lease).and_then(|row| tables.worker_name(row.worker)).cloned();
                for job in tables.held(lease) {
                    if let Some((how, lease)) = tables.step(job, &Event::Lose { lease }, now, None).map_err(refused)? {
                        reclaimed.push(Reclaimed { job, lease, worker: worker.clone(), how });
                    }
                }
                tables.leases.remove(&lease);
            }
            let ended: Vec<_> = reclaimed.iter().map(|lost| (lost.job, lost.how, lost.lease)).collect();
            tables.write_endings(now, by, &ended, &Word::default());
            Ok(reclaimed)
        })
    }
}

impl ModelStore {
    /// One report. The key (job, lease) decides: two endings of one grant meet there and one wins.
    pub(super) fn end(
        &self,
        tables: &mut Tables,
        worker: WorkerId,
        lease: LeaseNo,
        end: &EndJob,
        now: Timestamp,
    ) -> Ended {
        let Some(row) = tables.jobs.get_mut(&end.job) else { return Ended::LeaseLost { how: None } };
        let lease = if self.has(Mutant::LeaseIgnored) { row.job.lease.unwrap_or(lease) } else { lease };
        let anyone = self.has(Mutant::WorkerIgnored) || self.has(Mutant::LeaseIgnored);
        let held = |row: &Lease| (row.worker == worker || anyone) && row.jobs.contains(&end.job);
        let held = tables.leases.get(&lease).is_some_and(held);
        let others = |attempt: &Attempt| attempt.record.lease == lease && attempt.holder.is_some_and(|it| it != worker);
        if !anyone && row.attempts.iter().any(others) {
            return Ended::LeaseLost { how: None };
        }
        let before = row.ended_under(lease);
        if held && before.is_some() && self.has(Mutant::EndedTwice) {
            (row.job.state, row.job.lease) = (State::Running, Some(lease));
        } else if let Some(how) = before {
            return match end.ending.is_answered_by(how) && !self.has(Mutant::AnswerForgotten) {
                true => Ended::Before(how),
                false => Ended::LeaseLost { how: Some(how) },
            };
        }
        if self.has(Mutant::CancelForgotten) {
            row.job.cancel_requested = false;
        }
        if !held {
            return Ended::LeaseLost { how: None };
        }
        match tables.step(end.job, &event(&end.ending, lease), now, Some(end)) {
            Ok(Some((how, _))) => Ended::Now(how),
            Ok(None) | Err(_) => Ended::LeaseLost { how: before },
        }
    }
}

/// What core calls a report.
fn event(ending: &Ending, lease: LeaseNo) -> Event {
    let fail = |class| Event::Fail { lease, class, retry_in: Some(ending.delay()), roll: Roll(0) };
    match *ending {
        Ending::Succeeded { .. } => Event::Complete { lease },
        Ending::Retry { .. } => fail(Class::Transient),
        Ending::Failed { .. } => fail(Class::Permanent),
        Ending::Dead { .. } => fail(Class::Dead),
        Ending::Canceled { .. } => Event::Acknowledge { lease },
        Ending::Snoozed { delay } => Event::Snooze { lease, delay },
        Ending::Released { delay } => Event::Release { lease, delay },
    }
}

fn handed_out(tables: &Tables, id: JobId, run_at: Timestamp) -> ClaimedJob {
    let row = &tables.jobs[&id];
    ClaimedJob {
        id,
        tenant: row.asked.tenant.clone(),
        kind: row.asked.kind.clone(),
        payload: row.asked.payload.clone(),
        priority: row.asked.priority,
        attempt: row.job.attempt,
        losses: row.job.losses,
        rules: row.job.rules.clone(),
        trace: row.asked.trace.clone(),
        gate: row.asked.gate.clone(),
        part: row.part.clone(),
        run_at,
        created_at: row.created_at,
    }
}

fn repeated_fence(tables: &Tables) -> LeaseNo {
    LeaseNo(tables.leases.keys().last().map_or(1, |last| last.0 + 1))
}

fn refused(why: tenure_core::Refused) -> StoreError {
    StoreError::Corrupt(format!("the model lists a job that core refuses: {why}"))
}
