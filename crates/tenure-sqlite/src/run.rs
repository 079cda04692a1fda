//! Runs: created, added to, sealed, counted, canceled.

use rusqlite::{Row, named_params};
use tenure_core::journal::JournalEvent;
use tenure_core::json::quote;
use tenure_core::new_job::Due;
use tenure_core::run::{Fan, Part, Run, Told};
use tenure_core::{JobId, NewJob, RunId, RunState, Timestamp};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_store::operate::Word;
use tenure_store::record::Sight;
use tenure_store::run::{
    AddToRun, Added, CancelRun, Members, NewRun, OPEN_DEADLINE, OPEN_RUNS_MAX, RunCreated, RunFilter, RunRecord,
    SealRun, check_consolidate,
};
use uuid::Uuid;

use crate::enqueue::Batch;
use crate::fault::{Result, corrupt};
use crate::journal::{self, Entry};
use crate::page::{self, note};
use crate::row::{blob, number, optional_time, time, word};
use crate::show::sight_param;
use crate::tx::Tx;
use crate::{fold, queue};

const ADD_RUN: &str = include_str!("sql/add_run.sql");
const COUNT_OPEN_RUNS: &str = include_str!("sql/count_open_runs.sql");
const FIND_RUN: &str = include_str!("sql/find_run.sql");
const LIST_RUNS: &str = include_str!("sql/list_runs.sql");
const SAVE_RUN: &str = include_str!("sql/save_run.sql");
const TAKE_ADDED: &str = include_str!("sql/take_added.sql");
const END_SEALING: &str = include_str!("sql/end_sealing.sql");
const FREE_RUN: &str = include_str!("sql/free_run.sql");
const ADD_PARTITION: &str = include_str!("sql/add_partition.sql");
const HAS_PARTITION: &str = include_str!("sql/has_partition.sql");
const SET_PARTED: &str = include_str!("sql/set_parted.sql");

/// Creates a checked run with its first members.
pub(crate) fn create_run(tx: &Tx<'_>, request: &NewRun) -> Result<RunCreated> {
    let start = request.start();
    let tenant = queue::ensure_tenant(tx, &request.tenant)?;
    let params = named_params! {
        ":id": request.id.as_uuid().as_bytes(),
        ":tenant": tenant,
        ":owner": request.owner,
        ":source": request.source,
        ":sealed": request.sealed,
        ":fail_fast": request.fail_fast,
        ":tolerated": request.tolerated,
        ":consolidate": request.consolidate.as_ref().map(|job| blob(&job.id)),
        ":fan": start.fan.code(),
        ":now": tx.now.as_micros(),
        ":deadline": request.deadline_at(tx.now).map(Timestamp::as_micros),
        ":deadline_asked": request.deadline.is_some(),
    };
    if tx.execute(ADD_RUN, params)? == 0 {
        // Another tenant's is not told apart from one that is not there.
        find_run(tx, &Sight::Tenant(request.tenant.clone()), request.id)?;
        return Ok(RunCreated::Before);
    }
    let added = add_members(tx, request.id, &request.members)?;
    save(tx, request.id, &Run { total: added.members, ..start }, None)?;
    // Somebody has to look whether that was all.
    note(tx, request.id, &Told::Added(0))?;
    if let Some(job) = &request.consolidate {
        add_consolidate(tx, request.id, job)?;
    }
    write(tx, request.id, JournalEvent::RunCreated, None, &Word::default())?;
    if queue::count_of_tenant(tx, COUNT_OPEN_RUNS, named_params! { ":tenant": tenant })? > OPEN_RUNS_MAX {
        return Err(request.beyond_limit().into());
    }
    Ok(RunCreated::Now)
}

/// Adds members to an open run.
pub(crate) fn add_to_run(tx: &Tx<'_>, request: &AddToRun) -> Result<Added> {
    let found = find_run(tx, &request.sight, request.run)?;
    request.members.check(&found.tenant, tx.now)?;
    found.refuse_closed()?;
    let added = add_members(tx, request.run, &request.members)?;
    note(tx, request.run, &Told::Added(added.members))?;
    Ok(added)
}

