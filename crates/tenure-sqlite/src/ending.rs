//! What every ending of a held job shares: complete, fail, snooze, release, loss, forced cancel.
//!
//! The key (job, lease) decides everything. An ending inserts its `attempt` row; if one is there already, somebody was
//! first and nothing else happens. What follows, a ready row or a journal entry, comes from what was really inserted.

use std::time::Duration;

use rusqlite::{CachedStatement, Row, named_params};
use tenure_core::journal::JournalEvent;
use tenure_core::{Health, How, JobId, Json, LeaseNo, Priority, Timestamp, WorkerId};
use tenure_store::operate::Word;

use crate::enqueue::{Line, Place};
use crate::fault::{Result, corrupt};
use crate::gate;
use crate::journal::{self, Entry};
use crate::page;
use crate::row::{blob, ids_from_json, number, numbers_from_json, optional_text, priority, text, time};
use crate::tx::Tx;
use crate::usage;

const END_ATTEMPT: &str = include_str!("sql/end_attempt.sql");
const JUDGE_JOB: &str = include_str!("sql/judge_job.sql");

/// A lease as it stands in its row.
pub(crate) struct Lease {
    pub(crate) no: LeaseNo,
    queue: i64,
    pub(crate) worker: WorkerId,
    pub(crate) claimed_at: Timestamp,
    /// Whether jobs of its queue may be part of runs.
    parted: bool,
    /// What it lists; never changes.
    pub(crate) grants: Vec<Grant>,
}

/// One job under a lease.
#[derive(Clone, Copy)]
pub(crate) struct Grant {
    pub(crate) job: JobId,
    pub(crate) attempt: u16,
    pub(crate) losses: u16,
    /// The gate it passed.
    pub(crate) gate: Option<i64>,
}

/// What a holder, the reclaimer or an operator says about a grant.
pub(crate) struct Report<'a> {
    pub(crate) how: How,
    /// Before it is due again, if it goes back. A loss waits by its own rule.
    pub(crate) delay: Duration,
    pub(crate) details: Details<'a>,
    /// How the resource behind its gate did, and until when it wants silence.
    pub(crate) health: Option<Health>,
    pub(crate) hold: Option<Timestamp>,
}

impl Report<'_> {
    /// An ending that nobody reported: it says nothing of gates, and nothing else.
    pub(crate) fn unsaid(how: How) -> Self {
        Self { how, delay: Duration::ZERO, details: (None, None, None), health: None, hold: None }
    }
}

/// Error, result and usage.
pub(crate) type Details<'a> = (Option<&'a Json>, Option<&'a Json>, Option<&'a Json>);

/// An `attempt` row to be.
pub(crate) struct Ending<'a> {
    pub(crate) job: JobId,
    pub(crate) lease: LeaseNo,
    pub(crate) attempt: u16,
    pub(crate) losses: u16,
    pub(crate) how: How,
    pub(crate) worker: Option<WorkerId>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) details: Details<'a>,
}

/// Ends grants of one lease and writes them down.
pub(crate) struct Endings<'t, 'c, 'l> {
    tx: &'t Tx<'c>,
    lease: &'l Lease,
    insert: Insert<'t, 'c>,
    ended: Vec<(How, Vec<JobId>)>,
}

impl<'t, 'c, 'l> Endings<'t, 'c, 'l> {
    /// Prepares for many.
    pub(crate) fn open(tx: &'t Tx<'c>, lease: &'l Lease) -> Result<Self> {
        Ok(Self { tx, lease, insert: Insert::open(tx)?, ended: Vec::new() })
    }

    /// Ends one grant; answers how, or `None` when it had ended before.
    pub(crate) fn end(&mut self, grant: Grant, report: &Report<'_>) -> Result<Option<How>> {
        let losses = grant.losses.saturating_add(u16::from(report.how == How::Lost));
        let grant = Grant { losses, ..grant };
        let judged = if report.how.is_final() { None } else { Some(judge(self.tx, grant.job)?) };
        let how = judged.as_ref().map_or(report.how, |judged| judged.decide(&grant, report.how));
        let inserted = self.insert.attempt(&Ending {
            job: grant.job,
            lease: self.lease.no,
            attempt: grant.attempt,
            losses,
            how,
            worker: Some(self.lease.worker),
            started_at: Some(self.lease.claimed_at),
            details: report.details,
        })?;
        if !inserted {
            return Ok(None);
        }
        if self.lease.parted && how.is_final() {
            page::tell(self.tx, grant.job, how.code(), report.details.0)?;
        }
        if let Some(gate) = grant.gate {
            gate::leave(self.tx, gate, self.lease.no, report.health, report.hold)?;
        }
        if let Some(judged) = judged.filter(|_| !how.is_final()) {
            let delay = if how == How::Lost { tenure_core::apply::loss_delay(losses) } else { report.delay };
            Line::open(self.tx)?.put(&Place {
                queue: self.lease.queue,
                line: &judged.line,
                priority: judged.priority,
                run_at: self.tx.now.plus(delay),
                job: grant.job,
                attempt: grant.attempt.saturating_sub(u16::from(how.is_uncharged())),
                losses,
                state: how.leads_to(),
            })?;
        }
        match self.ended.iter_mut().find(|(known, _)| *known == how) {
            Some((_, jobs)) => jobs.push(grant.job),
            None => self.ended.push((how, vec![grant.job])),
        }
        Ok(Some(how))
    }

