//! Jobs as arrays of columns: how an enqueue travels.

use tenure_core::new_job::Due;
use tenure_core::{Backoff, GateName, JobId, NewJob, Part};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call::Param;
use crate::value::{Moment, get, millis, state};

/// Whether none of them has a key or a callback: such jobs meet nobody.
pub(crate) fn is_plain(jobs: &[NewJob]) -> bool {
    jobs.iter().all(|job| job.unique.is_none() && job.idempotency_key.is_none() && job.callback_url.is_none())
}

/// The columns of `tenure.enqueue_rows`.
#[derive(Default)]
pub(crate) struct Columns<'a> {
    ids: Vec<Uuid>,
    tenants: Vec<&'a str>,
    queues: Vec<&'a str>,
    kinds: Vec<&'a str>,
    payloads: Vec<&'a str>,
    priorities: Vec<i16>,
    run_ats: Vec<Option<Moment>>,
    delays: Vec<Option<i64>>,
    waiting: Vec<bool>,
    max_attempts: Vec<i16>,
    max_losses: Vec<i16>,
    backoffs: Vec<Option<String>>,
    traces: Vec<Option<&'a str>>,
    policies: Vec<Option<i16>>,
    windows: Vec<Option<i64>>,
    scopes: Vec<Option<&'a str>>,
    keys: Vec<Option<&'a str>>,
    idempotency_keys: Vec<Option<&'a str>>,
    /// Empty as long as nobody has one.
    gates: Option<Vec<Option<&'a str>>>,
    parts: Option<Vec<String>>,
    /// Empty as long as nobody has one.
    callbacks: Option<Vec<Option<&'a str>>>,
    /// KiB of each payload's text, rounded up.
    kibs: Vec<i16>,
    now: Option<Moment>,
}

impl<'a> Columns<'a> {
    /// Checks each job and lays them out. Ids are held against the clock given, or later against the server's.
    pub(crate) fn new(jobs: &'a [NewJob], now: Option<Moment>) -> Result<Self, StoreError> {
        let mut columns = Self { now, ..Self::default() };
        for job in jobs {
            job.check(now.map_or_else(|| job.id.made_at(), |moment| moment.0))?;
            columns.push(job);
        }
        Ok(columns)
    }

    /// The same for jobs that are parts of a run.
    pub(crate) fn of_run(jobs: &'a [NewJob], parts: &[Part], now: Option<Moment>) -> Result<Self, StoreError> {
        let parts = Some(parts.iter().map(Part::to_string).collect());
        Ok(Self { parts, ..Self::new(jobs, now)? })
    }

    fn push(&mut self, job: &'a NewJob) {
        let count = |value: u16| i16::try_from(value).unwrap_or(i16::MAX);
        let (run_at, delay) = match job.due {
            Due::Now | Due::WhenOpened => (None, None),
            Due::After(delay) => (None, Some(millis(delay))),
            Due::At(at) => (Some(Moment(at)), None),
        };
        self.ids.push(*job.id.as_uuid());
        self.tenants.push(job.tenant.as_str());
        self.queues.push(job.queue.as_str());
        self.kinds.push(job.kind.as_str());
        self.payloads.push(job.payload.as_str());
        self.kibs.push(i16::try_from(job.payload.bytes().div_ceil(1 << 10)).unwrap_or(i16::MAX).max(1));
        self.priorities.push(job.priority.get().into());
        self.run_ats.push(run_at);
        self.delays.push(delay);
        self.waiting.push(job.due == Due::WhenOpened);
        self.max_attempts.push(count(job.rules.max_attempts));
        self.max_losses.push(count(job.rules.max_losses));
        self.backoffs.push((job.rules.backoff != Backoff::default()).then(|| job.rules.backoff.to_string()));
        self.traces.push(job.trace.as_deref());
        let unique = job.unique.as_ref();
        self.policies.push(unique.map(|u| u.policy.code()));
        self.windows.push(unique.and_then(|u| u.policy.window()).map(millis));
        self.scopes.push(unique.map(|u| u.scope.as_deref().unwrap_or(job.kind.as_str())));
        self.keys.push(unique.map(|u| u.key.as_str()));
        self.idempotency_keys.push(job.idempotency_key.as_deref());
        let gate = job.gate.as_ref().map(GateName::as_str);
        let before = self.ids.len() - 1;
        push_rare(&mut self.gates, gate, before);
        push_rare(&mut self.callbacks, job.callback_url.as_deref(), before);
    }

    /// The parameters of `enqueue_jobs.sql`.
    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        let keys: [Param<'_>; 5] = [
            (&self.policies, Type::INT2_ARRAY),
            (&self.windows, Type::INT8_ARRAY),
            (&self.scopes, Type::TEXT_ARRAY),
            (&self.keys, Type::TEXT_ARRAY),
            (&self.idempotency_keys, Type::TEXT_ARRAY),
        ];
        let parts: [Param<'_>; 3] =
            [(&self.parts, Type::TEXT_ARRAY), (&self.callbacks, Type::TEXT_ARRAY), (&self.kibs, Type::INT2_ARRAY)];
        [self.plain().as_slice(), &keys, &self.rest(), &parts].concat()
    }

    /// The parameters of `enqueue_plain.sql`.
    pub(crate) fn plain_params(&self) -> Vec<Param<'_>> {
        [self.plain().as_slice(), &self.rest(), &[(&self.kibs as _, Type::INT2_ARRAY)]].concat()
    }

    fn plain(&self) -> [Param<'_>; 13] {
        [
            (&self.ids, Type::UUID_ARRAY),
            (&self.tenants, Type::TEXT_ARRAY),
            (&self.queues, Type::TEXT_ARRAY),
            (&self.kinds, Type::TEXT_ARRAY),
            (&self.payloads, Type::TEXT_ARRAY),
            (&self.priorities, Type::INT2_ARRAY),
            (&self.run_ats, Type::TIMESTAMPTZ_ARRAY),
            (&self.delays, Type::INT8_ARRAY),
            (&self.waiting, Type::BOOL_ARRAY),
            (&self.max_attempts, Type::INT2_ARRAY),
            (&self.max_losses, Type::INT2_ARRAY),
            (&self.backoffs, Type::TEXT_ARRAY),
            (&self.traces, Type::TEXT_ARRAY),
        ]
    }

    fn rest(&self) -> [Param<'_>; 2] {
        [(&self.now, Type::TIMESTAMPTZ), (&self.gates, Type::TEXT_ARRAY)]
    }

    /// The queues that got something, each once.
    pub(crate) fn queue_names(&self) -> Vec<&'a str> {
        let mut names = self.queues.clone();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// A value that most jobs do not have: there is no column before the first.
fn push_rare<'a>(column: &mut Option<Vec<Option<&'a str>>>, value: Option<&'a str>, before: usize) {
    if value.is_some() || column.is_some() {
        column.get_or_insert_with(|| vec![None; before]).push(value);
    }
}

/// Reads the answers, in the order of the jobs.
pub(crate) fn answers(rows: &[Row]) -> Result<Vec<Enqueued>, StoreError> {
    rows.iter()
        .map(|row| {
            let job = JobId::from_uuid(get(row, "job")?);
            if get(row, "created")? {
                return Ok(Enqueued::Created(job));
            }
            let state = get::<Option<&str>>(row, "state")?.map(state).transpose()?;
            Ok(Enqueued::Found { job, state })
        })
        .collect()
}