/// Says that a run has all its members.
pub(crate) fn seal_run(tx: &Tx<'_>, request: &SealRun) -> Result<()> {
    let found = find_run(tx, &request.sight, request.run)?;
    if found.was_sealed_by(request)? {
        return Ok(());
    }
    let mut run = found.run;
    run.sealed = true;
    if let Some(job) = &request.consolidate {
        check_consolidate(job, &found.tenant, tx.now)?;
        run.fan = Fan::Waiting;
        add_consolidate(tx, request.run, job)?;
    }
    // A batch of sentences may end between what was added and what has ended: from now on the total is right.
    let part = Part::Item(request.run).to_string();
    let added = tx.all(TAKE_ADDED, named_params! { ":part": part }, |row| number::<i64, u64>(row, 0, "members"))?;
    run.total += added.iter().sum::<u64>();
    save(tx, request.run, &run, request.consolidate.as_ref().map(|job| job.id))?;
    tx.execute(END_SEALING, named_params! { ":run": request.run.as_uuid().as_bytes() })?;
    // Somebody has to look whether that was all.
    note(tx, request.run, &Told::Added(0))?;
    write(tx, request.run, JournalEvent::RunSealed, None, &request.word)
}

/// Ends a run; its jobs follow.
pub(crate) fn cancel_run(tx: &Tx<'_>, request: &CancelRun) -> Result<bool> {
    let found = find_run(tx, &request.sight, request.run)?;
    match found.run.state {
        RunState::Canceled => return Ok(false),
        RunState::Succeeded => {
            return Err(StoreError::Conflict(format!("run {} has succeeded already", request.run)).into());
        }
        RunState::Queued | RunState::Running | RunState::Failed => {}
    }
    let mut run = found.run;
    (run.state, run.finished_at) = (RunState::Canceled, Some(tx.now));
    fold::stop(tx, request.run, &mut run)?;
    write(tx, request.run, JournalEvent::RunCanceled, None, &request.word)?;
    Ok(true)
}

/// One run. `NotFound` also when it is out of sight.
pub(crate) fn find_run(tx: &Tx<'_>, sight: &Sight, run: RunId) -> Result<RunRecord> {
    let params = named_params! { ":run": run.as_uuid().as_bytes(), ":sight": sight_param(sight) };
    let found = tx.one(FIND_RUN, params, record)?;
    found.ok_or_else(|| StoreError::NotFound(format!("run {run}")).into())
}

/// Runs that match.
pub(crate) fn list_runs(tx: &Tx<'_>, filter: &RunFilter) -> Result<Vec<RunRecord>> {
    let params = named_params! {
        ":state": filter.state.map(RunState::code),
        ":open": filter.open,
        ":before": filter.before.as_ref().map(|run| run.as_uuid().as_bytes()),
        ":sight": sight_param(&filter.sight),
        ":limit": filter.limit,
    };
    tx.all(LIST_RUNS, params, record)
}

/// Refuses to revive a job that its run does not let go on.
pub(crate) fn refuse_requeue(tx: &Tx<'_>, job: JobId) -> Result<()> {
    let Some(part) = page::part_of(tx, job)? else { return Ok(()) };
    match find_run(tx, &Sight::All, part.run())?.run.refuses_requeue(&part) {
        None => Ok(()),
        Some(why) => Err(StoreError::Conflict(format!("job {job} cannot be requeued: {why}")).into()),
    }
}

/// Writes where a run stands.
pub(crate) fn save(tx: &Tx<'_>, id: RunId, run: &Run, consolidate: Option<JobId>) -> Result<()> {
    let params = named_params! {
        ":run": id.as_uuid().as_bytes(),
        ":state": run.state.code(),
        ":sealed": run.sealed,
        ":total": run.total as i64,
        ":done": run.done as i64,
        ":failed": run.failed as i64,
        ":canceled": run.canceled as i64,
        ":fan": run.fan.code(),
        ":consolidate": consolidate.as_ref().map(blob),
        ":started_at": run.started_at.map(Timestamp::as_micros),
        ":finished_at": run.finished_at.map(Timestamp::as_micros),
        ":last_error": run.last_error,
        ":expired": run.expired,
    };
    tx.execute(SAVE_RUN, params)?;
    Ok(())
}

/// An operator lets something of a run go on.
pub(crate) fn free(tx: &Tx<'_>, run: RunId) -> Result<()> {
    let params = named_params! {
        ":run": run.as_uuid().as_bytes(), ":now": tx.now.as_micros(), ":deadline": tx.now.plus(OPEN_DEADLINE).as_micros(),
    };
    tx.execute(FREE_RUN, params)?;
    Ok(())
}

