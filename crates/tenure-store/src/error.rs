//! What can go wrong, grouped by what the caller does next.

use tenure_core::name::{QueueName, TenantName};
use tenure_core::{Invalid, JobId};

/// A verb that did not do what was asked. Nothing was written, except where `Unavailable` says that nobody knows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The caller's lease no longer holds the job: drop the result.
    #[error("the lease no longer holds job {0}: its result is dropped")]
    LeaseLost(JobId),
    /// The page is not the one its partition waits for: it was repeated, or it comes out of order.
    #[error("offset_mismatch: the partition goes on at {expected}, this page begins at {got}")]
    OffsetMismatch {
        /// Where the partition goes on.
        expected: u64,
        /// Where this page begins.
        got: u64,
    },
    /// There is no such thing, or it is out of sight.
    #[error("{0} is not known here")]
    NotFound(String),
    /// It is there, but not in a state that allows this.
    #[error("{0}")]
    Conflict(String),
    /// The queue has as many pending jobs as its quota allows: come again when some are claimed.
    #[error("{0}")]
    Full(String),
    /// The tenant has as many of these as it may: it has to give one up first.
    #[error("{0}")]
    Limit(String),
    /// The input was refused.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// The store's schema and this program do not belong together.
    #[error("{0}")]
    Schema(String),
    /// The store did not answer, or not in time. Whether it happened is unknown: send the same request again.
    #[error("the store is not available: {0}")]
    Unavailable(String, #[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// What came back makes no sense. A bug, or somebody wrote into the tables.
    #[error("the store holds something unreadable: {0}")]
    Corrupt(String),
}

impl StoreError {
    /// Wraps a driver's error as a passing one.
    pub fn unavailable(source: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Unavailable(source.to_string(), Some(Box::new(source)))
    }

    /// A queue that is full; for whom, where each tenant has a quota of its own.
    pub fn full(queue: &QueueName, tenant: Option<&TenantName>, quota: u32) -> Self {
        let whom = tenant.map(|tenant| format!(" for tenant `{tenant}`")).unwrap_or_default();
        Self::Full(format!(
            "queue `{queue}` is full{whom}: its quota is {quota} pending jobs; come again when some are claimed, \
             or raise it with `tenure queues set {queue} --quota N`"
        ))
    }

    /// A tenant that has as many of something as it may, and how to get below the limit.
    pub fn limit(what: &str, tenant: &TenantName, max: u32, way_out: &str) -> Self {
        Self::Limit(format!("{what} of tenant `{tenant}`: {max} is the limit; {way_out}"))
    }

    /// The same once more, for another who has to hear it; the source stays with the first.
    #[must_use]
    pub fn repeat(&self) -> Self {
        match self {
            Self::LeaseLost(job) => Self::LeaseLost(*job),
            Self::OffsetMismatch { expected, got } => Self::OffsetMismatch { expected: *expected, got: *got },
            Self::NotFound(what) => Self::NotFound(what.clone()),
            Self::Conflict(why) => Self::Conflict(why.clone()),
            Self::Full(why) => Self::Full(why.clone()),
            Self::Limit(why) => Self::Limit(why.clone()),
            Self::Invalid(why) => Self::Invalid(why.clone()),
            Self::Schema(why) => Self::Schema(why.clone()),
            Self::Unavailable(why, _) => Self::Unavailable(why.clone(), None),
            Self::Corrupt(why) => Self::Corrupt(why.clone()),
        }
    }

    /// Whether sending the same request again may help.
    pub const fn is_passing(&self) -> bool {
        matches!(self, Self::Unavailable(..))
    }
}
