//! Runs and partitions: bookkeeping around `tenure_core::run`.

use async_trait::async_trait;
use tenure_core::journal::JournalEvent;
use tenure_core::run::{Fan, Moved, Part, Partition, RunEvent, Told};
use tenure_core::{JobId, Json, RunId, RunState, State, Timestamp};
use tenure_store::lease::Ended;
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::run::{
    AddToRun, Added, AdvancePage, CancelRun, FOLD_MAX, FoldedRuns, NewRun, OPEN_RUNS_MAX, OperatePartition, PageFound,
    PartitionAct, PartitionFilter, PartitionRecord, RunCreated, RunFilter, RunRecord, SealRun, check_consolidate,
    check_offset,
};
use tenure_store::user_tx::CompleteJob;
use tenure_store::{RunStore, StoreError};

use super::ModelStore;
use super::run_steps::{
    cancel, free, goes_on, is_refusal, of, record, requeue, say, seen, stop, sweep, take_added, told_of,
};

/// What was said of runs, in order: about which part, by which job.
pub(super) type Said = (Part, Option<JobId>, RunEvent);

/// A run.
#[derive(Clone)]
pub(super) struct RunRow {
    pub(super) record: RunRecord,
    pub(super) sweeping: bool,
    /// Otherwise its deadline is for being sealed only.
    pub(super) deadline_asked: bool,
}

/// A partition.
#[derive(Clone)]
pub(super) struct PartitionRow {
    pub(super) record: PartitionRecord,
    pub(super) finished: bool,
}

impl PartitionRow {
    pub(super) fn heart(&self) -> Partition {
        let PartitionRecord { state, job, last_error, .. } = &self.record;
        let last_error = last_error.as_ref().map(|error| error.as_str().to_owned());
        Partition { state: *state, job: *job, finished: self.finished, last_error }
    }

    pub(super) fn set(&mut self, heart: Partition, now: Timestamp) {
        self.record.state = heart.state;
        self.record.last_error = heart.last_error.map(Json::from_store);
        self.record.moved_at = now;
    }
}

#[async_trait]
impl RunStore for ModelStore {
    async fn create_run(&self, request: NewRun) -> Result<RunCreated, StoreError> {
        self.transact(|tables, now| {
            request.check(now)?;
            if tables.runs.contains_key(&request.id) {
                seen(tables, &Sight::Tenant(request.tenant.clone()), request.id)?;
                return Ok(RunCreated::Before);
            }
            let is_other = |row: &&RunRow| row.record.tenant == request.tenant && row.record.run.state.is_open();
            if tables.runs.values().filter(is_other).count() >= OPEN_RUNS_MAX as usize {
                return Err(request.beyond_limit());
            }
            let record = RunRecord {
                id: request.id,
                tenant: request.tenant.clone(),
                owner: request.owner.clone(),
                source: request.source.clone(),
                run: request.start(),
                consolidate: request.consolidate.as_ref().map(|job| job.id),
                rows: 0,
                created_at: now,
                deadline: request.deadline_at(now),
            };
            let deadline_asked = request.deadline.is_some();
            tables.runs.insert(request.id, RunRow { record, sweeping: false, deadline_asked });
            let added = self.add_members(tables, request.id, request.members, now)?;
            of(tables, request.id)?.record.run.total = added.members;
            say(tables, Part::Item(request.id), None, now, Told::Added(0));
            if let Some(job) = request.consolidate {
                self.add_consolidate(tables, request.id, job, now)?;
            }
            tables.write(now, None, JournalEvent::RunCreated, None, Vec::new(), &Word::default());
            Ok(RunCreated::Now)
        })
    }

    async fn add_to_run(&self, request: AddToRun) -> Result<Added, StoreError> {
        self.transact(|tables, now| {
            let record = seen(tables, &request.sight, request.run)?.record.clone();
            request.members.check(&record.tenant, now)?;
            record.refuse_closed()?;
            let added = self.add_members(tables, request.run, request.members, now)?;
            say(tables, Part::Item(request.run), None, now, Told::Added(added.members));
            Ok(added)
        })
    }

