//! Claim: due rows leave the line and come under one new lease.

use std::time::Duration;

use rusqlite::{Row, named_params};
use tenure_core::journal::JournalEvent;
use tenure_core::json::quote;
use tenure_core::name::GateName;
use tenure_core::{How, JobId, Json, LeaseNo, Line, Priority, Timestamp};
use tenure_store::StoreError;
use tenure_store::lease::{CLAIM_KIB_MAX, ClaimJobs, Claimed, ClaimedJob, EndJob, EndJobs, Ending as Report};
use tenure_store::lines::{Lines, Served};

use crate::end;
use crate::ending::{self, Ending};
use crate::fault::{Result, corrupt};
use crate::journal::{self, Entry};
use crate::lines::Round;
use crate::page;
use crate::queue;
use crate::row::{RulesReader, blob, ids_to_json, job_id, number, numbers_to_json, optional_word, text, time, word};
use crate::tx::Tx;

const CLAIM_JOBS: &str = include_str!("sql/claim_jobs.sql");
const TAKE_READY: &str = include_str!("sql/take_ready.sql");
const ADD_LEASE: &str = include_str!("sql/add_lease.sql");
const DRAW_LEASE_NO: &str = include_str!("sql/draw_lease_no.sql");
const NEWEST_LEASE: &str = include_str!("sql/newest_lease.sql");

/// Takes due jobs of one queue, most urgent first; where it has several lines, in turn, as far as their gates allow.
pub(crate) fn claim_jobs(tx: &Tx<'_>, lines: &Lines, request: &ClaimJobs) -> Result<Option<Claimed>> {
    let Some((queue, ttl, lined)) = queue::find_open(tx, &request.queue)? else { return Ok(None) };
    if !lined {
        let due = find_due(tx, queue, "", request.order(), request.limit, &mut Room::default())?;
        return grant(tx, request, queue, ttl, due);
    }
    // There is one writer: the next number is known before it is drawn.
    let lease = LeaseNo(newest_lease(tx)?.0 + 1);
    let mut due: Vec<Due> = Vec::new();
    let (mut round, mut room) = (Round::new(lines, request, queue), Room::default());
    loop {
        let mut parts = round.divide(tx, request.limit - due.len() as u32)?;
        if parts.is_empty() || room.is_full() {
            break;
        }
        for part in &mut parts {
            let found = find_due(tx, queue, part.served.share.line.as_str(), request.order(), part.most, &mut room)?;
            let kept = found.iter().filter(|due| !due.cancel_requested).count();
            part.take(tx, found.len() as u32, kept as u32, lease)?;
            let gate = part.gate.as_ref().map(|gate| gate.id);
            due.extend(found.into_iter().map(|due| Due { gate, ..due }));
        }
        let served: Vec<Served> = parts.into_iter().map(|part| part.served).collect();
        lines.served(&request.queue, &served);
    }
    due.sort_by_key(|due| (due.priority, due.run_at, due.id));
    let gated = due.iter().any(|due| due.gate.is_some() && !due.cancel_requested);
    let claimed = grant(tx, request, queue, ttl, due)?;
    match claimed.as_ref().map(|claimed| claimed.lease) {
        Some(drawn) if gated && drawn != lease => {
            Err(corrupt(format!("lease {drawn} was drawn where {lease} was next")))
        }
        _ => Ok(claimed),
    }
}

/// Puts what was taken under one new lease. Jobs with a cancel request are ended instead: request and retry may pass each
/// other, and here they meet again.
fn grant(tx: &Tx<'_>, request: &ClaimJobs, queue: i64, ttl: Duration, due: Vec<Due>) -> Result<Option<Claimed>> {
    if due.is_empty() {
        return Ok(None);
    }
    let (doomed, due): (Vec<Due>, Vec<Due>) = due.into_iter().partition(|due| due.cancel_requested);
    let canceled = cancel(tx, request, &doomed)?;
    if due.is_empty() {
        return Ok(Some(Claimed { lease: draw_lease_no(tx)?, ttl, jobs: Vec::new(), canceled }));
    }
    let lease = add_lease(tx, request, queue, ttl, &due)?;
    let (mut jobs, mut unreadable) = (Vec::with_capacity(due.len()), Vec::new());
    for Due { id, job, .. } in due {
        match job {
            Ok(job) => jobs.push(job),
            Err(why) => unreadable.push(EndJob::new(id, Report::Failed { error: why })),
        }
    }
    if !unreadable.is_empty() {
        end::end_jobs(tx, &EndJobs { worker: request.worker, lease, jobs: unreadable })?;
    }
    Ok(Some(Claimed { lease, ttl, jobs, canceled }))
}

/// A number from the sequence of the leases, for endings that have no lease.
pub(crate) fn draw_lease_no(tx: &Tx<'_>) -> Result<LeaseNo> {
    one_number(tx, DRAW_LEASE_NO)
}

/// The last number that was drawn.
pub(crate) fn newest_lease(tx: &Tx<'_>) -> Result<LeaseNo> {
    one_number(tx, NEWEST_LEASE)
}

fn one_number(tx: &Tx<'_>, sql: &'static str) -> Result<LeaseNo> {
    let number = tx.one(sql, &[], |row| Ok(LeaseNo(row.get(0)?)))?;
    number.ok_or_else(|| corrupt("sqlite_sequence has no row for lease"))
}

struct Due {
    id: JobId,
    run_at: Timestamp,
    priority: Priority,
    /// The number of the attempt that begins.
    attempt: u16,
    losses: u16,
    /// What the worker gets. A job that somebody wrote past the verbs and that cannot be read fails alone, or its queue
    /// would stand still; this is its error.
    job: std::result::Result<ClaimedJob, Json>,
    cancel_requested: bool,
    /// The gate it passes.
    gate: Option<i64>,
}

