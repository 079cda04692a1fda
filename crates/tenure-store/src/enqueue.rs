//! The answer of an enqueue.

use tenure_core::{JobId, State};

/// What an enqueue did with one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enqueued {
    /// It is stored.
    Created(JobId),
    /// An earlier job has its id, its idempotency key or its unique key.
    Found {
        /// The earlier job.
        job: JobId,
        /// Where it stands; `None` when it was pruned and only its key is left.
        state: Option<State>,
    },
}

impl Enqueued {
    /// The job that is there now.
    pub const fn job(&self) -> JobId {
        match self {
            Self::Created(job) | Self::Found { job, .. } => *job,
        }
    }

    /// The job if it is new.
    pub const fn created(&self) -> Option<JobId> {
        match self {
            Self::Created(job) => Some(*job),
            Self::Found { .. } => None,
        }
    }
}