    async fn seal_run(&self, request: SealRun) -> Result<(), StoreError> {
        request.word.check()?;
        self.transact(|tables, now| {
            let record = seen(tables, &request.sight, request.run)?.record.clone();
            if record.was_sealed_by(&request)? {
                return Ok(());
            }
            let added = take_added(tables, request.run);
            let row = of(tables, request.run)?;
            row.record.run.sealed = true;
            row.record.run.total += added;
            row.record.deadline = row.record.deadline.filter(|_| row.deadline_asked);
            if let Some(job) = request.consolidate {
                check_consolidate(&job, &record.tenant, now)?;
                (row.record.run.fan, row.record.consolidate) = (Fan::Waiting, Some(job.id));
                self.add_consolidate(tables, request.run, job, now)?;
            }
            say(tables, Part::Item(request.run), None, now, Told::Added(0));
            tables.write(now, None, JournalEvent::RunSealed, None, Vec::new(), &request.word);
            Ok(())
        })
    }

    async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunRecord>, StoreError> {
        filter.check()?;
        self.look(|tables, _| {
            let wanted = |record: &RunRecord| {
                (filter.sight == Sight::All || filter.sight == Sight::Tenant(record.tenant.clone()))
                    && filter.state.is_none_or(|state| state == record.run.state)
                    && (!filter.open || record.run.state.is_open())
                    && filter.before.is_none_or(|before| record.id < before)
            };
            let records = tables.runs.keys().rev().map(|id| record(tables, *id)).filter(wanted);
            Ok(records.take(filter.limit as usize).collect())
        })
    }

    async fn show_run(&self, sight: &Sight, run: RunId) -> Result<RunRecord, StoreError> {
        self.look(|tables, _| seen(tables, sight, run).map(|row| record(tables, row.record.id)))
    }

    async fn list_partitions(&self, filter: &PartitionFilter) -> Result<Vec<PartitionRecord>, StoreError> {
        filter.check()?;
        self.look(|tables, now| {
            let wanted = |row: &&PartitionRow| {
                let PartitionRecord { run, name, state, moved_at, .. } = &row.record;
                seen(tables, &filter.sight, *run).is_ok()
                    && filter.run.is_none_or(|wanted| wanted == *run)
                    && filter.state.is_none_or(|wanted| wanted == *state)
                    && (!filter.active || state.is_open())
                    && filter.stuck_for.is_none_or(|stuck| state.is_open() && *moved_at <= now.minus(stuck))
                    && filter.after.as_ref().is_none_or(|after| (*run, name) > (after.0, &after.1))
            };
            let rows = tables.partitions.values().filter(wanted).take(filter.limit as usize);
            Ok(rows.map(|row| row.record.clone()).collect())
        })
    }

    async fn cancel_run(&self, request: CancelRun) -> Result<bool, StoreError> {
        request.word.check()?;
        self.transact(|tables, now| {
            let mut run = seen(tables, &request.sight, request.run)?.record.run.clone();
            match run.state {
                RunState::Canceled => return Ok(false),
                RunState::Succeeded => return Err(StoreError::Conflict("it has succeeded".into())),
                RunState::Queued | RunState::Running | RunState::Failed => {}
            }
            (run.state, run.finished_at) = (RunState::Canceled, Some(now));
            stop(tables, request.run, run, now)?;
            tables.write(now, None, JournalEvent::RunCanceled, None, Vec::new(), &request.word);
            Ok(true)
        })
    }

    async fn operate_partition(&self, request: OperatePartition) -> Result<(), StoreError> {
        request.word.check()?;
        let done = self.transact(|tables, now| {
            let record = &seen(tables, &request.sight, request.run)?.record;
            record.refuse_settled()?;
            let mut run = record.run.clone();
            let key = (request.run, request.partition.clone());
            let unknown = || StoreError::NotFound(format!("partition {}", request.partition));
            let found = tables.partitions.get(&key).cloned().ok_or_else(unknown)?;
            let before = found.record.job;
            let state = tables.seen(&Sight::All, before)?.job.state;
            let event = match request.act {
                PartitionAct::Resume => {
                    if !matches!(state, State::Failed | State::Dead | State::Canceled) {
                        return Err(StoreError::Conflict(format!("job {before} is {}", state.as_str())));
                    }
                    requeue(tables, before, &request.word, now)?;
                    let row = tables.partitions.get_mut(&key).ok_or_else(unknown)?;
                    let mut heart = row.heart();
                    if !heart.state.is_open() {
                        run.resume(heart.turn(RunState::Running));
                        row.set(heart, now);
                        of(tables, request.run)?.record.run = run;
                    }
                    JournalEvent::PartitionResumed
                }
                PartitionAct::Reset { offset, job } => {
                    check_offset(offset)?;
                    self.add_page(tables, before, job, &key, offset, now)?;
                    let row = tables.partitions.get_mut(&key).ok_or_else(unknown)?;
                    let record = &mut row.record;
                    (record.next_offset, record.rows, record.job) = (offset, 0, job);
                    (record.state, record.last_error, record.moved_at) = (RunState::Queued, None, now);
                    row.finished = false;
                    if !state.is_terminal() {
                        cancel(tables, before, &request.word, now)?;
                    }
                    run.resume(Moved { from: found.record.state, to: RunState::Queued });
                    of(tables, request.run)?.record.run = run;
                    JournalEvent::PartitionReset
                }
            };
            free(of(tables, request.run)?, now);
            tables.write(now, None, event, None, Vec::new(), &request.word);
            Ok(())
        });
        self.work.notify_one();
        done
    }

