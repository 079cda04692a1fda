//! Jobs as arrays of columns: how an enqueue travels.

use tenure_core::new_job::Due;
use tenure_core::{Backoff, JobId, NewJob};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::call::Param;
use crate::value::{Moment, get, millis, state};

/// The columns of `tenure.enqueue_rows`.
#[derive(Default)]
pub(crate) struct Columns {
    ids: Vec<Uuid>,
    tenants: Vec<String>,
    queues: Vec<String>,
    kinds: Vec<String>,
    payloads: Vec<String>,
    priorities: Vec<i16>,
    run_ats: Vec<Option<Moment>>,
    delays: Vec<Option<i64>>,
    waiting: Vec<bool>,
    max_attempts: Vec<i16>,
    max_losses: Vec<i16>,
    backoffs: Vec<Option<String>>,
    traces: Vec<Option<String>>,
    policies: Vec<Option<i16>>,
    windows: Vec<Option<i64>>,
    scopes: Vec<Option<String>>,
    keys: Vec<Option<String>>,
    idempotency_keys: Vec<Option<String>>,
    now: Option<Moment>,
}

impl Columns {
    /// Checks each job and lays them out. Ids are held against the clock given, or later against the server's.
    pub(crate) fn new(jobs: &[NewJob], now: Option<Moment>) -> Result<Self, StoreError> {
        let mut columns = Self { now, ..Self::default() };
        for job in jobs {
            job.check(now.map_or_else(|| job.id.made_at(), |moment| moment.0))?;
            columns.push(job);
        }
        Ok(columns)
    }

    fn push(&mut self, job: &NewJob) {
        let count = |value: u16| i16::try_from(value).unwrap_or(i16::MAX);
        let (run_at, delay) = match job.due {
            Due::Now | Due::WhenOpened => (None, None),
            Due::After(delay) => (None, Some(millis(delay))),
            Due::At(at) => (Some(Moment(at)), None),
        };
        self.ids.push(*job.id.as_uuid());
        self.tenants.push(job.tenant.to_string());
        self.queues.push(job.queue.to_string());
        self.kinds.push(job.kind.to_string());
        self.payloads.push(job.payload.to_string());
        self.priorities.push(job.priority.get().into());
        self.run_ats.push(run_at);
        self.delays.push(delay);
        self.waiting.push(job.due == Due::WhenOpened);
        self.max_attempts.push(count(job.rules.max_attempts));
        self.max_losses.push(count(job.rules.max_losses));
        self.backoffs.push((job.rules.backoff != Backoff::default()).then(|| job.rules.backoff.to_string()));
        self.traces.push(job.trace.clone());
        let unique = job.unique.as_ref();
        self.policies.push(unique.map(|u| u.policy.code()));
        self.windows.push(unique.and_then(|u| u.policy.window()).map(millis));
        self.scopes.push(unique.map(|u| u.scope.clone().unwrap_or_else(|| job.kind.to_string())));
        self.keys.push(unique.map(|u| u.key.clone()));
        self.idempotency_keys.push(job.idempotency_key.clone());
    }

    /// The parameters of `enqueue_jobs.sql`.
    pub(crate) fn params(&self) -> [Param<'_>; 19] {
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
            (&self.policies, Type::INT2_ARRAY),
            (&self.windows, Type::INT8_ARRAY),
            (&self.scopes, Type::TEXT_ARRAY),
            (&self.keys, Type::TEXT_ARRAY),
            (&self.idempotency_keys, Type::TEXT_ARRAY),
            (&self.now, Type::TIMESTAMPTZ),
        ]
    }

    /// The queues that got something, each once.
    pub(crate) fn queue_names(&self) -> Vec<String> {
        let mut names = self.queues.clone();
        names.sort_unstable();
        names.dedup();
        names
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
