//! Enqueue: the request, its keys and its place in the line, all or none.

use std::collections::HashMap;

use rusqlite::{CachedStatement, named_params};
use tenure_core::new_job::Due;
use tenure_core::{Backoff, JobId, NewJob, Part, Priority, State, Timestamp};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;

use crate::fault::{Result, corrupt};
use crate::keys::{self, Verdict};
use crate::lines;
use crate::queue::{self, Lining};
use crate::row::{blob, ready_code};
use crate::show;
use crate::tx::Tx;

const ADD_JOB: &str = include_str!("sql/add_job.sql");
const ADD_CALLBACK: &str = include_str!("sql/add_callback.sql");
const TENANT_OF: &str = include_str!("sql/tenant_of.sql");
const PUT_READY: &str = include_str!("sql/put_ready.sql");

/// When a waiting row is due: at the end of time, where no claim walks over it. Its job row keeps what was asked.
const NEVER: i64 = i64::MAX;

/// Stores checked jobs, in the order given: a later one of a batch finds an earlier one's key.
pub(crate) fn enqueue_jobs(tx: &Tx<'_>, jobs: &[NewJob]) -> Result<Vec<Enqueued>> {
    let mut batch = Batch::open(tx)?;
    jobs.iter().map(|job| batch.enqueue(job, None)).collect()
}

/// Jobs that are stored one after the other.
pub(crate) struct Batch<'t, 'c, 'j> {
    tx: &'t Tx<'c>,
    add_job: CachedStatement<'c>,
    line: Line<'t, 'c>,
    queues: HashMap<&'j str, (i64, Lining)>,
    /// How many more fit under a quota, by queue and, where it is fair, tenant.
    rooms: HashMap<(i64, Option<i64>), u32>,
    tenants: HashMap<&'j str, i64>,
    /// Quotas of tenants, where they have one of their own.
    own_quotas: HashMap<i64, Option<u32>>,
    backoff: Option<(&'j Backoff, String)>,
}

impl<'t, 'c, 'j> Batch<'t, 'c, 'j> {
    /// Prepares for many.
    pub(crate) fn open(tx: &'t Tx<'c>) -> Result<Self> {
        Ok(Self {
            tx,
            add_job: tx.statement(ADD_JOB)?,
            line: Line::open(tx)?,
            queues: HashMap::new(),
            rooms: HashMap::new(),
            tenants: HashMap::new(),
            own_quotas: HashMap::new(),
            backoff: None,
        })
    }

    /// Stores a checked job, perhaps as a part of a run.
    pub(crate) fn enqueue(&mut self, job: &'j NewJob, part: Option<&Part>) -> Result<Enqueued> {
        let tenant = match self.tenants.get(job.tenant.as_str()) {
            Some(known) => *known,
            None => *self.tenants.entry(job.tenant.as_str()).or_insert(queue::ensure_tenant(self.tx, &job.tenant)?),
        };
        if job.unique.is_some() || job.idempotency_key.is_some() {
            // Sent twice is the same job, whatever became of its keys since.
            if let Some(state) = show::state_of(self.tx, job.id)? {
                return self.found(tenant, job, Some(state));
            }
            match keys::look(self.tx, tenant, job)? {
                Verdict::Found(found) => return Ok(found),
                Verdict::Free => keys::take(self.tx, tenant, job)?,
            }
        }
        self.insert(tenant, job, part)
    }

    /// The job was sent before; unless its id is another tenant's.
    fn found(&self, tenant: i64, job: &NewJob, state: Option<State>) -> Result<Enqueued> {
        let owner = self.tx.one(TENANT_OF, named_params! { ":id": blob(&job.id) }, |row| Ok(row.get::<_, i64>(0)?))?;
        match owner == Some(tenant) {
            true => Ok(Enqueued::Found { job: job.id, state }),
            false => Err(job.id.in_use().into()),
        }
    }

