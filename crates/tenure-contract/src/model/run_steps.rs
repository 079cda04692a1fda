//! What the verbs of runs do to the tables: members come, sentences are said and folded, jobs follow.

use std::collections::BTreeMap;

use tenure_core::journal::JournalEvent;
use tenure_core::new_job::Due;
use tenure_core::run::{Act, Part, Run, RunEvent, Told};
use tenure_core::{
    Event, How, Invalid, JobId, Json, LeaseNo, NewJob, PartitionName, RunId, RunState, State, Timestamp,
};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::run::{
    Added, AdvancePage, FOLD_MAX, FoldedRuns, Members, OPEN_DEADLINE, PartitionRecord, RunRecord, check_offset,
};

use super::ModelStore;
use super::jobs::Room;
use super::mutant::Mutant;
use super::runs::{PartitionRow, RunRow, Said};
use super::tables::Tables;

impl ModelStore {
    pub(super) fn add_members(
        &self,
        tables: &mut Tables,
        run: RunId,
        members: Members,
        now: Timestamp,
    ) -> Result<Added, StoreError> {
        let mut added = Added::default();
        for new in members.partitions {
            let (name, offset, job) = (new.name, new.offset, new.job.id);
            let part = Part::Page { run, partition: name.clone(), offset };
            if tables.partitions.contains_key(&(run, name.clone()))
                || !self.add_part(tables, new.job, part, Room::Needed, now)?
            {
                added.found += 1;
                continue;
            }
            let record = PartitionRecord {
                run,
                name: name.clone(),
                state: RunState::Queued,
                next_offset: offset,
                limit: new.limit,
                rows: 0,
                expected: new.expected,
                job,
                last_error: None,
                created_at: now,
                started_at: None,
                moved_at: now,
            };
            tables.partitions.insert((run, name), PartitionRow { record, finished: false });
            added.members += 1;
        }
        for job in members.items {
            match self.add_part(tables, job, Part::Item(run), Room::Needed, now)? {
                true => added.members += 1,
                false => added.found += 1,
            }
        }
        Ok(added)
    }

    pub(super) fn add_consolidate(
        &self,
        tables: &mut Tables,
        run: RunId,
        job: NewJob,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let waiting = NewJob { due: Due::WhenOpened, ..job };
        match self.add_part(tables, waiting, Part::Consolidate(run), Room::Always, now)? {
            true => Ok(()),
            false => Err(StoreError::Conflict("a consolidate is new".into())),
        }
    }

    fn add_part(
        &self,
        tables: &mut Tables,
        job: NewJob,
        part: Part,
        room: Room,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let Enqueued::Created(id) = self.enqueue(tables, job, room, now)? else { return Ok(false) };
        if let Some(row) = tables.jobs.get_mut(&id) {
            row.part = Some(part);
        }
        Ok(true)
    }

    pub(super) fn add_page(
        &self,
        tables: &mut Tables,
        after: JobId,
        job: JobId,
        (run, partition): &(RunId, PartitionName),
        offset: u64,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        job.check(now)?;
        let asked = NewJob { id: job, due: Due::Now, ..tables.seen(&Sight::All, after)?.asked.clone() };
        let part = Part::Page { run: *run, partition: partition.clone(), offset };
        match self.add_part(tables, asked, part, Room::Always, now)? {
            true => Ok(()),
            false => Err(job.in_use().into()),
        }
    }

    pub(super) fn move_partition(
        &self,
        tables: &mut Tables,
        request: &AdvancePage,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let part = tables.jobs.get(&request.page.job).and_then(|row| row.part.clone());
        let Some(Part::Page { run, partition, offset }) = part else {
            return Err(Invalid::new("job", request.page.job, "only the job of a page advances").into());
        };
        if request.rows == 0 && request.next.is_some() {
            return Err(Invalid::new("rows", 0, "an empty page is the last one: finish").into());
        }
        check_offset(offset.saturating_add(request.rows))?;
        let ended = || StoreError::Conflict(format!("partition {partition} has ended"));
        let key = (run, partition.clone());
        let state = tables.partitions.get(&key).ok_or_else(ended)?.record.state;
        if !goes_on(tables, run, state) {
            return Err(ended());
        }
        let row = tables.partitions.get_mut(&key).ok_or_else(ended)?;
        let record = &mut row.record;
        let its_turn = record.job == request.page.job && record.next_offset == offset && !row.finished;
        if !its_turn && !self.has(Mutant::OffsetIgnored) {
            return Err(StoreError::OffsetMismatch { expected: record.next_offset, got: offset });
        }
        (record.next_offset, record.rows) = (offset + request.rows, record.rows + request.rows);
        record.state = record.state.max(RunState::Running);
        record.moved_at = now;
        record.started_at = record.started_at.or(Some(now));
        record.job = request.next.unwrap_or(record.job);
        row.finished = request.next.is_none();
        match request.next {
            Some(next) => self.add_page(tables, request.page.job, next, &key, offset + request.rows, now),
            None => Ok(()),
        }
    }

