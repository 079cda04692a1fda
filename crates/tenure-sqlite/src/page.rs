//! Pages and partitions: a page's rows, its partition's offset, the next page's job and this one's completion are one
//! transaction, and what a job says of its run is said in the transaction that ended it.

use rusqlite::{Row, named_params};
use tenure_core::journal::JournalEvent;
use tenure_core::run::{Moved, Part, Partition, Run, Told};
use tenure_core::{How, Invalid, JobId, Json, PartitionName, Priority, RunId, RunState, State};
use tenure_store::StoreError;
use tenure_store::lease::{EndJobs, Ended};
use tenure_store::operate::{CancelJob, RequeueJob};
use tenure_store::record::Sight;
use tenure_store::run::{
    AdvancePage, OperatePartition, PageFound, PartitionAct, PartitionFilter, PartitionRecord, check_offset,
};
use tenure_store::user_tx::CompleteJob;
use uuid::Uuid;

use crate::enqueue::{Line, Place};
use crate::fault::{Result, corrupt};
use crate::journal::{self, Entry};
use crate::row::{blob, job_id, number, optional_json, optional_time, optional_word, priority, time, word};
use crate::show::sight_param;
use crate::tx::Tx;
use crate::{cancel, end, fold, requeue, run, show};

const TELL_RUN: &str = include_str!("sql/tell_run.sql");
const ADD_RUN_EVENT: &str = include_str!("sql/add_run_event.sql");
const PART_OF: &str = include_str!("sql/part_of.sql");
const FIND_PARTITION: &str = include_str!("sql/find_partition.sql");
const LIST_PARTITIONS: &str = include_str!("sql/list_partitions.sql");
const START_PARTITION: &str = include_str!("sql/start_partition.sql");
const MOVE_PARTITION: &str = include_str!("sql/move_partition.sql");
const RESET_PARTITION: &str = include_str!("sql/reset_partition.sql");
const COPY_PAGE: &str = include_str!("sql/copy_page.sql");

/// A job says to its run how it ended, or, by the negative code, that it was revived. Most are part of none.
pub(crate) fn tell(tx: &Tx<'_>, job: JobId, told: i16, error: Option<&Json>) -> Result<()> {
    let params = named_params! {
        ":job": blob(&job), ":told": told, ":now": tx.now.as_micros(), ":error": error.map(Json::as_str),
    };
    tx.execute(TELL_RUN, params)?;
    Ok(())
}

/// Something is said about a run that no job says.
pub(crate) fn note(tx: &Tx<'_>, run: RunId, told: &Told) -> Result<()> {
    let members = if let Told::Added(members) = told { i64::try_from(*members).unwrap_or(i64::MAX) } else { 1 };
    let params = named_params! {
        ":part": Part::Item(run).to_string(), ":told": told.code(), ":members": members, ":now": tx.now.as_micros(),
    };
    tx.execute(ADD_RUN_EVENT, params)?;
    Ok(())
}

/// Whether it is this page's turn; the first one starts its partition and its run.
pub(crate) fn begin_page(tx: &Tx<'_>, job: JobId) -> Result<PageFound> {
    let Some(Part::Page { run, partition, offset }) = part_of(tx, job)? else { return Ok(PageFound::Ended) };
    let Some(found) = find_partition(tx, run, &partition)? else { return Ok(PageFound::Ended) };
    if !goes_on(tx, &found)? {
        return Ok(PageFound::Ended);
    }
    if found.job != job || found.next_offset != offset {
        return Ok(PageFound::Elsewhere { expected: found.next_offset });
    }
    let params =
        named_params! { ":run": run.as_uuid().as_bytes(), ":name": partition.as_str(), ":now": tx.now.as_micros() };
    if tx.execute(START_PARTITION, params)? > 0 {
        note(tx, run, &Told::Started)?;
    }
    Ok(PageFound::Next { limit: found.limit })
}

/// The same in a transaction of its own: a repetition is answered as before.
pub(crate) fn advance_page(tx: &Tx<'_>, request: &AdvancePage) -> Result<()> {
    let CompleteJob { worker, lease, job, .. } = request.page;
    if end::find_endings(tx, worker, lease, &[job])? == [Some(How::Succeeded)] {
        return Ok(());
    }
    move_partition(tx, request)?;
    match end::end_jobs(tx, &EndJobs { worker, lease, jobs: vec![request.page.to_end_job()] })?.as_slice() {
        [Ended::Now(_)] => Ok(()),
        _ => Err(StoreError::LeaseLost(job).into()),
    }
}

