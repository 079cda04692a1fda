//! From rows of the journal to events: what is told, and its body.
//!
//! ```json
//! { "event_id": "evt_4711_01933c5e-…", "event_type": "job.succeeded",
//!   "aggregate_type": "job", "aggregate_id": "01933c5e-…", "occurred_at": "2026-11-15T09:30:00Z",
//!   "payload": { "kind": "invoice.send", "queue": "mail", "attempt": 1, "fence": 42, "result": … } }
//! ```
//!
//! The id is made of the row and its subject: the same in every delivery, to every endpoint, however often it is told.
//! `fence` grows with every attempt of a job, so that a receiver can refuse what is older than what it has seen.

use serde::Serialize;
use serde_json::value::RawValue;
use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::webhook::{CALLBACK_EVENTS, event_type};
use tenure_core::{EndpointId, JobId, Json, TenantName, Timestamp};
use tenure_store::run::RunRecord;
use tenure_store::webhook::{EndpointRecord, EventSubject, NewDelivery};

/// Something that happened, ready to be told.
#[derive(Debug, Clone)]
pub struct Event {
    journal: i64,
    at: Timestamp,
    id: String,
    event_type: &'static str,
    subject: String,
    tenant: TenantName,
    /// Where the job's producer wants to be told, if it does.
    callback_url: Option<String>,
    /// The trace of the job.
    trace: Option<String>,
    /// The one endpoint it is for, whatever that one asked for.
    only: Option<EndpointId>,
    body: String,
}

/// As it is sent.
#[derive(Serialize)]
struct Body<'a, P> {
    event_id: &'a str,
    event_type: &'a str,
    aggregate_type: &'a str,
    aggregate_id: &'a str,
    occurred_at: String,
    payload: P,
}

/// What is told of a job. Values of handlers go out as they came in, digit for digit.
#[derive(Serialize)]
struct JobPayload<'a> {
    job: &'a str,
    kind: &'a str,
    queue: &'a str,
    tenant: &'a str,
    fence: Option<i64>,
    attempt: Option<u16>,
    started_at: Option<String>,
    ended_at: Option<String>,
    error: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    usage: Option<&'a RawValue>,
    /// Names of values that are too long for a body.
    omitted: &'a [&'static str],
}

/// What is told of a run, with its counts as they are now.
#[derive(Serialize)]
struct RunPayload<'a> {
    run: &'a str,
    tenant: &'a str,
    owner: Option<&'a str>,
    source: Option<&'a str>,
    state: &'a str,
    total: u64,
    done: u64,
    failed: u64,
    canceled: u64,
    rows: u64,
}

/// What is told of an endpoint.
#[derive(Serialize)]
struct EndpointPayload<'a> {
    endpoint: &'a str,
    tenant: &'a str,
    why: Option<&'a str>,
}

impl Event {
    /// What happened to a job.
    pub(crate) fn of_job(row: &JournalRow, subject: &EventSubject) -> Option<Self> {
        let job = subject.job.to_string();
        // By the time a claim is told its attempt may have ended: that is told by another event.
        let ended = matches!(row.event, JournalEvent::Ended(_));
        let attempt = subject.attempt.as_ref().filter(|_| ended);
        let read = |value: Option<&Option<Json>>| {
            let value = value.and_then(Option::as_ref)?;
            serde_json::from_str::<&RawValue>(value.as_str()).ok().map(RawValue::to_owned)
        };
        let error = read(attempt.map(|attempt| &attempt.error));
        let result = read(attempt.map(|attempt| &attempt.result));
        let usage = read(attempt.map(|attempt| &attempt.usage));
        let payload = JobPayload {
            job: &job,
            kind: subject.kind.as_str(),
            queue: subject.queue.as_str(),
            tenant: subject.tenant.as_str(),
            fence: row.lease.map(|lease| lease.0),
            attempt: attempt.map(|attempt| attempt.attempt),
            started_at: attempt.and_then(|attempt| attempt.started_at).map(|at| at.to_string()),
            ended_at: attempt.map(|attempt| attempt.ended_at.to_string()),
            error: error.as_deref(),
            result: result.as_deref(),
            usage: usage.as_deref(),
            omitted: if ended { &subject.omitted } else { &[] },
        };
        let event = Self::new(row, "job", &job, &subject.tenant, payload)?;
        let is_end = CALLBACK_EVENTS.contains(&event.event_type);
        let callback_url = subject.callback_url.clone().filter(|_| is_end);
        Some(Self { callback_url, trace: subject.trace.clone(), ..event })
    }

