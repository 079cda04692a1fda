//! What the journal made for endpoints, and what came of it.

use std::time::Duration;

use tenure_core::apply::Rules;
use tenure_core::name::{GateName, KindName, QueueName, TenantName};
use tenure_core::webhook::{DELIVERY_KIND, OWN_QUEUE};
use tenure_core::{EndpointId, Invalid, JobId, Json, LeaseNo, NewJob, Timestamp};

use crate::operate::Word;
use crate::record::{AttemptRecord, Sight};

/// Longest error, result or usage that is told; whoever wants it asks for the job.
pub const VALUE_BYTES_MAX: usize = 16 << 10;
/// Most tries that a delivery keeps; those after them are not written down.
pub const TRIES_MAX: usize = 50;

/// How far the journal is told: rows of seals before `seal`, and those of `seal` up to the id `after`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// The seal that is being read, or the one to come.
    pub seal: i64,
    /// The last row of it that was told.
    pub after: i64,
}

/// Whom an event of a job concerns: asked for many at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventSubject {
    /// Which job.
    pub job: JobId,
    /// Under which lease, as it was asked.
    pub lease: Option<LeaseNo>,
    /// Whose it is.
    pub tenant: TenantName,
    /// Where it waited.
    pub queue: QueueName,
    /// What it asked for.
    pub kind: KindName,
    /// Where its producer wants to be told how it ended.
    pub callback_url: Option<String>,
    /// The trace it belongs to.
    pub trace: Option<String>,
    /// The attempt that ended under that lease, without what is longer than [`VALUE_BYTES_MAX`].
    pub attempt: Option<AttemptRecord>,
    /// What was left out: `error`, `result`, `usage`.
    pub omitted: Vec<&'static str>,
}

/// One event for one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// The job that will send it; its own name, too.
    pub job: JobId,
    /// To whom.
    pub endpoint: EndpointId,
    /// The journal row it comes from.
    pub journal: i64,
    /// What the event happened to: a job, a run or an endpoint, by its id.
    pub subject: String,
    /// Names the event to receivers, who drop what they have seen.
    pub event_id: String,
    /// What happened.
    pub event_type: String,
    /// Where to, for a job's callback.
    pub callback_url: Option<String>,
    /// The trace of what it tells about: the job that sends it carries it on.
    pub trace: Option<String>,
    /// As it is sent, byte for byte, in every try.
    pub body: String,
}

/// Move the cursor and store what follows from the rows it passes, all or nothing.
#[derive(Debug, Clone)]
pub struct PutDeliveries {
    /// Where it stood when the rows were read.
    pub from: Cursor,
    /// Where it stands then.
    pub to: Cursor,
    /// What is to be sent. One that is there already, or whose endpoint gets nothing, is left out.
    pub deliveries: Vec<NewDelivery>,
    /// Delivery jobs that ended without success, told by the same rows.
    pub failed: Vec<JobId>,
}

/// Where a delivery stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeliveryState {
    /// It is yet to be sent, or to be sent again.
    Pending,
    /// Its receiver took it.
    Delivered,
    /// It was given up.
    Failed,
}

/// One line of the delivery log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliverySummary {
    /// The job that sends it.
    pub job: JobId,
    /// To whom.
    pub endpoint: EndpointId,
    /// Whose it is.
    pub tenant: TenantName,
    /// Names the event.
    pub event_id: String,
    /// What happened.
    pub event_type: String,
    /// To what.
    pub subject: String,
    /// Where to, for a job's callback; otherwise the endpoint knows.
    pub callback_url: Option<String>,
    /// Where it stands.
    pub state: DeliveryState,
    /// When the journal made it.
    pub created_at: Timestamp,
    /// When it arrived or was given up.
    pub finished_at: Option<Timestamp>,
    /// The delivery that it repeats.
    pub resend_of: Option<JobId>,
    /// How often it was tried, as far as that is written down.
    pub tries: u32,
}

/// One delivery in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// What a list shows of it.
    pub summary: DeliverySummary,
    /// As it is sent.
    pub body: String,
    /// What came of each try, oldest first: a JSON array.
    pub tries: Json,
}

/// Which deliveries to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryFilter {
    /// What the caller may see.
    pub sight: Sight,
    /// Only to this endpoint.
    pub endpoint: Option<EndpointId>,
    /// Only these.
    pub state: Option<DeliveryState>,
    /// Only those made then or later.
    pub since: Option<Timestamp>,
    /// Only those made before.
    pub until: Option<Timestamp>,
    /// Only deliveries older than this one: the last of the page before.
    pub before: Option<JobId>,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

