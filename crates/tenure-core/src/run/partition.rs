//! A partition: one stream of pages. Its offset moves with the rows of each page, in the page's own transaction.

use super::{RunEvent, RunState, of};
use crate::id::JobId;
use crate::lifecycle::How;

/// What a partition is at heart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Where it stands.
    pub state: RunState,
    /// The job of the page that is next or was last. What any other job says of this partition is not heard.
    pub job: JobId,
    /// Whether its last page is committed.
    pub finished: bool,
    /// What went wrong last, as the store's own JSON text.
    pub last_error: Option<String>,
}

/// A partition went from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// It was.
    pub from: RunState,
    /// It is.
    pub to: RunState,
}

/// What is said of a page whose handler returned without a word about its partition.
const SILENT: &str = r#"{"code":"page_unfinished","message":"the page ended without advance or finish"}"#;

impl Partition {
    /// A new one, before its first page.
    pub const fn new(job: JobId) -> Self {
        Self { state: RunState::Queued, job, finished: false, last_error: None }
    }

    /// The job of a page ended, and no other page follows.
    pub(super) fn end(&mut self, job: JobId, how: How, event: &RunEvent) -> Option<Moved> {
        if job != self.job || !self.state.is_open() {
            return None;
        }
        let to = match how {
            How::Succeeded if !self.finished => RunState::Failed,
            how => of(how),
        };
        match to {
            RunState::Succeeded => {}
            _ if how == How::Succeeded => self.last_error = Some(SILENT.to_owned()),
            _ => self.last_error = event.error.clone().or(self.last_error.take()),
        }
        Some(self.turn(to))
    }

    /// An operator revived the job of the page that ended it. That job may have gone on meanwhile, even to the end: only
    /// the page at hand ever says so, in order, so this is about the last ending that was heard.
    pub(super) fn revive(&mut self) -> Option<Moved> {
        matches!(self.state, RunState::Failed | RunState::Canceled).then(|| self.turn(RunState::Running))
    }

    /// From now on it is `to`.
    pub fn turn(&mut self, to: RunState) -> Moved {
        Moved { from: std::mem::replace(&mut self.state, to), to }
    }
}