/// A state's column.
pub(crate) fn state(row: &Row<'_>, column: usize) -> Result<RunState> {
    let code: i16 = row.get(column)?;
    RunState::from_code(code).ok_or_else(|| corrupt(format!("the state of a run is {code}")))
}

fn add_members(tx: &Tx<'_>, run: RunId, members: &Members) -> Result<Added> {
    let mut added = Added::default();
    let mut batch = Batch::open(tx)?;
    for partition in &members.partitions {
        let (name, offset) = (&partition.name, partition.offset);
        let key = named_params! { ":run": run.as_uuid().as_bytes(), ":name": name.as_str() };
        let part = Part::Page { run, partition: name.clone(), offset };
        if tx.one(HAS_PARTITION, key, |_| Ok(()))?.is_some() || !add_job(tx, &mut batch, &partition.job, &part)? {
            added.found += 1;
            continue;
        }
        tx.execute(
            ADD_PARTITION,
            named_params! {
                ":run": run.as_uuid().as_bytes(),
                ":name": name.as_str(),
                ":offset": offset as i64,
                ":limit": partition.limit,
                ":expected": partition.expected.and_then(|expected| i64::try_from(expected).ok()),
                ":job": blob(&partition.job.id),
                ":now": tx.now.as_micros(),
            },
        )?;
        added.members += 1;
    }
    for job in &members.items {
        match add_job(tx, &mut batch, job, &Part::Item(run))? {
            true => added.members += 1,
            false => added.found += 1,
        }
    }
    Ok(added)
}

fn add_consolidate(tx: &Tx<'_>, run: RunId, job: &NewJob) -> Result<()> {
    let waiting = NewJob { due: Due::WhenOpened, ..job.clone() };
    match add_job(tx, &mut Batch::open(tx)?, &waiting, &Part::Consolidate(run))? {
        true => Ok(()),
        false => Err(StoreError::Conflict(format!("job {} is there already: a consolidate is new", job.id)).into()),
    }
}

/// Whether it is new.
fn add_job<'j>(tx: &Tx<'_>, batch: &mut Batch<'_, '_, 'j>, job: &'j NewJob, part: &Part) -> Result<bool> {
    let created = matches!(batch.enqueue(job, Some(part))?, Enqueued::Created(_));
    if created {
        tx.execute(SET_PARTED, named_params! { ":job": blob(&job.id) })?;
    }
    Ok(created)
}

/// Writes down what happened to a run.
pub(crate) fn write(tx: &Tx<'_>, id: RunId, event: JournalEvent, state: Option<RunState>, said: &Word) -> Result<()> {
    let state = state.map(|state| format!(",\"state\":{}", quote(state.as_str()))).unwrap_or_default();
    let details = Some(format!("{{\"run\":\"{id}\"{state}}}"));
    journal::add_json(tx, &Entry { details, ..Entry::said(event, said) }, "[]")
}

fn record(row: &Row<'_>) -> Result<RunRecord> {
    let count = |column: usize| number::<i64, u64>(row, column, "a count of a run");
    let fan: i16 = row.get(8)?;
    let run = Run {
        state: state(row, 0)?,
        sealed: row.get(1)?,
        fail_fast: row.get(2)?,
        tolerated: number::<i64, u32>(row, 3, "run.tolerated")?,
        total: count(4)?,
        done: count(5)?,
        failed: count(6)?,
        canceled: count(7)?,
        fan: Fan::from_code(fan).ok_or_else(|| corrupt(format!("run.fan is {fan}")))?,
        expired: row.get(20)?,
        started_at: optional_time(row, 9)?,
        finished_at: optional_time(row, 10)?,
        last_error: row.get(11)?,
    };
    let consolidate = row.get::<_, Option<[u8; 16]>>(16)?.map(|id| JobId::from_uuid(Uuid::from_bytes(id)));
    Ok(RunRecord {
        id: RunId::from_uuid(Uuid::from_bytes(row.get(12)?)),
        tenant: word(row, 13)?,
        owner: row.get(14)?,
        source: row.get(15)?,
        run,
        consolidate,
        rows: count(17)?,
        created_at: time(row, 18)?,
        deadline: optional_time(row, 19)?,
    })
}