/// What came of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    /// It arrived.
    Delivered,
    /// It is tried again.
    Again,
    /// It is given up.
    Failed,
}

/// Write a try down.
#[derive(Debug, Clone)]
pub struct RecordTry {
    /// Which delivery.
    pub job: JobId,
    /// For its log: a JSON object.
    pub entry: Json,
    /// What came of it.
    pub tried: Tried,
    /// The receiver is gone, in these words: its endpoint is disabled.
    pub gone: Option<String>,
    /// An endpoint that took nothing for so long is disabled when a delivery is given up.
    pub give_up_after: Duration,
}

/// Send deliveries again, as new ones with the same event.
#[derive(Debug, Clone)]
pub struct ResendDeliveries {
    /// What the caller may see.
    pub sight: Sight,
    /// Which, and the job that sends each; at most 1,000.
    pub deliveries: Vec<(JobId, JobId)>,
    /// Who and why.
    pub word: Word,
}

/// The gate that the server's own jobs of a kind pass, one for each tenant. A gate's name is as long as a tenant's: two
/// whose names begin alike for so long share one.
pub(crate) fn own_gate(kind: &str, tenant: &TenantName) -> Result<GateName, Invalid> {
    let whose: String = tenant.as_str().chars().take(80).collect();
    GateName::new(format!("{kind}/{whose}"))
}

/// The job that sends a delivery: its endpoint's tenant's, in the server's own queue. Each tenant is a gate, so that one
/// whose receivers are slow does not keep the others waiting.
pub fn delivery_job(
    job: JobId,
    endpoint: EndpointId,
    tenant: TenantName,
    trace: Option<String>,
) -> Result<NewJob, Invalid> {
    let payload = Json::parse("payload", format!("{{\"endpoint\":\"{endpoint}\"}}"))?;
    let mut new = NewJob::new(job, KindName::new(DELIVERY_KIND)?, payload);
    new.gate = Some(own_gate(DELIVERY_KIND, &tenant)?);
    new.tenant = tenant;
    new.queue = QueueName::new(OWN_QUEUE)?;
    new.rules = Rules::default();
    new.trace = trace;
    Ok(new)
}

impl EventSubject {
    /// Leaves out what is too long to be told.
    #[must_use]
    pub fn shortened(mut self) -> Self {
        if let Some(attempt) = &mut self.attempt {
            let values =
                [("error", &mut attempt.error), ("result", &mut attempt.result), ("usage", &mut attempt.usage)];
            for (name, value) in values {
                if value.as_ref().is_some_and(|value| value.as_str().len() > VALUE_BYTES_MAX) {
                    *value = None;
                    self.omitted.push(name);
                }
            }
        }
        self
    }
}

impl Cursor {
    /// Nothing of a seal is told yet.
    pub const fn at(seal: i64) -> Self {
        Self { seal, after: 0 }
    }
}

impl DeliveryState {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Failed];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
        }
    }

    /// The state of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }
}

impl DeliveryFilter {
    /// The newest of all that can be seen.
    pub const fn new(sight: Sight, limit: u32) -> Self {
        Self { sight, endpoint: None, state: None, since: None, until: None, before: None, limit }
    }

    /// Between which ids they are, the first one included: an id is made when its delivery is, give or take an hour.
    pub fn ids(&self) -> (JobId, JobId) {
        const SLACK: Duration = Duration::from_secs(3_600);
        let from = self.since.map_or(Timestamp::EPOCH, |since| since.minus(SLACK));
        // The year 9999: no id is later.
        let end = Timestamp::from_micros(253_370_764_800_000_000);
        let until = JobId::from_parts(self.until.map_or(end, |until| until.plus(SLACK)), [0xff; 10]);
        (JobId::from_parts(from, [0; 10]), self.before.map_or(until, |before| before.min(until)))
    }

    /// Refuses a page that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::operate::check_batch(self.limit)
    }
}

impl Tried {
    /// Where the delivery stands then.
    pub const fn leads_to(self) -> DeliveryState {
        match self {
            Self::Delivered => DeliveryState::Delivered,
            Self::Again => DeliveryState::Pending,
            Self::Failed => DeliveryState::Failed,
        }
    }
}

impl ResendDeliveries {
    /// Refuses nothing, and more than 1,000.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::operate::check_batch(u32::try_from(self.deliveries.len()).unwrap_or(u32::MAX))?;
        self.word.check()
    }
}
