//! The three kinds of tasks, and what a task's state is called here.
//!
//! All of them have the policy of the preset `tasks`: an error is final and is never tried again; only a lost lease is,
//! while tries are left, and there are three.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenure::{Client, Database, Invalid, Job, JobState, TenantName};

/// Where tasks wait.
pub const QUEUE: &str = "tasks";
/// Whose they are. A tenant of their own: it has its own endpoint for callbacks.
pub const TENANT: &str = "tasks";
/// How long a handler may take, of whatever kind.
pub const TIMEOUT: Duration = Duration::from_secs(600);

/// Fetches a document and keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Job)]
#[job(kind = "task.fetch", queue = "tasks", max_attempts = 3, max_losses = 3, backoff = "never", timeout = "10m")]
pub struct Fetch {
    /// Where it is.
    pub url: String,
}

/// Hashes a document that was fetched, and counts its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Job)]
#[job(kind = "task.digest", queue = "tasks", max_attempts = 3, max_losses = 3, backoff = "never", timeout = "10m")]
pub struct Digest {
    /// Where it came from.
    pub url: String,
}

/// Sums what the others have done so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Job)]
#[job(kind = "task.report", queue = "tasks", max_attempts = 3, max_losses = 3, backoff = "never", timeout = "10m")]
pub struct Report {}

/// A client that adds tasks.
pub fn client(database: &Database) -> Client {
    Client::new(database).for_tenant(tenant())
}

/// [`TENANT`] as a name.
pub fn tenant() -> TenantName {
    TenantName::new(TENANT).unwrap_or_default() // it is one: see the test
}

/// Refuses what no task can fetch, before it is added. Whether it may be called is for the worker to say.
pub fn check_url(url: &str) -> Result<(), Invalid> {
    match url.split_once("://") {
        Some(("http" | "https", rest)) if !rest.is_empty() => Ok(()),
        _ => Err(Invalid::new("url", url, "it begins with https://, or http:// where a worker has TASKS_LOCAL")),
    }
}

/// What the seed calls a task's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Waits to be claimed.
    Pending,
    /// Under a lease.
    Running,
    /// Ended well, for good.
    Done,
    /// Ended by an error, or its tries are used up: for good, unless somebody revives it.
    Error,
    /// Somebody ended it. The seed has no such thing.
    Canceled,
}

impl Status {
    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Done => "done",
            Self::Error => "error",
            Self::Canceled => "canceled",
        }
    }
}

impl From<JobState> for Status {
    fn from(state: JobState) -> Self {
        match state {
            JobState::Waiting | JobState::Queued | JobState::Retryable => Self::Pending,
            JobState::Running => Self::Running,
            JobState::Succeeded => Self::Done,
            JobState::Failed | JobState::Dead => Self::Error,
            JobState::Canceled => Self::Canceled,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use tenure::core::apply::Rules;
    use tenure::{Defaults, preset};

    use super::*;

    /// Shows: S3.44
    #[test]
    fn every_kind_has_the_policy_of_its_preset() {
        let Rules { max_attempts, max_losses, ref backoff } = preset::TASKS.rules;
        assert_eq!((max_attempts, max_losses, backoff.to_string().as_str()), (3, 3, "never"));
        let policy = Defaults::new().queue(QUEUE).max_attempts(3).max_losses(3).backoff("never");
        let policy = policy.timeout(TIMEOUT);
        assert_eq!([Fetch::DEFAULTS, Digest::DEFAULTS, Report::DEFAULTS], [policy; 3]);
        assert_eq!([Fetch::KIND, Digest::KIND, Report::KIND], ["task.fetch", "task.digest", "task.report"]);
        assert_eq!(tenant().as_str(), TENANT);
    }

    #[test]
    fn what_no_task_can_fetch_is_refused() {
        assert!(["https://x", "http://127.0.0.1:7600/a"].into_iter().all(|url| check_url(url).is_ok()));
        assert!(["ftp://x", "x", "", "https://", "file:///etc/passwd"].into_iter().all(|url| check_url(url).is_err()));
    }
}