    /// Writes the journal, a row for each way of ending.
    pub(crate) fn record(self, by: Option<WorkerId>, said: &Word) -> Result<()> {
        for (how, jobs) in &self.ended {
            let event = JournalEvent::Ended(*how);
            let entry = Entry { worker: by, lease: Some(self.lease.no), ..Entry::said(event, said) };
            journal::add(self.tx, &entry, jobs)?;
        }
        Ok(())
    }
}

/// The one statement that ends an attempt.
pub(crate) struct Insert<'t, 'c> {
    tx: &'t Tx<'c>,
    statement: CachedStatement<'c>,
}

impl<'t, 'c> Insert<'t, 'c> {
    /// Prepares for many.
    pub(crate) fn open(tx: &'t Tx<'c>) -> Result<Self> {
        Ok(Self { tx, statement: tx.statement(END_ATTEMPT)? })
    }

    /// Inserts one; `false` when this grant has ended before.
    pub(crate) fn attempt(&mut self, ending: &Ending<'_>) -> Result<bool> {
        let (error, result, usage) = ending.details;
        let inserted = self.statement.execute(named_params! {
            ":job": blob(&ending.job),
            ":lease": ending.lease.0,
            ":attempt": ending.attempt,
            ":losses": ending.losses,
            ":how": ending.how.code(),
            ":final": ending.how.is_final(),
            ":worker": ending.worker.map(|worker| worker.0),
            ":started_at": ending.started_at.map(Timestamp::as_micros),
            ":now": self.tx.now.as_micros(),
            ":error": error.map(Json::as_str),
            ":result": result.map(Json::as_str),
            ":usage": usage.map(Json::as_str),
        })?;
        if let Some(usage) = usage.filter(|_| inserted > 0) {
            usage::add_usage(self.tx, ending.job, usage)?;
        }
        Ok(inserted > 0)
    }
}

/// What decides about a job that is not done.
struct Judged {
    line: String,
    priority: Priority,
    max_attempts: u16,
    max_losses: u16,
    cancel_requested: bool,
}

impl Judged {
    /// The rules of `tenure_core::apply`: limits first, then a requested cancel wins over putting the job back.
    fn decide(&self, grant: &Grant, how: How) -> How {
        match how {
            How::Retry if grant.attempt >= self.max_attempts => How::Dead,
            How::Lost if grant.losses >= self.max_losses => How::Dead,
            _ if self.cancel_requested => How::Canceled,
            how => how,
        }
    }
}

fn judge(tx: &Tx<'_>, job: JobId) -> Result<Judged> {
    let judged = tx.one(JUDGE_JOB, named_params! { ":job": blob(&job) }, |row| {
        Ok(Judged {
            line: row.get(0)?,
            priority: priority(row, 1)?,
            max_attempts: number::<i64, u16>(row, 2, "job.max_attempts")?,
            max_losses: number::<i64, u16>(row, 3, "job.max_losses")?,
            cancel_requested: row.get(4)?,
        })
    })?;
    judged.ok_or_else(|| corrupt(format!("a lease holds job {job}, which is not there")))
}

impl Lease {
    /// Reads the first nine columns of every lease statement.
    pub(crate) fn read(row: &Row<'_>) -> Result<Self> {
        let no = LeaseNo(row.get(0)?);
        let jobs = ids_from_json(text(row, 4)?)?;
        let attempts: Vec<u16> = numbers_from_json(text(row, 5)?)?;
        let losses: Vec<u16> = numbers_from_json(text(row, 6)?)?;
        if jobs.len() != attempts.len() || jobs.len() != losses.len() {
            return Err(corrupt(format!("lease {no} lists {} jobs with {} attempts", jobs.len(), attempts.len())));
        }
        let gates: Vec<i64> = optional_text(row, 7)?.map_or(Ok(Vec::new()), numbers_from_json)?;
        let gate = |at: usize| gates.get(at).copied().filter(|gate| *gate > 0);
        let numbers = attempts.into_iter().zip(losses).enumerate();
        let grant = |(job, (at, (attempt, losses)))| Grant { job, attempt, losses, gate: gate(at) };
        let grants = jobs.into_iter().zip(numbers).map(grant);
        Ok(Self {
            no,
            queue: row.get(1)?,
            worker: WorkerId(row.get(2)?),
            claimed_at: time(row, 3)?,
            parted: row.get(8)?,
            grants: grants.collect(),
        })
    }
}
