//! Runs: many jobs with one goal, and the one job that waits for all of them.
//!
//! A run has members: items, which are jobs of their own, and partitions, each of which is a stream of pages and one job
//! a page. An ending of a member's job says one sentence, [`RunEvent`], in the same transaction; whoever counts folds the
//! sentences into the run ([`Run::hear`]) and then asks what is to be done ([`Run::settle`]). Nobody else touches the
//! counts, so that no user's transaction ever waits for a run.
//!
//! ```text
//!   items, pages ── say how they ended ──▶ run_event ── folded ──▶ run: total, done, failed, canceled
//!                                                                   │ sealed, and all have ended
//!                                             all well ◀────────────┴───────▶ too many are missing
//!                                   the consolidate is opened             it is canceled, the run failed
//! ```
//!
//! A run that is *open* may grow; a *sealed* one has all its members. Only a sealed run can end well.

mod part;
mod partition;
mod told;

pub use part::{PARTITION_OFFSET_MAX, Part, RunId};
pub use partition::{Moved, Partition};
pub use told::{RunEvent, Told};

use crate::lifecycle::How;
use crate::time::Timestamp;

/// Where a run or a partition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RunState {
    /// None of its jobs has begun.
    Queued,
    /// On its way.
    Running,
    /// All of it is done.
    Succeeded,
    /// Something of it is missing, and nothing of it goes on.
    Failed,
    /// Somebody ended it.
    Canceled,
}

/// How the job stands that waits for all the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fan {
    /// There is none.
    None,
    /// It waits.
    Waiting,
    /// It was canceled because the run failed. Should the run be healed, it is revived.
    Skipped,
    /// It may run.
    Open,
    /// It ended so.
    Ended(How),
}

/// What a run is at heart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Where it stands.
    pub state: RunState,
    /// Whether it has all its members.
    pub sealed: bool,
    /// Whether the first member too many ends the others.
    pub fail_fast: bool,
    /// How many members may be missing in a run that ends well.
    pub tolerated: u32,
    /// Whether its deadline has ended it.
    pub expired: bool,
    /// Its members.
    pub total: u64,
    /// Those that succeeded.
    pub done: u64,
    /// Those that failed.
    pub failed: u64,
    /// Those that were canceled.
    pub canceled: u64,
    /// The job that waits for them.
    pub fan: Fan,
    /// When its first job began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// What went wrong last, as the store's own JSON text.
    pub last_error: Option<String>,
}

/// What is to be done about a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Everything is there: the consolidate may run.
    Open,
    /// Something is missing: the consolidate will not run.
    Skip,
    /// Whatever is left of the run is to be canceled.
    CancelRest,
}

/// What is said of a run whose deadline is over.
const LATE: &str = r#"{"code":"deadline","message":"the run did not end before its deadline"}"#;

impl Run {
    /// A new one, sealed or open.
    pub const fn new(sealed: bool) -> Self {
        Self {
            state: RunState::Queued,
            sealed,
            fail_fast: false,
            tolerated: 0,
            expired: false,
            total: 0,
            done: 0,
            failed: 0,
            canceled: 0,
            fan: Fan::None,
            started_at: None,
            finished_at: None,
            last_error: None,
        }
    }

    /// Members that are neither done nor missing yet.
    pub const fn left(&self) -> u64 {
        self.total.saturating_sub(self.done + self.failed + self.canceled)
    }

    /// Folds one sentence. `partition` is the one it names, and the counts follow what becomes of that.
    pub fn hear(&mut self, event: &RunEvent, partition: Option<&mut Partition>) {
        if event.told.is_a_start() {
            self.started_at = Some(self.started_at.map_or(event.at, |at| at.min(event.at)));
        }
        match &event.told {
            Told::Added(members) => self.total += members,
            Told::Started => {}
            Told::Ended(how, members) => self.count(of(*how), *members, event),
            Told::Requeued(how) => self.uncount(of(*how)),
            Told::PageEnded(_, job, how) => {
                if let Some(moved) = partition.and_then(|partition| partition.end(*job, *how, event)) {
                    self.follow(moved, event);
                }
            }
            // Nothing of a run that was canceled goes on.
            Told::PageRequeued(..) if self.state == RunState::Canceled => {}
            Told::PageRequeued(..) => {
                if let Some(moved) = partition.and_then(Partition::revive) {
                    self.follow(moved, event);
                }
            }
            // One that was skipped is canceled because we said so.
            Told::FanEnded(How::Canceled) if self.fan == Fan::Skipped => {}
            Told::FanEnded(how) => {
                self.fan = Fan::Ended(*how);
                self.last_error = event.error.clone().or(self.last_error.take());
            }
            Told::FanRequeued => self.fan = Fan::Open,
        }
    }

    /// A partition went from one state to another: so does its count.
    fn follow(&mut self, moved: Moved, event: &RunEvent) {
        self.uncount(moved.from);
        self.count(moved.to, 1, event);
    }

    /// Whether more members are missing than may be.
    fn misses_too_many(&self) -> bool {
        self.failed + self.canceled > u64::from(self.tolerated)
    }

    /// An operator lets a partition go on: so does the run, whatever ended it.
    pub fn resume(&mut self, moved: Moved) {
        self.uncount(moved.from);
        self.expired = false;
        // One that fails fast goes on when enough of its members do: by then it has failed for what it misses, and would
        // do so once more and take the one with it that was just revived.
        if self.fail_fast && self.misses_too_many() {
            return;
        }
        self.finished_at = None;
        // Nothing is decided here: what was said and is not heard yet may matter.
        self.state = if self.started_at.is_some() { RunState::Running } else { RunState::Queued };
    }