    fn insert(&mut self, tenant: i64, job: &'j NewJob, part: Option<&Part>) -> Result<Enqueued> {
        let (queue, lining) = self.queue(job)?;
        let line = tenure_core::Line::new(lining.fair.then_some(tenant), job.gate.as_ref());
        if !line.is_only() && !lining.lined {
            lines::set_lined(self.tx, queue)?;
            self.queues.insert(job.queue.as_str(), (queue, Lining { lined: true, ..lining }));
        }
        if self.backoff.as_ref().is_none_or(|(known, _)| *known != &job.rules.backoff) {
            self.backoff = Some((&job.rules.backoff, job.rules.backoff.to_string()));
        }
        let backoff = self.backoff.as_ref().map(|(_, line)| line.as_str());
        let run_at = job.run_at(self.tx.now);
        let added = self.add_job.execute(named_params! {
            ":id": blob(&job.id),
            ":tenant": tenant,
            ":queue": queue,
            ":line": line.as_str(),
            ":kind": job.kind.as_str(),
            ":priority": job.priority.get(),
            ":payload": job.payload.as_str(),
            ":max_attempts": job.rules.max_attempts,
            ":max_losses": job.rules.max_losses,
            ":backoff": backoff,
            ":scope": keys::scope(job),
            ":key": job.unique.as_ref().map(|unique| unique.key.as_str()),
            ":policy": job.unique.as_ref().map(|unique| unique.policy.code()),
            ":trace": job.trace,
            ":part": part.map(Part::to_string),
            ":run_at": run_at.as_micros(),
            ":now": self.tx.now.as_micros(),
        })?;
        if added == 0 {
            let state = show::state_of(self.tx, job.id)?;
            return self.found(tenant, job, state);
        }
        // A consolidate always has room: its run could not end without it.
        if let Some(quota) = self.quota(tenant, lining)?
            && !matches!(part, Some(Part::Consolidate(_)))
        {
            self.take_room(queue, lining.fair.then_some(tenant), quota, job)?;
        }
        if let Some(url) = &job.callback_url {
            self.tx.execute(ADD_CALLBACK, named_params! { ":job": blob(&job.id), ":url": url })?;
        }
        let state = if job.due == Due::WhenOpened { State::Waiting } else { State::Queued };
        let (line, priority) = (line.as_str(), job.priority);
        self.line.put(&Place { queue, line, priority, run_at, job: job.id, attempt: 0, losses: 0, state })?;
        Ok(Enqueued::Created(job.id))
    }

    /// The queue of a job, and how its jobs wait.
    fn queue(&mut self, job: &'j NewJob) -> Result<(i64, Lining)> {
        if let Some(known) = self.queues.get(job.queue.as_str()) {
            return Ok(*known);
        }
        let queue = queue::ensure(self.tx, &job.queue)?;
        let lining = queue::lining(self.tx, queue)?;
        Ok(*self.queues.entry(job.queue.as_str()).or_insert((queue, lining)))
    }

    /// How many jobs may be pending: a tenant's own quota goes before that of a fair queue.
    fn quota(&mut self, tenant: i64, lining: Lining) -> Result<Option<u32>> {
        if !lining.fair {
            return Ok(lining.quota);
        }
        let own = match self.own_quotas.get(&tenant) {
            Some(known) => *known,
            None => *self.own_quotas.entry(tenant).or_insert(queue::tenant_quota(self.tx, tenant)?),
        };
        Ok(own.or(lining.quota))
    }

    /// Counts one more pending job, unless the queue is full. The batch counts what was there once.
    fn take_room(&mut self, queue: i64, tenant: Option<i64>, quota: u32, job: &NewJob) -> Result<()> {
        let room = match self.rooms.get(&(queue, tenant)) {
            Some(known) => *known,
            None => queue::room(self.tx, queue, tenant, quota)?,
        };
        let whom = tenant.map(|_| &job.tenant);
        let left = room.checked_sub(1).ok_or_else(|| StoreError::full(&job.queue, whom, quota))?;
        self.rooms.insert((queue, tenant), left);
        Ok(())
    }
}

/// A job's place in the line.
pub(crate) struct Place<'a> {
    /// Which queue.
    pub(crate) queue: i64,
    /// Which line in it.
    pub(crate) line: &'a str,
    /// How far in front.
    pub(crate) priority: Priority,
    /// Not before this; the past is now.
    pub(crate) run_at: Timestamp,
    /// Who.
    pub(crate) job: JobId,
    /// Attempts charged.
    pub(crate) attempt: u16,
    /// Leases lost.
    pub(crate) losses: u16,
    /// Waiting, queued or retryable.
    pub(crate) state: State,
}

/// The line of waiting jobs, open for writing.
pub(crate) struct Line<'t, 'c> {
    tx: &'t Tx<'c>,
    put_ready: CachedStatement<'c>,
}

impl<'t, 'c> Line<'t, 'c> {
    /// Prepares for many.
    pub(crate) fn open(tx: &'t Tx<'c>) -> Result<Self> {
        Ok(Self { tx, put_ready: tx.statement(PUT_READY)? })
    }

    /// Puts one job into its place.
    pub(crate) fn put(&mut self, place: &Place<'_>) -> Result<()> {
        let state = ready_code(place.state).ok_or_else(|| corrupt(format!("{:?} does not wait", place.state)))?;
        let run_at = if place.state == State::Waiting { NEVER } else { place.run_at.max(self.tx.now).as_micros() };
        self.put_ready.execute(named_params! {
            ":queue": place.queue,
            ":line": place.line,
            ":priority": place.priority.get(),
            ":run_at": run_at,
            ":job": blob(&place.job),
            ":attempt": place.attempt,
            ":losses": place.losses,
            ":state": state,
        })?;
        self.tx.wake();
        Ok(())
    }
}