    async fn begin_page(&self, job: JobId) -> Result<PageFound, StoreError> {
        self.transact(|tables, now| {
            let part = tables.jobs.get(&job).and_then(|row| row.part.clone());
            let Some(Part::Page { run, partition, offset }) = part else { return Ok(PageFound::Ended) };
            let key = (run, partition);
            let state = tables.partitions.get(&key).map(|row| row.record.state);
            if !state.is_some_and(|state| goes_on(tables, run, state)) {
                return Ok(PageFound::Ended);
            }
            let Some(row) = tables.partitions.get_mut(&key) else { return Ok(PageFound::Ended) };
            let record = &mut row.record;
            if record.job != job || record.next_offset != offset {
                return Ok(PageFound::Elsewhere { expected: record.next_offset });
            }
            let limit = record.limit;
            if record.state == RunState::Queued {
                (record.state, record.moved_at) = (RunState::Running, now);
                record.started_at = record.started_at.or(Some(now));
                say(tables, Part::Item(run), None, now, Told::Started);
            }
            Ok(PageFound::Next { limit })
        })
    }

    async fn advance_page(&self, request: AdvancePage) -> Result<(), StoreError> {
        let done = self.transact(|tables, now| {
            let CompleteJob { worker, lease, job, .. } = request.page;
            let moved = self.move_partition(tables, &request, now);
            match self.end(tables, worker, lease, &request.page.to_end_job(), now) {
                Ended::Before(_) => Ok(()),
                Ended::Now(how) => {
                    moved?;
                    tables.write_endings(now, Some(worker), &[(job, how, lease)], &Word::default());
                    if tables.held(lease).is_empty() {
                        tables.leases.remove(&lease);
                    }
                    Ok(())
                }
                _ => Err(moved.err().filter(is_refusal).unwrap_or(StoreError::LeaseLost(job))),
            }
        });
        self.work.notify_one();
        done
    }

    async fn fold_runs(&self) -> Result<FoldedRuns, StoreError> {
        let folded = self.transact(|tables, now| {
            let mut folded = FoldedRuns::default();
            let heard = self.fold(tables, &mut folded, now)?;
            let overdue = |row: &&RunRow| {
                row.record.run.state.is_open() && row.record.deadline.is_some_and(|deadline| deadline <= now)
            };
            // Not before everything that was said is heard.
            let all_heard = heard < FOLD_MAX as usize;
            let late: Vec<RunId> =
                tables.runs.values().filter(|_| all_heard).filter(overdue).map(|row| row.record.id).collect();
            for id in &late {
                let mut run = of(tables, *id)?.record.run.clone();
                let was = run.state;
                run.expire(now);
                stop(tables, *id, run.clone(), now)?;
                told_of(tables, *id, was, run.state, now)?;
            }
            let sweeping: Vec<RunId> =
                tables.runs.values().filter(|row| row.sweeping).map(|row| row.record.id).collect();
            let mut swept = 0;
            for id in sweeping {
                swept += sweep(tables, id, FOLD_MAX as usize - swept, now)?;
            }
            folded.changes = (heard + late.len() + swept) as u64;
            folded.more = swept > 0 || heard >= FOLD_MAX as usize;
            Ok(folded)
        });
        self.work.notify_one();
        folded
    }
}
