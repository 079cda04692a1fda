//! Operations: one act on many jobs, done in the background by a job of the operation's own id, with its progress kept.
//!
//! Only jobs older than the operation are meant, newest first, and the place it has come to is stored: none is acted on
//! twice, also when it ends again meanwhile, and whoever goes on after a crash begins there.

use tenure_core::apply::Rules;
use tenure_core::name::{KindName, QueueName, TenantName, check_text};
use tenure_core::webhook::OWN_QUEUE;
use tenure_core::{Invalid, JobId, Json, NewJob, State, Timestamp};

use crate::operate::Word;
use crate::record::{JobFilter, Sight};
use crate::webhook::own_gate;

/// The kind of the jobs that do it.
pub const OPERATION_KIND: &str = "tenure.operation";

/// What is done to each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// It is canceled; the holder of a running one is asked.
    Cancel,
    /// It is canceled, and the holder of a running one is fenced.
    CancelByForce,
    /// It is revived.
    Requeue,
}

/// Begin an operation.
#[derive(Debug, Clone)]
pub struct NewOperation {
    /// Its name for programs, made by the caller: a repeated request is the same operation.
    pub id: JobId,
    /// Whose jobs; `None`: everybody's, for operators.
    pub tenant: Option<TenantName>,
    /// Its name for people.
    pub name: String,
    /// What is done.
    pub act: Act,
    /// Only jobs in this state.
    pub state: State,
    /// Only jobs of this queue.
    pub queue: Option<QueueName>,
    /// Only jobs of this kind.
    pub kind: Option<KindName>,
    /// Only dead letters of this group.
    pub group: Option<String>,
    /// Who and why.
    pub word: Word,
}

/// An operation and how far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationRecord {
    /// Its name for programs: that of its job, too.
    pub id: JobId,
    /// Whose jobs; `None`: everybody's.
    pub tenant: Option<TenantName>,
    /// Its name for people.
    pub name: String,
    /// What is done.
    pub act: Act,
    /// To which jobs.
    pub state: State,
    /// Of which queue.
    pub queue: Option<QueueName>,
    /// Of which kind.
    pub kind: Option<KindName>,
    /// Of which group.
    pub group: Option<String>,
    /// Who asked, and why.
    pub word: Word,
    /// When.
    pub created_at: Timestamp,
    /// Where it stands.
    pub progress: Progress,
    /// When all of it was done.
    pub finished_at: Option<Timestamp>,
}

/// How far an operation is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Progress {
    /// The last job it looked at.
    pub cursor: Option<JobId>,
    /// How many there were when it began; `None`: they are being counted.
    pub total: Option<u64>,
    /// Acted on.
    pub done: u64,
    /// Not acted on, because their state did not allow it any more.
    pub refused: u64,
    /// Why the last of those was refused.
    pub last_refusal: Option<String>,
}

/// Which operations to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperationFilter {
    /// What the caller may see: a tenant its own, not the operators'.
    pub sight: Sight,
    /// Only operations older than this one: the last of the page before.
    pub before: Option<JobId>,
    /// At most this many, 1..=1,000.
    pub limit: u32,
}

/// Write down how far an operation is. What is behind of what is written already changes nothing.
#[derive(Debug, Clone)]
pub struct SaveOperation {
    /// Which.
    pub id: JobId,
    /// Where it stands.
    pub progress: Progress,
    /// Whether that is all.
    pub finished: bool,
}

impl Act {
    /// Each of them.
    pub const ALL: [Self; 3] = [Self::Cancel, Self::CancelByForce, Self::Requeue];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancel => "cancel",
            Self::CancelByForce => "cancel_by_force",
            Self::Requeue => "requeue",
        }
    }

    /// The act of this word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|act| act.as_str() == word)
    }

    /// Whether a job in this state can be acted on so.
    pub const fn fits(self, state: State) -> bool {
        let ended = matches!(state, State::Failed | State::Dead | State::Canceled);
        match self {
            Self::Requeue => ended,
            Self::Cancel | Self::CancelByForce => !ended && !matches!(state, State::Succeeded),
        }
    }
}

impl NewOperation {
    /// Refuses a name that is no text, and an act that no job in this state allows.
    pub fn check(&self) -> Result<(), Invalid> {
        check_text("name", &self.name)?;
        self.group.as_deref().map_or(Ok(()), |group| check_text("group", group))?;
        if !self.act.fits(self.state) {
            let limit = match self.act {
                Act::Requeue => "what is requeued is failed, dead or canceled",
                Act::Cancel | Act::CancelByForce => "what is canceled is waiting, queued, retryable or running",
            };
            return Err(Invalid::new("state", self.state.as_str(), limit));
        }
        if self.group.is_some() && self.state != State::Dead {
            return Err(Invalid::new("group", self.group.as_deref().unwrap_or_default(), "dead letters have groups"));
        }
        self.word.check()
    }

    /// The job that does it: its tenant's, or the default tenant's for operators. Each tenant is a gate: many operations
    /// of one do not keep the others waiting, nor webhooks.
    pub fn job(&self) -> Result<NewJob, Invalid> {
        let mut job = NewJob::new(self.id, KindName::new(OPERATION_KIND)?, Json::parse("payload", "{}")?);
        job.tenant = self.tenant.clone().unwrap_or_default();
        job.queue = QueueName::new(OWN_QUEUE)?;
        job.gate = Some(own_gate(OPERATION_KIND, &job.tenant)?);
        job.rules = Rules::default();
        Ok(job)
    }
}

impl OperationRecord {
    /// An operation that has just begun.
    pub fn begun(new: NewOperation, now: Timestamp) -> Self {
        let NewOperation { id, tenant, name, act, state, queue, kind, group, word } = new;
        let (created_at, progress, finished_at) = (now, Progress::default(), None);
        Self { id, tenant, name, act, state, queue, kind, group, word, created_at, progress, finished_at }
    }

    /// Whether it is made of the same as `new`: the answer to a repetition.
    pub fn is_made_of(&self, new: &NewOperation) -> bool {
        (&self.tenant, self.act, self.state, &self.queue) == (&new.tenant, new.act, new.state, &new.queue)
            && (&self.kind, &self.group) == (&new.kind, &new.group)
    }

    /// What its jobs are in sight of.
    pub fn sight(&self) -> Sight {
        self.tenant.clone().map_or(Sight::All, Sight::Tenant)
    }

    /// The jobs that it has not looked at yet, a page.
    pub fn next_page(&self, limit: u32) -> JobFilter {
        JobFilter {
            sight: self.sight(),
            state: Some(self.state),
            queue: self.queue.clone(),
            kind: self.kind.clone(),
            before: Some(self.progress.cursor.unwrap_or(self.id)),
            limit,
            ..JobFilter::default()
        }
    }

    /// Takes over how far it is, unless it is further already; answers whether it did.
    pub fn save(&mut self, request: &SaveOperation, now: Timestamp) -> bool {
        let looked_at = |progress: &Progress| progress.done + progress.refused;
        if self.finished_at.is_some() || looked_at(&request.progress) < looked_at(&self.progress) {
            return false;
        }
        self.progress = request.progress.clone();
        self.finished_at = request.finished.then_some(now);
        true
    }
}

impl OperationFilter {
    /// Refuses a page that is empty or too large.
    pub fn check(&self) -> Result<(), Invalid> {
        crate::operate::check_batch(self.limit)
    }
}