    /// What happened to a run.
    pub(crate) fn of_run(row: &JournalRow, record: &RunRecord) -> Option<Self> {
        let (id, run) = (record.id.to_string(), &record.run);
        let payload = RunPayload {
            run: &id,
            tenant: record.tenant.as_str(),
            owner: record.owner.as_deref(),
            source: record.source.as_deref(),
            state: run.state.as_str(),
            total: run.total,
            done: run.done,
            failed: run.failed,
            canceled: run.canceled,
            rows: record.rows,
        };
        Self::new(row, "run", &id, &record.tenant, payload)
    }

    /// What happened to an endpoint: that it was disabled is told to the tenant's others, a ping to itself.
    pub(crate) fn of_endpoint(row: &JournalRow) -> Option<Self> {
        let details: serde_json::Value = serde_json::from_str(row.details.as_ref()?.as_str()).ok()?;
        let said = |name: &str| details.get(name).and_then(serde_json::Value::as_str);
        let endpoint: EndpointId = said("endpoint")?.parse().ok()?;
        let tenant: TenantName = said("tenant")?.parse().ok()?;
        let id = endpoint.to_string();
        let payload = EndpointPayload { endpoint: &id, tenant: tenant.as_str(), why: said("why") };
        let event = Self::new(row, "webhook", &id, &tenant, payload)?;
        let only = (event.event_type == "webhook.pinged").then_some(endpoint);
        Some(Self { only, ..event })
    }

    fn new(
        row: &JournalRow,
        aggregate_type: &str,
        subject: &str,
        tenant: &TenantName,
        payload: impl Serialize,
    ) -> Option<Self> {
        let event_type = event_type(row.event)?;
        let id = format!("evt_{}_{subject}", row.id);
        let body = Body {
            event_id: &id,
            event_type,
            aggregate_type,
            aggregate_id: subject,
            occurred_at: row.at.to_string(),
            payload,
        };
        // Text, numbers and documents that were read before: there is nothing that could not be written.
        let body = serde_json::to_string(&body).ok()?;
        let (subject, tenant) = (subject.to_owned(), tenant.clone());
        let (journal, at) = (row.id, row.at);
        Some(Self { journal, at, id, event_type, subject, tenant, callback_url: None, trace: None, only: None, body })
    }

    /// The row of the journal that it comes from.
    pub(crate) const fn journal(&self) -> i64 {
        self.journal
    }

    /// Whether an endpoint is told.
    pub(crate) fn concerns(&self, endpoint: &EndpointRecord) -> bool {
        let wants = match self.only {
            Some(only) => endpoint.id == only,
            None => {
                let is_reached = endpoint.url.is_some() || self.callback_url.is_some();
                is_reached && endpoint.events.contain(self.event_type)
            }
        };
        let listens = endpoint.listens_since <= self.at && endpoint.disabled.is_none();
        wants && listens && endpoint.tenant == self.tenant
    }

    /// How much there is to store for each endpoint that is told.
    pub(crate) fn bytes(&self) -> usize {
        self.body.len()
    }

    /// Its delivery to an endpoint.
    pub(crate) fn delivery(&self, job: JobId, endpoint: &EndpointRecord) -> NewDelivery {
        NewDelivery {
            job,
            endpoint: endpoint.id,
            journal: self.journal,
            subject: self.subject.clone(),
            event_id: self.id.clone(),
            event_type: self.event_type.to_owned(),
            callback_url: self.callback_url.clone().filter(|_| endpoint.url.is_none()),
            trace: self.trace.clone(),
            body: self.body.clone(),
        }
    }
}