    pub(super) fn fold(
        &self,
        tables: &mut Tables,
        folded: &mut FoldedRuns,
        now: Timestamp,
    ) -> Result<usize, StoreError> {
        let some = tables.run_events.len().min(FOLD_MAX as usize);
        let heard: Vec<Said> = tables.run_events.drain(..some).collect();
        let mut by_run: BTreeMap<RunId, Vec<RunEvent>> = BTreeMap::new();
        for (part, _, event) in heard {
            by_run.entry(part.run()).or_default().push(event);
        }
        for (id, events) in by_run {
            let mut run = of(tables, id)?.record.run.clone();
            let was = run.state;
            for event in &events {
                let row = event.told.partition().and_then(|name| tables.partitions.get_mut(&(id, name.clone())));
                let Some(row) = row else {
                    run.hear(event, None);
                    continue;
                };
                let mut heart = row.heart();
                run.hear(event, Some(&mut heart));
                if heart != row.heart() {
                    row.set(heart, now);
                }
            }
            let act = if self.has(Mutant::ConsolidateEarly) { early(&mut run, now) } else { run.settle(now) };
            of(tables, id)?.record.run = run.clone();
            do_act(tables, id, act, folded, now)?;
            told_of(tables, id, was, run.state, now)?;
        }
        Ok(some)
    }
}

/// One that has failed and was revived may not be counted as such yet.
pub(super) fn goes_on(tables: &Tables, run: RunId, state: RunState) -> bool {
    match state {
        RunState::Queued | RunState::Running => true,
        RunState::Failed => tables.runs[&run].record.run.state != RunState::Canceled,
        RunState::Succeeded | RunState::Canceled => false,
    }
}

/// The mistake of a run that does not wait for all.
fn early(run: &mut Run, now: Timestamp) -> Option<Act> {
    let total = run.total;
    run.total = run.done.max(1);
    let act = run.settle(now);
    run.total = total;
    act
}

/// A job says to its run how it ended, or that it was revived.
pub(super) fn tell(tables: &mut Tables, job: JobId, code: i16, error: Option<&Json>, now: Timestamp) {
    let Some(part) = tables.jobs.get(&job).and_then(|row| row.part.clone()) else { return };
    if let Part::Page { run, partition, .. } = &part {
        let row = tables.partitions.get(&(*run, partition.clone()));
        if row.is_none_or(|row| row.record.job != job) {
            return;
        }
    }
    let Some(told) = Told::from_code(code, &part, Some(job), 1) else { return };
    let error = error.map(|error| error.as_str().to_owned());
    tables.run_events.push((part, Some(job), RunEvent { at: now, told, error }));
}

/// Refuses to revive a job that its run does not let go on.
pub(super) fn refuse_requeue(tables: &Tables, job: JobId) -> Result<(), StoreError> {
    let Some(part) = tables.jobs.get(&job).and_then(|row| row.part.as_ref()) else { return Ok(()) };
    match tables.runs.get(&part.run()).and_then(|row| row.record.run.refuses_requeue(part)) {
        None => Ok(()),
        Some(why) => Err(StoreError::Conflict(format!("job {job} cannot be requeued: {why}"))),
    }
}

/// Members that came and are not counted yet; whoever seals counts them.
pub(super) fn take_added(tables: &mut Tables, run: RunId) -> u64 {
    let mut added = 0;
    tables.run_events.retain(|(part, _, event)| match event.told {
        Told::Added(members) if part.run() == run => {
            added += members;
            false
        }
        _ => true,
    });
    added
}

/// A job that a run may yet revive.
pub(super) fn is_needed(tables: &Tables, job: JobId) -> bool {
    let page = |row: &PartitionRow| row.record.job == job && row.record.state != RunState::Succeeded;
    let fan = |row: &RunRow| {
        let ended = matches!(row.record.run.state, RunState::Succeeded | RunState::Canceled);
        row.record.consolidate == Some(job) && !ended
    };
    tables.partitions.values().any(page) || tables.runs.values().any(fan)
}

pub(super) fn say(tables: &mut Tables, part: Part, job: Option<JobId>, at: Timestamp, told: Told) {
    tables.run_events.push((part, job, RunEvent { at, told, error: None }));
}

pub(super) fn of(tables: &mut Tables, run: RunId) -> Result<&mut RunRow, StoreError> {
    tables.runs.get_mut(&run).ok_or_else(|| StoreError::NotFound(format!("run {run}")))
}

pub(super) fn seen<'t>(tables: &'t Tables, sight: &Sight, run: RunId) -> Result<&'t RunRow, StoreError> {
    let visible = |row: &&RunRow| *sight == Sight::All || *sight == Sight::Tenant(row.record.tenant.clone());
    let row = tables.runs.get(&run).filter(visible);
    row.ok_or_else(|| StoreError::NotFound(format!("run {run}")))
}

pub(super) fn record(tables: &Tables, id: RunId) -> RunRecord {
    let rows = tables.partitions.values().filter(|row| row.record.run == id).map(|row| row.record.rows).sum();
    RunRecord { rows, ..tables.runs[&id].record.clone() }
}

