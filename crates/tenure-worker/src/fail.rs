//! [`Fail`]: how a handler says that a job was not done, in one vocabulary.
//!
//! Either it says what that means (`transient`, `permanent`, `dead`, `snooze`, `canceled`), or it says what it met (a
//! code, an HTTP status, any error by `?`) and the rule table of the worker decides.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tenure_core::classify::Fault;
use tenure_core::{Class, Json};
use tenure_store::StoreError;

use crate::observe::Failure;

/// How much of an error the log repeats; the store keeps more.
const MESSAGE_BYTES_MAX: usize = 1_000;
/// How much of a code of the handler's own.
const TYPE_BYTES_MAX: usize = 100;

/// Why a job was not done. Any [`std::error::Error`] becomes one by `?`.
///
/// ```
/// # use tenure_worker::Fail;
/// # use std::time::Duration;
/// fn check(status: u16, body: &str) -> Result<(), Fail> {
///     match status {
///         200 => Ok(()),
///         202 => Err(Fail::snooze(Duration::from_secs(30))),
///         404 => Err(Fail::permanent("the order is gone")),
///         status => Err(Fail::http_status(status, body)), // the rule table decides: 429 and 5xx are tried again
///     }
/// }
/// ```
pub struct Fail(Box<Said>);

/// What a handler said.
pub(crate) struct Said {
    pub(crate) means: Means,
    pub(crate) message: String,
    pub(crate) causes: Vec<String>,
    pub(crate) retry_in: Option<Duration>,
    pub(crate) details: Option<Json>,
    /// The handler has a log line of its own.
    pub(crate) quiet: bool,
}

/// What it means, or what the rule table is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Means {
    Class(Class),
    Met(Met),
    /// An error the table knows nothing about: its last word.
    Unsaid,
    /// The store did not answer the handler: its job and its source have nothing to do with it.
    StoreAway,
    Snooze(Duration),
    Canceled,
    /// Given back, because the process goes down.
    Release,
    /// Completing inside a transaction was refused: somebody else has the job.
    LeaseLost,
    /// The page is not the one its partition waits for: there is nothing to do.
    OffsetMismatch {
        expected: u64,
        got: u64,
    },
}

/// A [`Fault`] that owns its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Met {
    Code(String),
    HttpStatus(u16),
    Timeout,
    Connection,
    RateLimit,
    Panic,
}

impl Fail {
    /// It may work next time: tried again while attempts are left.
    pub fn transient(message: impl fmt::Display) -> Self {
        Self::new(Means::Class(Class::Transient), message)
    }

    /// It will never work: the job is `failed`.
    pub fn permanent(message: impl fmt::Display) -> Self {
        Self::new(Means::Class(Class::Permanent), message)
    }

    /// Nobody should try: the job is `dead` at once, kept for a person to look at.
    pub fn dead(message: impl fmt::Display) -> Self {
        Self::new(Means::Class(Class::Dead), message)
    }

    /// Nothing is wrong, only too early: again after `delay`, and no attempt is charged.
    pub fn snooze(delay: Duration) -> Self {
        Self::new(Means::Snooze(delay), "snoozed")
    }

    /// The handler stopped because it was asked to: the job is `canceled`.
    pub fn canceled() -> Self {
        Self::new(Means::Canceled, "canceled")
    }

    /// An error with a code of the handler's own; the rule table knows what it means.
    pub fn code(code: impl Into<String>, message: impl fmt::Display) -> Self {
        Self::new(Means::Met(Met::Code(code.into())), message)
    }

    /// A source answered with this HTTP status; the rule table knows what it means.
    pub fn http_status(status: u16, message: impl fmt::Display) -> Self {
        Self::new(Means::Met(Met::HttpStatus(status)), message)
    }

    /// Something took too long.
    pub fn timeout(message: impl fmt::Display) -> Self {
        Self::new(Means::Met(Met::Timeout), message)
    }

    /// A source could not be reached, or hung up.
    pub fn connection(message: impl fmt::Display) -> Self {
        Self::new(Means::Met(Met::Connection), message)
    }

    /// A source asked for fewer calls.
    pub fn rate_limited(message: impl fmt::Display) -> Self {
        Self::new(Means::Met(Met::RateLimit), message)
    }

    /// Should it be tried again, then after this and not after the job's backoff: a `Retry-After`, for example.
    #[must_use]
    pub fn retry_in(mut self, delay: Duration) -> Self {
        self.0.retry_in = Some(delay);
        self
    }

