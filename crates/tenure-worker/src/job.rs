//! A typed job: a serde struct with a kind. `#[derive(Job)]` writes this trait from `#[job(…)]`.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenure_core::apply::{MAX_ATTEMPTS_DEFAULT, Rules, SPARE_LOSSES};
use tenure_core::{Invalid, JobId, Json, KindName, NewJob, Priority, QueueName};
use tenure_store::lease::RESULT_BYTES_MAX;

/// What is to be done, as data. The payload is the type's JSON.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job",
    label = "not a job",
    note = "a job is a type of yours with `#[derive(Serialize, Deserialize, Job)]` and `#[job(kind = \"…\")]`; \
            a handler takes it as its first argument"
)]
pub trait Job: Serialize + DeserializeOwned + Send + 'static {
    /// Picks the handler, in every process that works on the queue: part of the stored data, so it stays.
    const KIND: &'static str;

    /// What an enqueue may still change.
    const DEFAULTS: Defaults = Defaults::new();
}

/// How jobs of a type are enqueued and run unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Defaults {
    pub(crate) queue: &'static str,
    pub(crate) priority: Priority,
    pub(crate) max_attempts: u16,
    pub(crate) max_losses: Option<u16>,
    pub(crate) backoff: Option<&'static str>,
    pub(crate) timeout: Option<Duration>,
}

impl Defaults {
    /// Queue `default`, normal priority, five attempts, no timeout.
    pub const fn new() -> Self {
        Self {
            queue: "default",
            priority: Priority::NORMAL,
            max_attempts: MAX_ATTEMPTS_DEFAULT,
            max_losses: None,
            backoff: None,
            timeout: None,
        }
    }

    /// Where they wait.
    pub const fn queue(mut self, queue: &'static str) -> Self {
        self.queue = queue;
        self
    }

    /// How urgent they are.
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Attempts before a transient error is final.
    pub const fn max_attempts(mut self, max: u16) -> Self {
        self.max_attempts = max;
        self
    }

    /// Lost leases before a job is dead; three more than attempts unless set.
    pub const fn max_losses(mut self, max: u16) -> Self {
        self.max_losses = Some(max);
        self
    }

    /// When to try again, such as `exponential 1m..24h by failures`.
    pub const fn backoff(mut self, policy: &'static str) -> Self {
        self.backoff = Some(policy);
        self
    }

    /// How long a handler may run before it is told to stop, and then stopped.
    pub const fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn rules(&self) -> Result<Rules, Invalid> {
        let backoff = self.backoff.map(str::parse).transpose()?.unwrap_or_default();
        let max_losses = self.max_losses.unwrap_or(self.max_attempts.saturating_add(SPARE_LOSSES));
        Ok(Rules { max_attempts: self.max_attempts, max_losses, backoff })
    }
}

impl Default for Defaults {
    fn default() -> Self {
        Self::new()
    }
}

/// A job as the store takes it, with every default of its type.
pub(crate) fn to_new_job<J: Job>(id: JobId, job: &J) -> Result<NewJob, Invalid> {
    let payload = to_json("payload", job)?;
    let mut new = NewJob::new(id, KindName::new(J::KIND)?, payload);
    new.queue = QueueName::new(J::DEFAULTS.queue)?;
    new.priority = J::DEFAULTS.priority;
    new.rules = J::DEFAULTS.rules()?;
    Ok(new)
}

/// A result or usage figures as the store keeps them: JSON, and not too large. `field` names it in the refusal.
pub(crate) fn to_kept<T: Serialize>(field: &'static str, value: &T) -> Result<Json, Invalid> {
    let json = to_json(field, value)?;
    json.check_bytes(field, RESULT_BYTES_MAX)?;
    Ok(json)
}

/// A value as JSON that both stores can hold; `field` names it in the refusal.
pub(crate) fn to_json<T: Serialize>(field: &'static str, value: &T) -> Result<Json, Invalid> {
    let text = serde_json::to_string(value)
        .map_err(|error| Invalid::new(field, std::any::type_name::<T>(), format!("it must be JSON: {error}")))?;
    Json::parse(field, text)
}
