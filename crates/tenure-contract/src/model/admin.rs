//! Queues, workers, pruning, the check of the invariants, wake-ups.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tenure_core::journal::JournalEvent;
use tenure_core::name::{KindName, QueueName, WorkerName};
use tenure_core::{How, JobId, State, Timestamp, WorkerId};
use tenure_store::operate::{PauseQueue, PruneJobs, Quota, SetQueue, Word};
use tenure_store::record::{ENDING_COUNTS_MAX, EndingCount, Migration, QueueRecord, Violation};
use tenure_store::usage::{UsageFilter, UsageTotal, day_of};
use tenure_store::worker::{Beat, Order, OrderWorker, WorkerRecord};
use tenure_store::{AdminStore, Store, StoreError, WakeStore};

use super::ModelStore;
use super::gates::wrong_permits;
use super::mutant::Mutant;
use super::run_steps::is_needed;
use super::tables::{Row, Tables};

/// Enters a start of a worker process.
pub(super) fn register(tables: &mut Tables, name: WorkerName, now: Timestamp) -> Result<WorkerId, StoreError> {
    let next = i32::try_from(tables.workers.len() + 1);
    let id = next.map(WorkerId).map_err(|_| StoreError::Corrupt("too many".into()))?;
    let worker = WorkerRecord { id, name, registered_at: now, beat: None, seen_at: None, order: Order::Work };
    tables.workers.push(worker);
    Ok(id)
}

fn find(tables: &mut Tables, worker: WorkerId) -> Result<&mut WorkerRecord, StoreError> {
    let found = tables.workers.iter_mut().find(|known| known.id == worker);
    found.ok_or_else(|| StoreError::NotFound(format!("worker {worker}")))
}

#[async_trait]
impl AdminStore for ModelStore {
    async fn migrate(&self) -> Result<Vec<Migration>, StoreError> {
        Ok(Vec::new())
    }

    async fn list_migrations(&self) -> Result<Vec<Migration>, StoreError> {
        Ok(vec![Migration { version: 1, name: "model".into(), applied: true }])
    }

    async fn register_worker(&self, name: &WorkerName) -> Result<WorkerId, StoreError> {
        self.transact(|tables, now| register(tables, name.clone(), now))
    }

    async fn beat_worker(&self, beat: Beat) -> Result<Order, StoreError> {
        beat.check()?;
        self.transact(|tables, now| {
            let worker = find(tables, beat.worker)?;
            (worker.beat, worker.seen_at) = (Some(beat), Some(now));
            Ok(worker.order)
        })
    }

    async fn order_worker(&self, request: OrderWorker) -> Result<(), StoreError> {
        request.word.check()?;
        self.transact(|tables, now| {
            let worker = find(tables, request.worker)?;
            if std::mem::replace(&mut worker.order, request.order) != request.order {
                tables.write(now, None, JournalEvent::WorkerOrdered, None, Vec::new(), &request.word);
                tables.naming(&[("worker", &request.worker.to_string())]);
            }
            Ok(())
        })
    }

    async fn list_workers(&self, limit: u32) -> Result<Vec<WorkerRecord>, StoreError> {
        WorkerRecord::check_limit(limit)?;
        self.look(|tables, _| {
            let mut workers = tables.workers.clone();
            // `None` is smaller than any moment: never seen comes last.
            workers.sort_by_key(|worker| std::cmp::Reverse((worker.seen_at, worker.id)));
            workers.truncate(limit as usize);
            Ok(workers)
        })
    }

