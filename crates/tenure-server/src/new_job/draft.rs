//! A job on its way in: what flags or a line said so far.

use tenure_core::apply::{Rules, SPARE_LOSSES};
use tenure_core::name::{GateName, KindName, QueueName, TenantName};
use tenure_core::new_job::{ATTEMPTS_MAX, Due};
use tenure_core::unique::{Policy, Unique};
use tenure_core::{Backoff, Invalid, JobId, Json, NewJob, Priority, duration};

/// Everything that can be said about a job; what is not said has a default.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// What it asks for.
    pub kind: Option<KindName>,
    /// For its handler; `{}` where nothing is said.
    pub payload: Option<Json>,
    /// Where it waits.
    pub queue: Option<QueueName>,
    /// How urgent it is.
    pub priority: Option<Priority>,
    /// When it is due.
    pub due: Option<Due>,
    /// Attempts allowed.
    pub max_attempts: Option<u16>,
    /// When to try again.
    pub backoff: Option<Backoff>,
    /// The key it holds.
    pub unique: Option<String>,
    /// How long it holds it.
    pub unique_policy: Option<Policy>,
    /// A producer's name for this very request.
    pub idempotency_key: Option<String>,
    /// Whose it is.
    pub tenant: Option<TenantName>,
    /// The shared resource it passes.
    pub gate: Option<GateName>,
    /// Trace context to continue.
    pub trace: Option<String>,
    /// Where to tell how it ended.
    pub callback_url: Option<String>,
    /// Made by the client.
    pub id: Option<JobId>,
}

impl Draft {
    /// Takes what is not said here from `flags`. Ids and keys belong to one job and have no default.
    pub fn or(self, flags: &Self) -> Self {
        let flags = flags.clone();
        Self {
            queue: self.queue.or(flags.queue),
            priority: self.priority.or(flags.priority),
            due: self.due.or(flags.due),
            max_attempts: self.max_attempts.or(flags.max_attempts),
            backoff: self.backoff.or(flags.backoff),
            unique_policy: self.unique_policy.or(flags.unique_policy),
            tenant: self.tenant.or(flags.tenant),
            gate: self.gate.or(flags.gate),
            trace: self.trace.or(flags.trace),
            callback_url: self.callback_url.or(flags.callback_url),
            ..self
        }
    }

    /// The job, with this id unless one was given.
    pub fn into_job(self, id: JobId) -> Result<NewJob, Invalid> {
        let kind = self.kind.ok_or_else(|| Invalid::new("kind", "", "every job has a kind"))?;
        let id = self.id.unwrap_or(id);
        let default = Rules::default();
        let max_attempts = self.max_attempts.unwrap_or(default.max_attempts);
        let rules = Rules {
            max_attempts,
            max_losses: max_attempts.saturating_add(SPARE_LOSSES),
            backoff: self.backoff.unwrap_or(default.backoff),
        };
        let empty = || Json::from_store("{}");
        let mut job = NewJob::new(id, kind, self.payload.unwrap_or_else(empty));
        job.rules = rules;
        job.queue = self.queue.unwrap_or_default();
        job.priority = self.priority.unwrap_or_default();
        job.due = self.due.unwrap_or(Due::Now);
        job.tenant = self.tenant.unwrap_or_default();
        job.unique = self.unique.map(|key| Unique::new(key, self.unique_policy.unwrap_or(Policy::WhileActive)));
        job.idempotency_key = self.idempotency_key;
        job.gate = self.gate;
        job.trace = self.trace;
        job.callback_url = self.callback_url;
        Ok(job)
    }
}

/// A number of attempts.
pub fn max_attempts(text: &str) -> Result<u16, Invalid> {
    let count = text.parse().ok().filter(|count| (1..=ATTEMPTS_MAX).contains(count));
    count.ok_or_else(|| Invalid::new("max_attempts", text, format!("it is 1 to {ATTEMPTS_MAX}")))
}

/// A policy by its word.
pub fn policy(text: &str) -> Result<Policy, Invalid> {
    let limit = "it is while_active, unless_failed, forever, or a window such as window:10m";
    match text.split_once([':', ' ']) {
        None if text == "while_active" => Ok(Policy::WhileActive),
        None if text == "unless_failed" => Ok(Policy::UnlessFailed),
        None if text == "forever" => Ok(Policy::Forever),
        Some(("window", length)) => duration::parse("unique_policy", length).map(Policy::Window),
        _ => Err(Invalid::new("unique_policy", text, limit)),
    }
}