/// The rows of a page are there: its partition moves on behind them, to the next page or to its end.
pub(crate) fn move_partition(tx: &Tx<'_>, request: &AdvancePage) -> Result<()> {
    let no_page = || StoreError::Invalid(Invalid::new("job", request.page.job, "only the job of a page advances"));
    let Some(Part::Page { run, partition, offset }) = part_of(tx, request.page.job)? else {
        return Err(no_page().into());
    };
    if request.rows == 0 && request.next.is_some() {
        return Err(Invalid::new("rows", 0, "an empty page is the last one: finish").into());
    }
    check_offset(offset.saturating_add(request.rows))?;
    let params = named_params! {
        ":run": run.as_uuid().as_bytes(),
        ":name": partition.as_str(),
        ":job": blob(&request.page.job),
        ":offset": offset as i64,
        ":rows": request.rows as i64,
        ":next": request.next.as_ref().map(blob),
        ":now": tx.now.as_micros(),
    };
    if tx.execute(MOVE_PARTITION, params)? == 0 {
        let found = find_partition(tx, run, &partition)?;
        return Err(match found {
            Some(found) if goes_on(tx, &found)? => {
                StoreError::OffsetMismatch { expected: found.next_offset, got: offset }.into()
            }
            _ => StoreError::Conflict(format!("partition {partition} of run {run} has ended")).into(),
        });
    }
    match request.next {
        Some(next) => add_page(tx, request.page.job, next, run, &partition, offset + request.rows),
        None => Ok(()),
    }
}

/// Whether a page of such a partition may go on. One that has failed and was revived may not be counted as such yet.
fn goes_on(tx: &Tx<'_>, found: &PartitionRecord) -> Result<bool> {
    Ok(match found.state {
        RunState::Queued | RunState::Running => true,
        RunState::Failed => run::find_run(tx, &Sight::All, found.run)?.run.state != RunState::Canceled,
        RunState::Succeeded | RunState::Canceled => false,
    })
}

/// Lets a partition go on that has stopped.
pub(crate) fn operate_partition(tx: &Tx<'_>, request: &OperatePartition) -> Result<()> {
    let of_run = run::find_run(tx, &request.sight, request.run)?;
    let unknown = || StoreError::NotFound(format!("partition {} of run {}", request.partition, request.run));
    let found = find_partition(tx, request.run, &request.partition)?.ok_or_else(unknown)?;
    of_run.refuse_settled()?;
    let event = match request.act {
        PartitionAct::Resume => {
            resume(tx, request, &found, of_run.run)?;
            JournalEvent::PartitionResumed
        }
        PartitionAct::Reset { offset, job } => {
            check_offset(offset)?;
            reset(tx, request, &found, of_run.run, (offset, job))?;
            JournalEvent::PartitionReset
        }
    };
    run::free(tx, request.run)?;
    let details = Some(format!("{{\"run\":\"{}\",\"partition\":\"{}\"}}", request.run, request.partition));
    journal::add_json(tx, &Entry { details, ..Entry::said(event, &request.word) }, "[]")
}

fn resume(tx: &Tx<'_>, request: &OperatePartition, found: &PartitionRecord, mut of_run: Run) -> Result<()> {
    let state = show::find_job(tx, &Sight::All, found.job)?.state;
    if !matches!(state, State::Failed | State::Dead | State::Canceled) {
        let (name, job, state) = (&request.partition, found.job, state.as_str());
        let text = format!("partition {name} needs no help: job {job} of its page is {state}");
        return Err(StoreError::Conflict(text).into());
    }
    requeue::requeue_job(tx, &RequeueJob { sight: Sight::All, job: found.job, word: request.word.clone() })?;
    // At once, not when its requeue is heard: a worker may be faster.
    if let Some(mut heart) = heart(tx, request.run, &request.partition)?.filter(|heart| !heart.state.is_open()) {
        of_run.resume(heart.turn(RunState::Running));
        fold::save_partition(tx, request.run, &request.partition, &heart)?;
        run::save(tx, request.run, &of_run, None)?;
    }
    Ok(())
}