    async fn show_worker(&self, worker: WorkerId) -> Result<WorkerRecord, StoreError> {
        self.look(|tables, _| {
            let found = tables.workers.iter().find(|known| known.id == worker).cloned();
            found.ok_or_else(|| StoreError::NotFound(format!("worker {worker}")))
        })
    }

    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(self.clock.now())
    }

    async fn separate(&self) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(self.clone()))
    }

    async fn sum_usage(&self, filter: &UsageFilter) -> Result<Vec<UsageTotal>, StoreError> {
        filter.check()?;
        self.look(|tables, _| {
            let (since, mut totals) = (day_of(filter.since), Vec::new());
            for ((day, tenant, kind, name), (amount, attempts)) in &tables.usage {
                let seen = filter.sight.tenant().is_none_or(|own| own == tenant);
                if seen && *day >= since && filter.kind.as_ref().is_none_or(|wanted| wanted == kind) {
                    let (tenant, kind, name) = (tenant.clone(), kind.clone(), name.clone());
                    totals.push(UsageTotal { day: *day, tenant, kind, name, amount: *amount, attempts: *attempts });
                }
            }
            totals.sort_by(|a, b| {
                let key = |it: &UsageTotal| (it.tenant.clone(), it.kind.clone(), it.name.clone());
                b.day.cmp(&a.day).then_with(|| key(a).cmp(&key(b)))
            });
            totals.retain(|total| filter.after.as_ref().is_none_or(|last| total.place().is_behind(last)));
            totals.truncate(filter.limit as usize);
            Ok(totals)
        })
    }

    async fn fold_usage(&self) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn count_endings(&self, within: Duration) -> Result<Vec<EndingCount>, StoreError> {
        EndingCount::check_within(within)?;
        self.look(|tables, now| {
            let mut counts: BTreeMap<(QueueName, KindName, How), u64> = BTreeMap::new();
            for row in tables.jobs.values() {
                let ended = row.attempts.iter().map(|attempt| &attempt.record);
                for attempt in ended.filter(|attempt| attempt.ended_at > now.minus(within)) {
                    let (queue, kind) = (row.asked.queue.clone(), row.asked.kind.clone());
                    *counts.entry((queue, kind, attempt.how)).or_default() += 1;
                }
            }
            let count = |((queue, kind, how), count)| EndingCount { queue, kind, how, count };
            Ok(counts.into_iter().map(count).take(ENDING_COUNTS_MAX as usize).collect())
        })
    }

    async fn has_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
        self.look(|tables, _| Ok(tables.queues.contains_key(queue)))
    }

    async fn list_queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
        self.look(|tables, now| {
            let count = |name: &QueueName, is: &dyn Fn(&Row) -> bool| {
                tables.jobs.values().filter(|row| row.asked.queue == *name && is(row)).count() as u64
            };
            let record = |(name, queue): (&QueueName, &super::tables::Queue)| QueueRecord {
                name: name.clone(),
                paused: queue.paused,
                fair: queue.fair,
                quota: queue.quota,
                lease_ttl: queue.lease_ttl,
                due: tables.due(name, now).len() as u64,
                scheduled: count(name, &|row| is_scheduled(row, now)),
                waiting: count(name, &|row| row.job.state == State::Waiting),
                retryable: count(name, &|row| row.job.state == State::Retryable),
                running: count(name, &|row| row.job.state == State::Running),
                oldest_due: tables.due(name, now).iter().map(|id| tables.jobs[id].job.run_at).min(),
            };
            Ok(tables.queues.iter().map(record).collect())
        })
    }

    async fn set_queue(&self, request: SetQueue) -> Result<(), StoreError> {
        request.check()?;
        self.transact(|tables, _| {
            let queue = tables.queues.entry(request.queue).or_default();
            (queue.lease_ttl, queue.fair) = (request.lease_ttl, request.fair.unwrap_or(queue.fair));
            queue.quota = request.quota.map_or(queue.quota, Quota::pending);
            Ok(())
        })
    }

    async fn pause_queue(&self, request: PauseQueue) -> Result<(), StoreError> {
        request.word.check()?;
        self.transact(|tables, now| {
            let unknown = || StoreError::NotFound(format!("queue {}", request.queue));
            tables.queues.get_mut(&request.queue).ok_or_else(unknown)?.paused = request.paused;
            let event = if request.paused { JournalEvent::QueuePaused } else { JournalEvent::QueueResumed };
            tables.write(now, None, event, None, Vec::new(), &request.word);
            tables.naming(&[("queue", request.queue.as_str())]);
            Ok(())
        })?;
        self.work.notify_one();
        Ok(())
    }

    async fn prune_jobs(&self, request: PruneJobs) -> Result<u64, StoreError> {
        request.check()?;
        self.transact(|tables, now| {
            let ended_by = now.minus(request.older_than);
            let mut old: Vec<(Timestamp, JobId)> = tables
                .jobs
                .values()
                .filter(|row| request.dead_too || row.job.state != State::Dead)
                .filter(|row| !is_needed(tables, row.asked.id))
                .filter(|row| self.has(Mutant::PrunedUnderLease) || !is_named_by_a_lease(tables, row))
                .filter_map(|row| Some((row.final_attempt()?.ended_at, row.asked.id)))
                .filter(|(ended_at, _)| *ended_at <= ended_by)
                .collect();
            old.sort_unstable();
            let jobs: Vec<JobId> = old.into_iter().map(|(_, id)| id).take(request.limit as usize).collect();
            for id in &jobs {
                prune(tables, *id, now);
            }
            let count = jobs.len() as u64;
            if count > 0 {
                tables.write(now, None, JournalEvent::Pruned, None, jobs, &Word::default());
            }
            Ok(count)
        })
    }

    async fn find_violations(&self, limit: u32) -> Result<Vec<Violation>, StoreError> {
        self.look(|tables, _| {
            let of_gates = wrong_permits(tables).map(|(gate, permits, live)| Violation {
                invariant: "G1".into(),
                job: None,
                detail: format!("gate {gate}: {permits} permits, {live} live leases"),
            });
            let found = tables.jobs.values().flat_map(|row| violations(tables, row));
            Ok(found.chain(of_gates).take(limit as usize).collect())
        })
    }
}

