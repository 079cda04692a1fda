//! Cancel: a waiting job at once, a running one by request or by force.

use rusqlite::named_params;
use tenure_core::journal::JournalEvent;
use tenure_core::{How, JobId, State};
use tenure_store::StoreError;
use tenure_store::operate::{CancelJob, Canceled};

use crate::claim::draw_lease_no;
use crate::ending::{Ending, Endings, Insert, Report};
use crate::fault::{Result, corrupt};
use crate::journal::{self, Entry};
use crate::page;
use crate::row::blob;
use crate::show::{self, Found};
use crate::tx::Tx;

const REMOVE_READY: &str = include_str!("sql/remove_ready.sql");
const REQUEST_CANCEL: &str = include_str!("sql/request_cancel.sql");
const IS_CANCEL_REQUESTED: &str = include_str!("sql/is_cancel_requested.sql");

/// Which of these jobs somebody asked to cancel.
pub(crate) fn find_requests(tx: &Tx<'_>, jobs: &[JobId]) -> Result<Vec<JobId>> {
    let mut asked = Vec::new();
    for job in jobs {
        if tx.one(IS_CANCEL_REQUESTED, named_params! { ":job": blob(job) }, |_| Ok(()))?.is_some() {
            asked.push(*job);
        }
    }
    Ok(asked)
}

/// Ends a job, or asks its holder to.
pub(crate) fn cancel_job(tx: &Tx<'_>, request: &CancelJob) -> Result<Canceled> {
    let found = show::find_job(tx, &request.sight, request.job)?;
    match found.state {
        State::Waiting | State::Queued | State::Retryable => end_unheld(tx, request, &found),
        State::Running if request.force => end_held(tx, request),
        State::Running => ask(tx, request),
        State::Canceled => Ok(Canceled::Before),
        State::Succeeded | State::Failed | State::Dead => {
            let text = format!("job {} cannot be canceled: it is {}", request.job, found.state.as_str());
            Err(StoreError::Conflict(text).into())
        }
    }
}

/// A job leaves the line; its ready row is gone when this answers.
pub(crate) fn remove_ready(tx: &Tx<'_>, job: JobId) -> Result<()> {
    match tx.execute(REMOVE_READY, named_params! { ":job": blob(&job) })? {
        1 => Ok(()),
        rows => Err(corrupt(format!("job {job} has {rows} ready rows"))),
    }
}

fn end_unheld(tx: &Tx<'_>, request: &CancelJob, found: &Found) -> Result<Canceled> {
    remove_ready(tx, request.job)?;
    let lease = draw_lease_no(tx)?;
    Insert::open(tx)?.attempt(&Ending {
        job: request.job,
        lease,
        attempt: found.attempt,
        losses: found.losses,
        how: How::Canceled,
        worker: None,
        started_at: None,
        details: (None, None, None),
    })?;
    page::tell(tx, request.job, How::Canceled.code(), None)?;
    let event = JournalEvent::Ended(How::Canceled);
    journal::add(tx, &Entry { lease: Some(lease), ..Entry::said(event, &request.word) }, &[request.job])?;
    Ok(Canceled::Now)
}

/// Fences the holder: whatever it reports later meets the key of this ending.
fn end_held(tx: &Tx<'_>, request: &CancelJob) -> Result<Canceled> {
    let no_holder = || corrupt(format!("job {} runs and nobody holds it", request.job));
    let holder = show::find_holder(tx, request.job)?.ok_or_else(no_holder)?;
    let mut endings = Endings::open(tx, &holder.lease)?;
    let report = Report::unsaid(How::Canceled);
    endings.end(holder.grant, &report)?.ok_or_else(no_holder)?;
    endings.record(None, &request.word)?;
    Ok(Canceled::Now)
}

fn ask(tx: &Tx<'_>, request: &CancelJob) -> Result<Canceled> {
    let params = named_params! { ":job": blob(&request.job), ":now": tx.now.as_micros() };
    if tx.execute(REQUEST_CANCEL, params)? > 0 {
        journal::add(tx, &Entry::said(JournalEvent::CancelRequested, &request.word), &[request.job])?;
    }
    Ok(Canceled::Requested)
}