    /// Why no job that is this part of it may be revived by an ordinary requeue, if none may.
    pub fn refuses_requeue(&self, part: &Part) -> Option<&'static str> {
        let complete = self.sealed && self.left() == 0 && !self.misses_too_many();
        match (part, self.fan) {
            _ if self.state == RunState::Canceled => Some("its run was canceled"),
            (Part::Consolidate(_), _) if complete => None,
            (Part::Consolidate(_), _) => Some("it runs by itself when all members of its run are there"),
            (_, Fan::Open | Fan::Ended(_)) => Some("the consolidate of its run has begun"),
            (_, Fan::None | Fan::Waiting | Fan::Skipped) => None,
        }
    }

    /// What the run is now and what is to be done, at `now`. Asked once, it answers the same again.
    pub fn settle(&mut self, now: Timestamp) -> Option<Act> {
        if self.state == RunState::Canceled {
            return None;
        }
        let all = self.sealed && self.left() == 0;
        let missing = self.misses_too_many();
        let (state, act) = match self.fan {
            _ if self.expired => (RunState::Failed, None),
            _ if missing && all => (RunState::Failed, (self.fan == Fan::Waiting).then_some(Act::Skip)),
            _ if missing && self.fail_fast => {
                (RunState::Failed, (self.state != RunState::Failed).then_some(Act::CancelRest))
            }
            Fan::None | Fan::Ended(How::Succeeded) if all => (RunState::Succeeded, None),
            Fan::Waiting | Fan::Skipped if all => (RunState::Running, Some(Act::Open)),
            Fan::Ended(_) if all => (RunState::Failed, None),
            Fan::Open => (RunState::Running, None),
            _ if self.started_at.is_some() => (RunState::Running, None),
            _ => (RunState::Queued, None),
        };
        match act {
            Some(Act::Open) => self.fan = Fan::Open,
            Some(Act::Skip) => self.fan = Fan::Skipped,
            Some(Act::CancelRest) if self.fan == Fan::Waiting => self.fan = Fan::Skipped,
            Some(Act::CancelRest) | None => {}
        }
        let has_ended = !matches!(state, RunState::Queued | RunState::Running);
        if has_ended != self.finished_at.is_some() || state != self.state {
            self.finished_at = has_ended.then_some(now);
        }
        self.state = state;
        act
    }

    /// Its deadline is over: it has failed, whatever is left of it.
    pub fn expire(&mut self, now: Timestamp) {
        (self.state, self.finished_at, self.expired) = (RunState::Failed, Some(now), true);
        self.fan = if self.fan == Fan::Waiting { Fan::Skipped } else { self.fan };
        self.last_error = Some(LATE.to_owned());
    }

    fn count(&mut self, state: RunState, members: u64, event: &RunEvent) {
        match state {
            RunState::Succeeded => self.done += members,
            RunState::Failed => self.failed += members,
            RunState::Canceled => self.canceled += members,
            RunState::Queued | RunState::Running => {}
        }
        if event.error.is_some() {
            self.last_error.clone_from(&event.error);
        }
    }

    fn uncount(&mut self, state: RunState) {
        let count = match state {
            RunState::Succeeded => &mut self.done,
            RunState::Failed => &mut self.failed,
            RunState::Canceled => &mut self.canceled,
            RunState::Queued | RunState::Running => return,
        };
        *count = count.saturating_sub(1);
    }
}

impl RunState {
    /// Every state; the position is what the stores keep.
    pub const ALL: [Self; 5] = [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::Canceled];

    /// The word used in columns, commands and replies.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }

    /// 0..=4, what the stores keep.
    pub const fn code(self) -> i16 {
        match self {
            Self::Queued => 0,
            Self::Running => 1,
            Self::Succeeded => 2,
            Self::Failed => 3,
            Self::Canceled => 4,
        }
    }

    /// The state of this code, if it is one.
    pub fn from_code(code: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.code() == code)
    }

    /// The state of this word, if it is one.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Whether it goes on by itself.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

impl Fan {
    /// What the stores keep: 0 none, 1 waiting, 2 skipped, 3 open, 10 + the ending's own code.
    pub const fn code(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Waiting => 1,
            Self::Skipped => 2,
            Self::Open => 3,
            Self::Ended(how) => 10 + how.code(),
        }
    }

    /// What this code stands for, if anything.
    pub fn from_code(code: i16) -> Option<Self> {
        match code {
            0 => Some(Self::None),
            1 => Some(Self::Waiting),
            2 => Some(Self::Skipped),
            3 => Some(Self::Open),
            code => How::from_code(code - 10).map(Self::Ended),
        }
    }

    /// In a word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Waiting => "waiting",
            Self::Skipped => "skipped",
            Self::Open => "open",
            Self::Ended(how) => how.as_str(),
        }
    }
}

/// What a member is whose job ended so.
const fn of(how: How) -> RunState {
    match how {
        How::Succeeded => RunState::Succeeded,
        How::Canceled => RunState::Canceled,
        How::Failed | How::Dead => RunState::Failed,
        How::Retry | How::Snoozed | How::Released | How::Lost => RunState::Running,
    }
}