pub(super) fn is_refusal(error: &StoreError) -> bool {
    matches!(error, StoreError::OffsetMismatch { .. } | StoreError::Conflict(_) | StoreError::Invalid(_))
}

fn do_act(
    tables: &mut Tables,
    id: RunId,
    act: Option<Act>,
    folded: &mut FoldedRuns,
    now: Timestamp,
) -> Result<(), StoreError> {
    let consolidate = of(tables, id)?.record.consolidate;
    let word = Word::default();
    match (act, consolidate) {
        (Some(Act::Open), Some(job)) => {
            folded.opened.push(id);
            match tables.seen(&Sight::All, job)?.job.state {
                State::Waiting => {}
                State::Failed | State::Dead | State::Canceled => return requeue(tables, job, &word, now),
                State::Queued | State::Retryable | State::Running | State::Succeeded => return Ok(()),
            }
            tables.step(job, &Event::Open, now, None).map_err(|why| StoreError::Conflict(why.to_string()))?;
            tables.write(now, None, JournalEvent::Opened, None, vec![job], &word);
            Ok(())
        }
        (Some(Act::Skip), Some(job)) if tables.seen(&Sight::All, job)?.job.state.is_terminal() => Ok(()),
        (Some(Act::Skip), Some(job)) => cancel(tables, job, &word, now),
        (Some(Act::CancelRest), _) => {
            let run = of(tables, id)?.record.run.clone();
            stop(tables, id, run, now)
        }
        _ => Ok(()),
    }
}

pub(super) fn stop(tables: &mut Tables, id: RunId, mut run: Run, now: Timestamp) -> Result<(), StoreError> {
    let on_its_way = |row: &&mut PartitionRow| row.record.run == id && row.record.state.is_open() && !row.finished;
    for row in tables.partitions.values_mut().filter(on_its_way) {
        (row.record.state, row.record.moved_at) = (RunState::Canceled, now);
        run.canceled += 1;
    }
    let row = of(tables, id)?;
    (row.record.run, row.sweeping) = (run, true);
    Ok(())
}

pub(super) fn sweep(tables: &mut Tables, id: RunId, limit: usize, now: Timestamp) -> Result<usize, StoreError> {
    let left = |row: &&super::tables::Row| {
        row.part.as_ref().is_some_and(|part| part.run() == id)
            && !row.job.state.is_terminal()
            && !row.job.cancel_requested
    };
    let left: Vec<JobId> = tables.jobs.values().filter(left).map(|row| row.asked.id).take(limit).collect();
    for job in &left {
        cancel(tables, *job, &Word::default(), now)?;
    }
    if left.is_empty() {
        of(tables, id)?.sweeping = false;
    }
    Ok(left.len())
}

pub(super) fn cancel(tables: &mut Tables, job: JobId, word: &Word, now: Timestamp) -> Result<(), StoreError> {
    let step = tables.step(job, &Event::Cancel { force: false }, now, None);
    match step.map_err(|why| StoreError::Conflict(why.to_string()))? {
        Some((how, lease)) => tables.write_endings(now, None, &[(job, how, lease)], word),
        None => {
            let lease: Option<LeaseNo> = tables.jobs.get(&job).and_then(|row| row.job.lease);
            tables.write(now, None, JournalEvent::CancelRequested, lease, vec![job], word);
        }
    }
    Ok(())
}

pub(super) fn requeue(tables: &mut Tables, job: JobId, word: &Word, now: Timestamp) -> Result<(), StoreError> {
    tables.step(job, &Event::Requeue, now, None).map_err(|why| StoreError::Conflict(why.to_string()))?;
    tables.write(now, None, JournalEvent::Requeued, None, vec![job], word);
    Ok(())
}

pub(super) fn told_of(
    tables: &mut Tables,
    id: RunId,
    was: RunState,
    is: RunState,
    now: Timestamp,
) -> Result<(), StoreError> {
    let event = match (was.is_open(), is.is_open()) {
        (true, false) => JournalEvent::RunEnded,
        (false, true) => JournalEvent::RunReopened,
        _ => return Ok(()),
    };
    if event == JournalEvent::RunReopened {
        free(of(tables, id)?, now);
    }
    tables.write(now, None, event, None, Vec::new(), &Word::default());
    Ok(())
}

/// Something of a run goes on: nothing of it is canceled any more, and a deadline that is over is gone.
pub(super) fn free(row: &mut RunRow, now: Timestamp) {
    (row.sweeping, row.record.run.expired) = (false, false);
    row.record.deadline = match row.record.run.sealed {
        false => row.record.deadline.max(Some(now.plus(OPEN_DEADLINE))),
        true => row.record.deadline.filter(|deadline| *deadline > now),
    };
}

/// The code of an ending that was revived.
pub(super) fn revived(state: State) -> Option<i16> {
    let how = match state {
        State::Failed => How::Failed,
        State::Dead => How::Dead,
        State::Canceled => How::Canceled,
        State::Waiting | State::Queued | State::Retryable | State::Running | State::Succeeded => return None,
    };
    Some(-how.code())
}
