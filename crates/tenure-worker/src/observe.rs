//! [`Observer`]: who wants to hear how attempts end in this process, such as a reporter of errors.

use std::time::Duration;

use tenure_core::name::{KindName, QueueName, TenantName};
use tenure_core::{How, JobId, LeaseNo};

/// Hears of every attempt whose ending the store accepted. It is called where reports are settled: it must not wait.
pub trait Observer: Send + Sync + 'static {
    /// An attempt has ended.
    fn attempt_ended(&self, ended: &AttemptEnded<'_>);
}

/// An attempt that has ended. There is no payload in it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct AttemptEnded<'a> {
    /// Of which job.
    pub job: JobId,
    /// What it asked for.
    pub kind: &'a KindName,
    /// Where it waited.
    pub queue: &'a QueueName,
    /// Whose it is.
    pub tenant: &'a TenantName,
    /// Its number.
    pub attempt: u16,
    /// Its fence.
    pub lease: LeaseNo,
    /// How it ended.
    pub how: How,
    /// How long it took, the report included.
    pub took: Duration,
    /// What went wrong, if something did.
    pub failure: Option<&'a Failure>,
}

/// What went wrong in an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// In the handler's words, cut. It may name whatever the handler named.
    pub message: String,
    /// A code, a status, a class: `http_503`, `timeout`, `panic`, `transient`.
    pub error_type: String,
    /// Whether the handler panicked.
    pub panicked: bool,
    /// Whether the handler logs it in its own way.
    pub quiet: bool,
}
