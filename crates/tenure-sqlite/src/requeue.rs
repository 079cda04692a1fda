//! Back into the line by an operator's word, or to its head: requeue an ended job, open a waiting one, hasten a delayed one.

use rusqlite::named_params;
use tenure_core::journal::JournalEvent;
use tenure_core::{How, JobId, State};
use tenure_store::StoreError;
use tenure_store::operate::{HastenJob, OpenJob, RequeueJob};

use crate::cancel::remove_ready;
use crate::enqueue::{Line, Place};
use crate::fault::{Result, corrupt};
use crate::journal::{self, Entry};
use crate::keys;
use crate::page;
use crate::prune::forget_cancel_request;
use crate::row::blob;
use crate::run;
use crate::show::{self, Found};
use crate::tx::Tx;

const REOPEN_ATTEMPT: &str = include_str!("sql/reopen_attempt.sql");

/// Revives a failed, dead or canceled job: attempts and losses start again, the fence does not.
pub(crate) fn requeue_job(tx: &Tx<'_>, request: &RequeueJob) -> Result<()> {
    let job = request.job;
    let found = show::find_job(tx, &request.sight, job)?;
    let how = match found.state {
        State::Failed => How::Failed,
        State::Dead => How::Dead,
        State::Canceled => How::Canceled,
        state => {
            let text = format!("job {job} cannot be requeued: it is {}", state.as_str());
            return Err(StoreError::Conflict(text).into());
        }
    };
    run::refuse_requeue(tx, job)?;
    if let Some(own) = &found.unique {
        keys::take_back(tx, found.tenant, own, job)?;
    }
    match tx.execute(REOPEN_ATTEMPT, named_params! { ":job": blob(&job) })? {
        1 => {}
        rows => return Err(corrupt(format!("job {job} has {rows} final attempts"))),
    }
    forget_cancel_request(tx, job)?;
    let (queue, priority, run_at) = (found.queue, found.priority, tx.now);
    let line = &found.line;
    Line::open(tx)?.put(&Place { queue, line, priority, run_at, job, attempt: 0, losses: 0, state: State::Queued })?;
    page::tell(tx, job, -how.code(), None)?;
    journal::add(tx, &Entry::said(JournalEvent::Requeued, &request.word), &[job])
}

/// Makes a waiting job due now.
pub(crate) fn open_job(tx: &Tx<'_>, request: &OpenJob) -> Result<()> {
    let job = request.job;
    let found = show::find_job(tx, &request.sight, job)?;
    if found.state != State::Waiting {
        let text = format!("job {job} cannot be opened: it is {}", found.state.as_str());
        return Err(StoreError::Conflict(text).into());
    }
    make_due(tx, job, &found, State::Queued)?;
    journal::add(tx, &Entry::said(JournalEvent::Opened, &request.word), &[job])
}

/// Makes a job due now that waits for its time, or opens one that waits; `false`: it is due already.
pub(crate) fn hasten_job(tx: &Tx<'_>, request: &HastenJob) -> Result<bool> {
    let HastenJob { sight, job, word } = request;
    let found = show::find_job(tx, sight, *job)?;
    let (state, event) = match found.state {
        State::Waiting => (State::Queued, JournalEvent::Opened),
        state @ (State::Queued | State::Retryable) => (state, JournalEvent::Hastened),
        state => {
            let text = format!("job {job} cannot be hastened: it is {}", state.as_str());
            return Err(StoreError::Conflict(text).into());
        }
    };
    if found.state != State::Waiting && show::summarize(tx, *job)?.run_at <= tx.now {
        return Ok(false);
    }
    make_due(tx, *job, &found, state)?;
    journal::add(tx, &Entry::said(event, word), &[*job])?;
    Ok(true)
}

fn make_due(tx: &Tx<'_>, job: JobId, found: &Found, state: State) -> Result<()> {
    remove_ready(tx, job)?;
    Line::open(tx)?.put(&Place {
        queue: found.queue,
        line: &found.line,
        priority: found.priority,
        run_at: tx.now,
        job,
        attempt: found.attempt,
        losses: found.losses,
        state,
    })
}
