//! What is said to a run, one sentence at a time, and how the stores keep it.

use super::Part;
use crate::id::JobId;
use crate::lifecycle::How;
use crate::name::PartitionName;
use crate::time::Timestamp;

/// What somebody said about a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEvent {
    /// When.
    pub at: Timestamp,
    /// What.
    pub told: Told,
    /// What went wrong, as the store's own JSON text.
    pub error: Option<String>,
}

/// The sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// So many members came.
    Added(u64),
    /// The first job began.
    Started,
    /// So many items ended so.
    Ended(How, u64),
    /// An operator revived an item that had ended so.
    Requeued(How),
    /// The job of a page ended so, and its partition does not go on with another.
    PageEnded(PartitionName, JobId, How),
    /// An operator revived the job of a page.
    PageRequeued(PartitionName, JobId),
    /// The consolidate ended so.
    FanEnded(How),
    /// An operator revived the consolidate.
    FanRequeued,
}

impl Told {
    /// Whether a job must have begun for this to be said.
    pub(super) const fn is_a_start(&self) -> bool {
        match self {
            Self::Added(_) => false,
            Self::Ended(how, _) | Self::PageEnded(_, _, how) | Self::FanEnded(how) => !matches!(how, How::Canceled),
            Self::Started | Self::Requeued(_) | Self::PageRequeued(..) | Self::FanRequeued => true,
        }
    }

    /// The partition it is about.
    pub const fn partition(&self) -> Option<&PartitionName> {
        match self {
            Self::PageEnded(name, ..) | Self::PageRequeued(name, _) => Some(name),
            _ => None,
        }
    }

    /// As the stores keep it: 0 added, 9 started, the ending's code, and its negative for one that was revived. What it
    /// is about follows from the other columns.
    pub const fn code(&self) -> i16 {
        match self {
            Self::Added(_) => 0,
            Self::Started => 9,
            Self::Ended(how, _) | Self::PageEnded(_, _, how) | Self::FanEnded(how) => how.code(),
            Self::Requeued(how) => -how.code(),
            Self::PageRequeued(..) | Self::FanRequeued => -How::Dead.code(),
        }
    }

    /// The sentence of this code about `part`, said by `job`.
    pub fn from_code(code: i16, part: &Part, job: Option<JobId>, members: u64) -> Option<Self> {
        if code == 0 {
            return Some(Self::Added(members));
        }
        if code == 9 {
            return Some(Self::Started);
        }
        let how = How::from_code(code.abs()).filter(|how| how.is_final())?;
        Some(match (part, code > 0) {
            (Part::Item(_), true) => Self::Ended(how, members),
            (Part::Item(_), false) => Self::Requeued(how),
            (Part::Page { partition, .. }, true) => Self::PageEnded(partition.clone(), job?, how),
            (Part::Page { partition, .. }, false) => Self::PageRequeued(partition.clone(), job?),
            (Part::Consolidate(_), true) => Self::FanEnded(how),
            (Part::Consolidate(_), false) => Self::FanRequeued,
        })
    }
}
