//! A job as its producer asks for it: checked here, once, whatever the way in.

use std::time::Duration;

use crate::apply::Rules;
use crate::id::JobId;
use crate::invalid::Invalid;
use crate::json::{Json, PAYLOAD_BYTES_MAX};
use crate::name::{GateName, KindName, QueueName, TenantName, check_text};
use crate::priority::Priority;
use crate::time::Timestamp;
use crate::unique::Unique;

/// Most attempts a job may ask for.
pub const ATTEMPTS_MAX: u16 = 1_000;
/// Most losses a job may ask for.
pub const LOSSES_MAX: u16 = ATTEMPTS_MAX + crate::apply::SPARE_LOSSES;

/// Everything a producer says about a job. Make one with [`NewJob::new`] and set what differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Made by the client, so that a repeated enqueue is the same job.
    pub id: JobId,
    /// Whose it is.
    pub tenant: TenantName,
    /// Where it waits.
    pub queue: QueueName,
    /// What it asks for.
    pub kind: KindName,
    /// What its handler gets.
    pub payload: Json,
    /// How urgent it is.
    pub priority: Priority,
    /// When it is due.
    pub due: Due,
    /// The shared resource it passes, if any.
    pub gate: Option<GateName>,
    /// Limits and retry policy.
    pub rules: Rules,
    /// The key it holds, if any.
    pub unique: Option<Unique>,
    /// A producer's name for this very request: the same key again is the same job, with another body it is refused.
    pub idempotency_key: Option<String>,
    /// Trace context to continue, W3C `traceparent` or whatever the producer uses.
    pub trace: Option<String>,
    /// Where to tell how it ended; the tenant's endpoint for callbacks signs it.
    pub callback_url: Option<String>,
}

/// When a job is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// At once.
    Now,
    /// After this, by the store's clock.
    After(Duration),
    /// At this moment; what lies in the past is due at once.
    At(Timestamp),
    /// Not before somebody opens it.
    WhenOpened,
}

impl NewJob {
    /// A job of `kind` with every default: queue and tenant `default`, normal priority, due now.
    pub fn new(id: JobId, kind: KindName, payload: Json) -> Self {
        Self {
            id,
            tenant: TenantName::default(),
            queue: QueueName::default(),
            kind,
            payload,
            priority: Priority::default(),
            due: Due::Now,
            gate: None,
            rules: Rules::default(),
            unique: None,
            idempotency_key: None,
            trace: None,
            callback_url: None,
        }
    }

    /// Checks what the types do not say already. `now` is the store's clock.
    pub fn check(&self, now: Timestamp) -> Result<(), Invalid> {
        self.id.check(now)?;
        self.payload.check_bytes("payload", PAYLOAD_BYTES_MAX)?;
        let Rules { max_attempts, max_losses, backoff } = &self.rules;
        check_count("max_attempts", *max_attempts, ATTEMPTS_MAX)?;
        check_count("max_losses", *max_losses, LOSSES_MAX)?;
        // A policy built in code obeys the same limits as one read from text.
        backoff.to_string().parse::<crate::backoff::Backoff>()?;
        if let Due::After(delay) = self.due
            && delay > crate::duration::DURATION_MAX
        {
            let value = crate::duration::format(delay);
            return Err(Invalid::new("delay", value, "a delay is at most 365000d"));
        }
        if let Some(unique) = &self.unique {
            unique.check()?;
        }
        if let Some(key) = &self.idempotency_key {
            check_text("idempotency key", key)?;
        }
        if let Some(trace) = &self.trace {
            check_text("trace", trace)?;
        }
        if let Some(url) = &self.callback_url {
            crate::webhook::check_url("callback_url", url)?;
        }
        Ok(())
    }

    /// The first `run_at`, never before `now`. A waiting job gets one when it is opened.
    pub fn run_at(&self, now: Timestamp) -> Timestamp {
        match self.due {
            Due::Now | Due::WhenOpened => now,
            Due::After(delay) => now.plus(delay),
            Due::At(at) => at.max(now),
        }
    }
}

fn check_count(field: &'static str, value: u16, max: u16) -> Result<(), Invalid> {
    if (1..=max).contains(&value) { Ok(()) } else { Err(Invalid::new(field, value, format!("it is 1 to {max}"))) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unique::Policy;

    const NOW: Timestamp = Timestamp::from_micros(1_763_197_200_000_000);

    fn job() -> NewJob {
        let kind = KindName::new("mail.send").unwrap();
        NewJob::new(JobId::from_parts(NOW, [1; 10]), kind, Json::parse("payload", "{}").unwrap())
    }

    #[test]
    fn a_job_with_every_default_is_accepted_and_due_now() {
        assert_eq!(job().check(NOW), Ok(()));
        assert_eq!(job().run_at(NOW), NOW);
    }

    #[test]
    fn each_input_is_refused_by_its_own_name() {
        type Change = fn(&mut NewJob);
        let bad: [(&str, Change); 10] = [
            ("id", |j| j.id = JobId::from_parts(Timestamp::EPOCH, [1; 10])),
            ("payload", |j| j.payload = Json::from_store(format!("\"{}\"", "x".repeat(PAYLOAD_BYTES_MAX)))),
            ("max_attempts", |j| j.rules.max_attempts = 0),
            ("max_attempts", |j| j.rules.max_attempts = ATTEMPTS_MAX + 1),
            ("max_losses", |j| j.rules.max_losses = 0),
            ("backoff", |j| j.rules.backoff = crate::Backoff::Steps(Vec::new())),
            ("delay", |j| j.due = Due::After(Duration::MAX)),
            ("unique key", |j| j.unique = Some(Unique::new("a\0", Policy::Forever))),
            ("idempotency key", |j| j.idempotency_key = Some(String::new())),
            ("trace", |j| j.trace = Some("x".repeat(501))),
        ];
        for (field, change) in bad {
            let mut job = job();
            change(&mut job);
            assert_eq!(job.check(NOW).unwrap_err().field, field);
        }
    }

    #[test]
    fn no_job_is_due_before_it_was_stored() {
        let due = |due: Due| NewJob { due, ..job() }.run_at(NOW);
        let hour = Duration::from_secs(3_600);
        assert_eq!(due(Due::At(Timestamp::EPOCH)), NOW);
        assert_eq!(due(Due::At(NOW.plus(hour))), NOW.plus(hour));
        assert_eq!(due(Due::After(hour)), NOW.plus(hour));
    }
}