fn reset(
    tx: &Tx<'_>,
    request: &OperatePartition,
    found: &PartitionRecord,
    mut of_run: Run,
    (offset, job): (u64, JobId),
) -> Result<()> {
    let before = show::find_job(tx, &Sight::All, found.job)?;
    add_page(tx, found.job, job, request.run, &request.partition, offset)?;
    let params = named_params! {
        ":run": request.run.as_uuid().as_bytes(),
        ":name": request.partition.as_str(),
        ":offset": offset as i64,
        ":job": blob(&job),
        ":now": tx.now.as_micros(),
    };
    tx.execute(RESET_PARTITION, params)?;
    // The page before is not its partition's any more: whatever it still does is not heard.
    if !before.state.is_terminal() {
        let (sight, word) = (Sight::All, request.word.clone());
        cancel::cancel_job(tx, &CancelJob { sight, job: found.job, force: false, word })?;
    }
    of_run.resume(Moved { from: found.state, to: RunState::Queued });
    run::save(tx, request.run, &of_run, None)
}

/// The job of a page, made after that of another page of its partition.
fn add_page(tx: &Tx<'_>, after: JobId, job: JobId, run: RunId, partition: &PartitionName, offset: u64) -> Result<()> {
    job.check(tx.now)?;
    if show::state_of(tx, job)?.is_some() {
        return Err(job.in_use().into());
    }
    let part = Part::Page { run, partition: partition.clone(), offset };
    let params = named_params! {
        ":id": blob(&job), ":part": part.to_string(), ":job": blob(&after), ":now": tx.now.as_micros(),
    };
    let place = tx.one(COPY_PAGE, params, |row| -> Result<(i64, String, Priority)> {
        Ok((row.get(0)?, row.get(1)?, priority(row, 2)?))
    })?;
    let (queue, line, priority) = place.ok_or_else(|| corrupt(format!("job {after} of a page is not there")))?;
    let (run_at, state, line) = (tx.now, State::Queued, line.as_str());
    Line::open(tx)?.put(&Place { queue, line, priority, run_at, job, attempt: 0, losses: 0, state })
}

/// What a job is of its run.
pub(crate) fn part_of(tx: &Tx<'_>, job: JobId) -> Result<Option<Part>> {
    Ok(tx.one(PART_OF, named_params! { ":job": blob(&job) }, |row| optional_word(row, 0))?.flatten())
}

/// One partition.
pub(crate) fn find_partition(tx: &Tx<'_>, run: RunId, name: &PartitionName) -> Result<Option<PartitionRecord>> {
    let params = named_params! { ":run": run.as_uuid().as_bytes(), ":name": name.as_str() };
    tx.one(FIND_PARTITION, params, |row| Ok(read(row)?.0))
}

/// The same, as far as its run asks.
pub(crate) fn heart(tx: &Tx<'_>, run: RunId, name: &PartitionName) -> Result<Option<Partition>> {
    let params = named_params! { ":run": run.as_uuid().as_bytes(), ":name": name.as_str() };
    tx.one(FIND_PARTITION, params, |row| Ok(read(row)?.1))
}

/// Partitions that match.
pub(crate) fn list_partitions(tx: &Tx<'_>, filter: &PartitionFilter) -> Result<Vec<PartitionRecord>> {
    let params = named_params! {
        ":run": filter.run.as_ref().map(|run| run.as_uuid().as_bytes()),
        ":after_run": filter.after.as_ref().map(|(run, _)| run.as_uuid().as_bytes()),
        ":after_name": filter.after.as_ref().map(|(_, name)| name.as_str()),
        ":active": filter.active,
        ":state": filter.state.map(RunState::code),
        ":moved_before": filter.stuck_for.map(|stuck| tx.now.minus(stuck).as_micros()),
        ":sight": sight_param(&filter.sight),
        ":limit": filter.limit,
    };
    tx.all(LIST_PARTITIONS, params, |row| Ok(read(row)?.0))
}

fn read(row: &Row<'_>) -> Result<(PartitionRecord, Partition)> {
    let state = run::state(row, 0)?;
    let (job, last_error) = (job_id(row, 1)?, optional_json(row, 3)?);
    let text = last_error.as_ref().map(|error| error.as_str().to_owned());
    let heart = Partition { state, job, finished: row.get(2)?, last_error: text };
    let record = PartitionRecord {
        run: RunId::from_uuid(Uuid::from_bytes(row.get(4)?)),
        name: word(row, 5)?,
        state,
        next_offset: number::<i64, u64>(row, 6, "partition.next_offset")?,
        limit: number::<i64, u32>(row, 7, "partition.page_limit")?,
        rows: number::<i64, u64>(row, 8, "partition.rows")?,
        expected: row.get::<_, Option<i64>>(9)?.and_then(|expected| u64::try_from(expected).ok()),
        job,
        last_error,
        created_at: time(row, 10)?,
        started_at: optional_time(row, 11)?,
        moved_at: time(row, 12)?,
    };
    Ok((record, heart))
}
