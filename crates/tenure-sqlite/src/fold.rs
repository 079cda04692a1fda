//! Folding: what jobs said of their runs is counted, and what follows is done.

use std::collections::BTreeMap;

use rusqlite::{Row, named_params};
use tenure_core::journal::JournalEvent;
use tenure_core::run::{Act, Part, Partition, Run, RunEvent, Told};
use tenure_core::{JobId, PartitionName, RunId, RunState, State};
use tenure_store::operate::{CancelJob, OpenJob, RequeueJob, Word};
use tenure_store::record::Sight;
use tenure_store::run::{FOLD_MAX, FoldedRuns, RunRecord};
use uuid::Uuid;

use crate::fault::{Result, corrupt};
use crate::row::{job_id, time, word};
use crate::run::{self, find_run, save, write};
use crate::tx::Tx;
use crate::{cancel, page, requeue, show};

const SWEEP_RUN: &str = include_str!("sql/sweep_run.sql");
const LIST_SWEEPING: &str = include_str!("sql/list_sweeping.sql");
const LIST_LEFT: &str = include_str!("sql/list_left.sql");
const LIST_OVERDUE: &str = include_str!("sql/list_overdue.sql");
const SAVE_PARTITION: &str = include_str!("sql/save_partition.sql");
const CANCEL_PARTITIONS: &str = include_str!("sql/cancel_partitions.sql");
const LIST_RUN_EVENTS: &str = include_str!("sql/list_run_events.sql");
const DROP_RUN_EVENT: &str = include_str!("sql/drop_run_event.sql");

/// Hears what jobs said of their runs and does what follows.
pub(crate) fn fold_runs(tx: &Tx<'_>) -> Result<FoldedRuns> {
    let mut folded = FoldedRuns::default();
    let heard = fold(tx, &mut folded)?;
    // Not before everything that was said is heard.
    let limit = if heard < FOLD_MAX { 100 } else { 0 };
    let overdue = tx.all(LIST_OVERDUE, named_params! { ":now": tx.now.as_micros(), ":limit": limit }, run_id)?;
    for id in &overdue {
        end_overdue(tx, *id)?;
    }
    let mut swept = 0;
    for id in tx.all(LIST_SWEEPING, named_params! { ":limit": 100 }, run_id)? {
        let left = FOLD_MAX - swept;
        if left > 0 {
            swept += sweep_some(tx, id, left)?;
        }
    }
    folded.changes = u64::from(heard) + overdue.len() as u64 + u64::from(swept);
    folded.more = heard >= FOLD_MAX || swept > 0;
    Ok(folded)
}

/// Folds a batch of sentences; answers how many.
fn fold(tx: &Tx<'_>, folded: &mut FoldedRuns) -> Result<u32> {
    let params = named_params! { ":limit": FOLD_MAX };
    let events = tx.all(LIST_RUN_EVENTS, params, |row| {
        let part: Part = word(row, 1)?;
        let job = row.get::<_, Option<[u8; 16]>>(2)?.map(|id| JobId::from_uuid(Uuid::from_bytes(id)));
        let (code, members): (i16, i64) = (row.get(3)?, row.get(4)?);
        let told = Told::from_code(code, &part, job, u64::try_from(members).unwrap_or(0));
        let told = told.ok_or_else(|| corrupt(format!("run_event.told is {code}")))?;
        Ok((row.get::<_, i64>(0)?, part.run(), RunEvent { at: time(row, 5)?, told, error: row.get(6)? }))
    })?;
    let mut by_run: BTreeMap<RunId, Vec<&RunEvent>> = BTreeMap::new();
    for (id, run, event) in &events {
        tx.execute(DROP_RUN_EVENT, named_params! { ":id": id })?;
        by_run.entry(*run).or_default().push(event);
    }
    for (id, events) in by_run {
        let RunRecord { mut run, consolidate, .. } = find_run(tx, &Sight::All, id)?;
        let was = run.state;
        for event in events {
            hear(tx, id, &mut run, event)?;
        }
        let act = run.settle(tx.now);
        save(tx, id, &run, None)?;
        do_act(tx, id, &mut run, act, consolidate, folded)?;
        if was != run.state {
            told_of(tx, id, was, &run)?;
        }
    }
    Ok(events.len() as u32)
}

