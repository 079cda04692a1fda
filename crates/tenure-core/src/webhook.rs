//! Webhooks: what may be told to others, what it is called, and how an endpoint chooses.
//!
//! What is told comes from the journal and from nowhere else: an event exists exactly when its transition was committed.

use std::fmt;
use std::str::FromStr;

use crate::id::uuid_id;
use crate::invalid::Invalid;
use crate::journal::JournalEvent;
use crate::lifecycle::How;

/// The kind of the jobs that deliver. What becomes of them is told to nobody.
pub const DELIVERY_KIND: &str = "tenure.webhook";
/// The queue of the jobs that a server runs for itself.
pub const OWN_QUEUE: &str = "tenure";
/// Longest URL of an endpoint or of a job's callback, in bytes.
pub const URL_BYTES_MAX: usize = 2_000;

/// Everything that can be told, by subject.
pub const EVENT_TYPES: [&str; 19] = [
    "job.claimed",
    "job.succeeded",
    "job.retry",
    "job.failed",
    "job.dead",
    "job.canceled",
    "job.snoozed",
    "job.released",
    "job.lost",
    "job.cancel_requested",
    "job.requeued",
    "job.opened",
    "run.created",
    "run.sealed",
    "run.ended",
    "run.reopened",
    "run.canceled",
    "webhook.disabled",
    "webhook.pinged",
];

/// What a job's callback is told: how the job ended.
pub const CALLBACK_EVENTS: [&str; 4] = ["job.succeeded", "job.failed", "job.dead", "job.canceled"];

/// What a journal row is called when it is told; `None` for what concerns nobody outside.
pub const fn event_type(event: JournalEvent) -> Option<&'static str> {
    Some(match event {
        JournalEvent::Claimed => "job.claimed",
        JournalEvent::Ended(How::Succeeded) => "job.succeeded",
        JournalEvent::Ended(How::Retry) => "job.retry",
        JournalEvent::Ended(How::Failed) => "job.failed",
        JournalEvent::Ended(How::Dead) => "job.dead",
        JournalEvent::Ended(How::Canceled) => "job.canceled",
        JournalEvent::Ended(How::Snoozed) => "job.snoozed",
        JournalEvent::Ended(How::Released) => "job.released",
        JournalEvent::Ended(How::Lost) => "job.lost",
        JournalEvent::CancelRequested => "job.cancel_requested",
        JournalEvent::Requeued => "job.requeued",
        JournalEvent::Opened => "job.opened",
        JournalEvent::RunCreated => "run.created",
        JournalEvent::RunSealed => "run.sealed",
        JournalEvent::RunEnded => "run.ended",
        JournalEvent::RunReopened => "run.reopened",
        JournalEvent::RunCanceled => "run.canceled",
        JournalEvent::EndpointDisabled => "webhook.disabled",
        JournalEvent::EndpointPinged => "webhook.pinged",
        _ => return None,
    })
}

/// Refuses what cannot be a URL at all. Whom it may reach is for the sender to say, each time that it sends.
pub fn check_url(field: &'static str, url: &str) -> Result<(), Invalid> {
    let begins = url.starts_with("https://") || url.starts_with("http://");
    if begins && url.len() <= URL_BYTES_MAX && !url.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Ok(());
    }
    Err(Invalid::new(field, url, format!("it is an https:// URL of at most {URL_BYTES_MAX} bytes, without spaces")))
}

uuid_id! {
    /// The name of an endpoint.
    EndpointId, "endpoint"
}

/// What an endpoint is told: some of [`EVENT_TYPES`], a whole subject (`job.*`), or everything (`*`); never nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Events(Vec<String>);

impl Events {
    /// These, each once, in the order given.
    pub fn new<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Result<Self, Invalid> {
        let mut events: Vec<String> = Vec::new();
        for word in words {
            let word = word.as_ref().trim();
            let known = word == "*" || EVENT_TYPES.iter().any(|known| names(word, known));
            if !known {
                let limit = format!("an event is *, job.*, run.*, webhook.* or one of {}", EVENT_TYPES.join(", "));
                return Err(Invalid::new("events", word, limit));
            }
            if !events.iter().any(|before| before == word) {
                events.push(word.to_owned());
            }
        }
        match events.is_empty() {
            true => Err(Invalid::new("events", "", "there is at least one, such as job.succeeded")),
            false => Ok(Self(events)),
        }
    }

    /// Whether an event of this type is among them.
    pub fn contain(&self, event_type: &str) -> bool {
        self.0.iter().any(|word| names(word, event_type))
    }

    /// Each of them, as it was written.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl Default for Events {
    /// How jobs ended.
    fn default() -> Self {
        Self(CALLBACK_EVENTS.map(str::to_owned).into())
    }
}

impl fmt::Display for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl FromStr for Events {
    type Err = Invalid;
    fn from_str(text: &str) -> Result<Self, Invalid> {
        Self::new(text.split(','))
    }
}

/// Whether a word of a filter means a type.
fn names(word: &str, event_type: &str) -> bool {
    word == "*"
        || word == event_type
        || word.strip_suffix('*').is_some_and(|subject| subject.ends_with('.') && event_type.starts_with(subject))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_that_is_told_has_a_type_and_every_type_an_event() {
        let told: Vec<&str> = JournalEvent::ALL.into_iter().filter_map(event_type).collect();
        for known in EVENT_TYPES {
            assert_eq!(told.iter().filter(|told| **told == known).count(), 1, "{known}");
        }
        assert_eq!(told.len(), EVENT_TYPES.len());
    }

    #[test]
    fn an_endpoint_is_told_what_it_asked_for() {
        let events: Events = "job.dead, run.*".parse().unwrap();
        assert_eq!(events.to_string(), "job.dead,run.*");
        for (event_type, told) in
            [("job.dead", true), ("job.failed", false), ("run.ended", true), ("webhook.pinged", false)]
        {
            assert_eq!(events.contain(event_type), told, "{event_type}");
        }
        let all: Events = "*".parse().unwrap();
        assert!(EVENT_TYPES.iter().all(|known| all.contain(known)));
        assert_eq!("job.dead,job.dead".parse::<Events>().unwrap().iter().count(), 1);
    }

    #[test]
    fn other_words_are_refused() {
        for bad in ["", ",", "job", "job.", "job.*.x", "jo*", "job*", "*.dead", "tenant.*", "job.succeeded;"] {
            assert_eq!(bad.parse::<Events>().unwrap_err().field, "events", "{bad:?}");
        }
    }
}