#[async_trait]
impl WakeStore for ModelStore {
    async fn push_idle(&self, _queue: &QueueName) -> Result<(), StoreError> {
        Ok(())
    }

    async fn wait_for_work(&self, _queues: &[QueueName]) -> Result<(), StoreError> {
        self.work.notified().await;
        Ok(())
    }
}

fn is_scheduled(row: &Row, now: Timestamp) -> bool {
    match row.job.state {
        State::Waiting => true,
        State::Queued | State::Retryable => row.job.run_at > now,
        State::Running | State::Succeeded | State::Failed | State::Dead | State::Canceled => false,
    }
}

fn is_named_by_a_lease(tables: &Tables, row: &Row) -> bool {
    row.attempts.iter().any(|attempt| tables.leases.contains_key(&attempt.record.lease))
}

/// Deletes a job. Its key stays where the job still has a right to it, and goes where it has let go.
fn prune(tables: &mut Tables, id: JobId, now: Timestamp) {
    tables.deliveries.remove(&id);
    tables.operations.remove(&id);
    let Some(row) = tables.jobs.remove(&id) else { return };
    let Some(name) = row.key_name() else { return };
    let Some(key) = tables.keys.get(&name).filter(|key| key.job == id) else { return };
    if !key.policy.holds(row.job.state, key.expires_at.is_some_and(|at| at <= now)) {
        tables.keys.remove(&name);
    }
}

fn violations(tables: &Tables, row: &Row) -> Vec<Violation> {
    let id = row.asked.id;
    let mut found = Vec::new();
    let mut note = |broken: bool, invariant: &str, detail: &str| {
        if broken {
            found.push(Violation { invariant: invariant.into(), job: Some(id), detail: detail.into() });
        }
    };
    let holding =
        tables.leases.iter().filter(|(no, lease)| lease.jobs.contains(&id) && row.ended_under(**no).is_none());
    let finals = row.attempts.iter().filter(|attempt| attempt.is_final).count();
    let running = row.job.state == State::Running;
    note(holding.count() != usize::from(running), "L1", "a running job is held by one lease, any other by none");
    note(
        finals != usize::from(row.job.state.is_terminal()),
        "A1",
        "an ended job has one final attempt, any other none",
    );
    let mut numbers: Vec<_> = row.attempts.iter().map(|attempt| attempt.record.lease).collect();
    numbers.dedup();
    note(numbers.len() != row.attempts.len(), "A2", "a grant ends once");
    found
}