fn hear(tx: &Tx<'_>, id: RunId, run: &mut Run, event: &RunEvent) -> Result<()> {
    let Some(name) = event.told.partition() else {
        run.hear(event, None);
        return Ok(());
    };
    let Some(mut partition) = page::heart(tx, id, name)? else { return Ok(()) };
    let before = partition.clone();
    run.hear(event, Some(&mut partition));
    if partition != before {
        save_partition(tx, id, name, &partition)?;
    }
    Ok(())
}

/// Writes where a partition stands.
pub(crate) fn save_partition(tx: &Tx<'_>, id: RunId, name: &PartitionName, partition: &Partition) -> Result<()> {
    tx.execute(
        SAVE_PARTITION,
        named_params! {
            ":run": id.as_uuid().as_bytes(),
            ":name": name.as_str(),
            ":state": partition.state.code(),
            ":last_error": partition.last_error,
            ":now": tx.now.as_micros(),
        },
    )?;
    Ok(())
}

fn do_act(
    tx: &Tx<'_>,
    id: RunId,
    run: &mut Run,
    act: Option<Act>,
    consolidate: Option<JobId>,
    folded: &mut FoldedRuns,
) -> Result<()> {
    let word = |reason: &str| Word { actor: None, reason: Some(reason.to_owned()) };
    match (act, consolidate) {
        (Some(Act::Open), Some(job)) => {
            folded.opened.push(id);
            let (sight, word) = (Sight::All, word("all members of its run are done"));
            match show::find_job(tx, &Sight::All, job)?.state {
                State::Waiting => requeue::open_job(tx, &OpenJob { sight, job, word }),
                State::Failed | State::Dead | State::Canceled => {
                    requeue::requeue_job(tx, &RequeueJob { sight, job, word })
                }
                // Somebody was faster, by hand.
                State::Queued | State::Retryable | State::Running | State::Succeeded => Ok(()),
            }
        }
        // It may have ended by hand.
        (Some(Act::Skip), Some(job)) if show::find_job(tx, &Sight::All, job)?.state.is_terminal() => Ok(()),
        (Some(Act::Skip), Some(job)) => {
            let word = word("members of its run are missing");
            cancel::cancel_job(tx, &CancelJob { sight: Sight::All, job, force: false, word })?;
            Ok(())
        }
        (Some(Act::CancelRest), _) => stop(tx, id, run),
        _ => Ok(()),
    }
}

/// No page of a run goes on, and its jobs are to be canceled.
pub(crate) fn stop(tx: &Tx<'_>, id: RunId, run: &mut Run) -> Result<()> {
    let params = named_params! { ":run": id.as_uuid().as_bytes(), ":now": tx.now.as_micros() };
    run.canceled += tx.execute(CANCEL_PARTITIONS, params)? as u64;
    save(tx, id, run, None)?;
    sweep(tx, id, true)
}

fn end_overdue(tx: &Tx<'_>, id: RunId) -> Result<()> {
    let RunRecord { mut run, .. } = find_run(tx, &Sight::All, id)?;
    let was = run.state;
    run.expire(tx.now);
    stop(tx, id, &mut run)?;
    told_of(tx, id, was, &run)
}

/// Cancels some of what is left of a run; answers how many.
fn sweep_some(tx: &Tx<'_>, id: RunId, limit: u32) -> Result<u32> {
    let left = tx.all(LIST_LEFT, named_params! { ":run": id.to_string(), ":limit": limit }, |row| job_id(row, 0))?;
    for job in &left {
        let word = Word { actor: None, reason: Some("its run has ended".into()) };
        cancel::cancel_job(tx, &CancelJob { sight: Sight::All, job: *job, force: false, word })?;
    }
    if left.is_empty() {
        sweep(tx, id, false)?;
    }
    Ok(left.len() as u32)
}

fn told_of(tx: &Tx<'_>, id: RunId, was: RunState, is: &Run) -> Result<()> {
    let event = match (was.is_open(), is.state.is_open()) {
        (true, false) => JournalEvent::RunEnded,
        (false, true) => {
            run::free(tx, id)?;
            JournalEvent::RunReopened
        }
        _ => return Ok(()),
    };
    write(tx, id, event, Some(is.state), &Word::default())
}

fn sweep(tx: &Tx<'_>, run: RunId, sweeping: bool) -> Result<()> {
    tx.execute(SWEEP_RUN, named_params! { ":run": run.as_uuid().as_bytes(), ":sweeping": sweeping })?;
    Ok(())
}

fn run_id(row: &Row<'_>) -> Result<RunId> {
    Ok(RunId::from_uuid(Uuid::from_bytes(row.get(0)?)))
}