    /// More for the person who reads the error: any JSON. What cannot be written as JSON is left out.
    #[must_use]
    pub fn with_details(mut self, details: &impl Serialize) -> Self {
        self.0.details = crate::job::to_json("details", details).ok();
        self
    }

    /// Leaves the failure out of the worker's log, but for the level debug: the handler logs it in its own way. The job
    /// and its attempts keep it, and observers hear of it.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.0.quiet = true;
        self
    }

    pub(crate) fn panicked(message: impl fmt::Display) -> Self {
        Self::new(Means::Met(Met::Panic), message)
    }

    pub(crate) fn release() -> Self {
        Self::new(Means::Release, "given back")
    }

    pub(crate) fn lease_lost() -> Self {
        Self::new(Means::LeaseLost, "the lease no longer holds the job")
    }

    pub(crate) fn offset_mismatch(expected: u64, got: u64) -> Self {
        let message = format!("offset_mismatch: the partition goes on at {expected}, this page begins at {got}");
        Self::new(Means::OffsetMismatch { expected, got }, message)
    }

    /// What went wrong, for the log and for whoever observes.
    pub(crate) fn failure(&self) -> Failure {
        let error_type = match &self.0.means {
            Means::Class(class) => class.as_str().to_owned(),
            Means::Met(met) => tenure_core::failure::cut(&met.word(), TYPE_BYTES_MAX),
            _ => "error".to_owned(),
        };
        let message = tenure_core::failure::cut(&self.to_string(), MESSAGE_BYTES_MAX);
        Failure { message, error_type, panicked: self.0.means == Means::Met(Met::Panic), quiet: self.0.quiet }
    }

    pub(crate) fn said(&self) -> &Said {
        &self.0
    }

    fn new(means: Means, message: impl fmt::Display) -> Self {
        let message = message.to_string();
        Self(Box::new(Said { means, message, causes: Vec::new(), retry_in: None, details: None, quiet: false }))
    }
}

impl<E: Error + 'static> From<E> for Fail {
    fn from(error: E) -> Self {
        let mut means = Means::Unsaid;
        let mut causes = Vec::new();
        let mut next: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(cause) = next {
            if means == Means::Unsaid {
                means = recognise(cause);
            }
            causes.push(cause.to_string());
            next = cause.source();
        }
        let mut causes = causes.into_iter();
        let message = causes.next().unwrap_or_default();
        // Many libraries repeat their cause in their own text.
        let causes = causes.filter(|cause| !message.contains(cause.as_str())).collect();
        Self(Box::new(Said { means, message, causes, retry_in: None, details: None, quiet: false }))
    }
}

/// How long a job is put aside, uncharged, that found the queue full it enqueues into.
const ROOM: Duration = Duration::from_secs(5);

/// What the standard library's errors and our own tell the rule table.
fn recognise(error: &(dyn Error + 'static)) -> Means {
    use std::io::ErrorKind::*;
    if error.is::<tokio::time::error::Elapsed>() {
        return Means::Met(Met::Timeout);
    }
    if let Some(StoreError::LeaseLost(_)) = error.downcast_ref() {
        return Means::LeaseLost;
    }
    if let Some(StoreError::Unavailable(..)) = error.downcast_ref() {
        return Means::StoreAway;
    }
    if let Some(StoreError::Full(_)) = error.downcast_ref() {
        return Means::Snooze(ROOM);
    }
    match error.downcast_ref::<std::io::Error>().map(std::io::Error::kind) {
        Some(TimedOut) => Means::Met(Met::Timeout),
        Some(
            ConnectionRefused | ConnectionReset | ConnectionAborted | NotConnected | BrokenPipe | HostUnreachable
            | NetworkUnreachable,
        ) => Means::Met(Met::Connection),
        _ => Means::Unsaid,
    }
}

impl Met {
    pub(crate) fn fault(&self) -> Fault<'_> {
        match self {
            Self::Code(code) => Fault::Code(code),
            Self::HttpStatus(status) => Fault::HttpStatus(*status),
            Self::Timeout => Fault::Timeout,
            Self::Connection => Fault::Connection,
            Self::RateLimit => Fault::RateLimit,
            Self::Panic => Fault::Panic,
        }
    }

    /// The word in a stored error's `code`.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Code(code) => code.clone(),
            Self::HttpStatus(status) => format!("http_{status}"),
            Self::Timeout => "timeout".into(),
            Self::Connection => "connection".into(),
            Self::RateLimit => "rate_limit".into(),
            Self::Panic => "panic".into(),
        }
    }
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        self.0.causes.iter().try_for_each(|cause| write!(f, ": {cause}"))
    }
}

impl fmt::Debug for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fail({:?}: {self})", self.0.means)
    }
}