/// How much of [`CLAIM_KIB_MAX`] a claim has taken.
#[derive(Default)]
struct Room {
    kib: usize,
}

impl Room {
    fn is_full(&self) -> bool {
        self.kib >= CLAIM_KIB_MAX as usize
    }

    fn take(&mut self, payload_bytes: usize) {
        self.kib += payload_bytes.div_ceil(1 << 10).max(1);
    }
}

/// Reads the due rows of one line and deletes them.
fn find_due(
    tx: &Tx<'_>,
    queue: i64,
    line: &str,
    order: [Priority; 4],
    limit: u32,
    room: &mut Room,
) -> Result<Vec<Due>> {
    let limit = limit as usize;
    let mut due: Vec<Due> = Vec::with_capacity(limit);
    let mut rules = RulesReader::default();
    let mut claim = tx.statement(CLAIM_JOBS)?;
    for urgency in order {
        let left = limit - due.len();
        if left == 0 || room.is_full() {
            break;
        }
        let params = named_params! {
            ":queue": queue, ":line": line, ":priority": urgency.get(), ":now": tx.now.as_micros(), ":limit": left as i64,
        };
        let mut rows = claim.query(params)?;
        while !room.is_full()
            && let Some(row) = rows.next()?
        {
            let found = read(row, urgency, &mut rules)?;
            room.take(found.job.as_ref().map_or(0, |job| job.payload.as_str().len()));
            due.push(found);
        }
    }
    due.sort_by_key(|due| (due.priority, due.run_at, due.id));
    let mut take = tx.statement(TAKE_READY)?;
    for Due { id, priority, run_at, .. } in &due {
        let taken = take.execute(named_params! {
            ":queue": queue,
            ":line": line,
            ":priority": priority.get(),
            ":run_at": run_at.as_micros(),
            ":job": blob(id),
        })?;
        if taken != 1 {
            return Err(corrupt(format!("job {id} waits {taken} times in one place")));
        }
    }
    Ok(due)
}

fn read(row: &Row<'_>, priority: Priority, rules: &mut RulesReader) -> Result<Due> {
    let (id, run_at) = (job_id(row, 0)?, time(row, 1)?);
    let attempt = number::<i64, u16>(row, 2, "ready.attempt")?.saturating_add(1);
    let losses = number::<i64, u16>(row, 3, "ready.losses")?;
    let mut job = || -> Result<ClaimedJob> {
        Ok(ClaimedJob {
            id,
            tenant: word(row, 4)?,
            kind: word(row, 5)?,
            payload: Json::from_store(text(row, 6)?),
            priority,
            attempt,
            losses,
            rules: rules.read(row, 7, 8, 9)?,
            trace: row.get(10)?,
            gate: Line::from_store(text(row, 12)?).gate().map(GateName::new).transpose().map_err(StoreError::from)?,
            part: optional_word(row, 14)?,
            run_at,
            created_at: time(row, 11)?,
        })
    };
    let job = job().map_err(|fault| {
        let message = quote(&StoreError::from(fault).to_string());
        Json::from_store(format!("{{\"code\":\"unreadable\",\"message\":{message}}}"))
    });
    Ok(Due { id, run_at, priority, attempt, losses, job, cancel_requested: row.get(13)?, gate: None })
}

fn add_lease(tx: &Tx<'_>, request: &ClaimJobs, queue: i64, ttl: Duration, due: &[Due]) -> Result<LeaseNo> {
    let ids = ids_to_json(due.iter().map(|due| &due.id));
    let gated = due.iter().any(|due| due.gate.is_some());
    let gates = gated.then(|| numbers_to_json(due.iter().map(|due| due.gate.unwrap_or(0))));
    let params = named_params! {
        ":queue": queue,
        ":worker": request.worker.0,
        ":now": tx.now.as_micros(),
        ":expires_at": tx.now.plus(ttl).as_micros(),
        ":jobs": ids,
        ":attempts": numbers_to_json(due.iter().map(|due| due.attempt)),
        ":losses": numbers_to_json(due.iter().map(|due| due.losses)),
        ":gates": gates,
    };
    let lease = tx.one(ADD_LEASE, params, |row| Ok(LeaseNo(row.get(0)?)))?;
    let lease = lease.ok_or_else(|| corrupt("a lease was added without a number"))?;
    let entry = Entry { worker: Some(request.worker), lease: Some(lease), ..Entry::new(JournalEvent::Claimed) };
    journal::add_json(tx, &entry, &ids)?;
    Ok(lease)
}

/// Ends what somebody asked to cancel, uncharged: these jobs never ran again.
fn cancel(tx: &Tx<'_>, request: &ClaimJobs, doomed: &[Due]) -> Result<Vec<JobId>> {
    if doomed.is_empty() {
        return Ok(Vec::new());
    }
    let lease = draw_lease_no(tx)?;
    let mut insert = ending::Insert::open(tx)?;
    for Due { id, attempt, losses, .. } in doomed {
        insert.attempt(&Ending {
            job: *id,
            lease,
            attempt: attempt.saturating_sub(1),
            losses: *losses,
            how: How::Canceled,
            worker: Some(request.worker),
            started_at: None,
            details: (None, None, None),
        })?;
        page::tell(tx, *id, How::Canceled.code(), None)?;
    }
    let jobs: Vec<JobId> = doomed.iter().map(|due| due.id).collect();
    let event = JournalEvent::Ended(How::Canceled);
    let entry = Entry { worker: Some(request.worker), lease: Some(lease), ..Entry::new(event) };
    journal::add(tx, &entry, &jobs)?;
    Ok(jobs)
}
