//! What a store keeps of a run, as small as it gets, and how it becomes what `tenure_core::run` asks for.

use std::fmt;
use std::sync::LazyLock;

use tenure_core::run::{Fan, Partition, Run, RunEvent, Told};
use tenure_core::{How, JobId, PartitionName, RunState, Timestamp};

use super::PAGES;

/// Time does not matter here.
pub(super) const NOW: Timestamp = Timestamp::from_micros(1_763_197_200_000_000);

static NAMES: LazyLock<[PartitionName; 2]> =
    LazyLock::new(|| ["p1", "p2"].map(|name| name.parse().expect("a name of a partition")));

/// The run's row, its partitions, their jobs, what was said, and the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fanned {
    pub(super) run: RunRow,
    pub(super) partitions: [Row; 2],
    /// By partition, whether it was started again, and page.
    jobs: [[[Job; 2]; 2]; 2],
    pub(super) item: Item,
    pub(super) consolidate: Consolidate,
    /// How often it was opened.
    pub(super) opened: u8,
    pub(super) said: Queue,
    pub(super) hands: [Hand; 2],
    /// Whether the operator has done what one does here.
    pub(super) helped: bool,
    /// Leases that were lost.
    pub(super) losses: u8,
    /// Whether a page ran out of attempts.
    pub(super) has_failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RunRow {
    pub(super) state: RunState,
    pub(super) sealed: bool,
    pub(super) fan: Fan,
    counts: [u8; 3],
    has_started: bool,
}

/// A partition's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Row {
    pub(super) state: RunState,
    /// Its page that is next or was last.
    pub(super) page: Page,
    pub(super) offset: u8,
    pub(super) rows: u8,
    pub(super) finished: bool,
}

/// A page's job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Page {
    pub(super) of: u8,
    pub(super) again: bool,
    pub(super) at: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Job {
    pub(super) place: Place,
    /// The fence of its newest lease.
    pub(super) grants: u8,
    pub(super) losses: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Place {
    Absent,
    Ready,
    Held,
    Done,
    Dead,
    /// Its partition goes on without it.
    Gone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Item {
    Absent,
    Ready,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Consolidate {
    Waiting,
    Canceled,
    Ready,
    Ended,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Hand {
    Idle,
    Holds {
        page: Page,
        grant: u8,
    },
    /// One half is done (a mutant's).
    Half {
        page: Page,
        how: How,
    },
}

/// A sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Said {
    Added(u8),
    ItemEnded,
    Ended(Page, How),
    Requeued(Page),
    FanEnded(How),
    FanRequeued,
}

/// What was said and not heard yet, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Queue([Option<Said>; 12]);

impl Fanned {
    pub(super) fn new() -> Self {
        let absent = Job { place: Place::Absent, grants: 0, losses: 0 };
        let mut state = Self {
            run: RunRow {
                state: RunState::Queued,
                sealed: false,
                fan: Fan::Waiting,
                counts: [2, 0, 0],
                has_started: false,
            },
            partitions: [Row::new(0), Row::new(1)],
            jobs: [[[absent; 2]; 2]; 2],
            item: Item::Absent,
            consolidate: Consolidate::Waiting,
            opened: 0,
            said: Queue([None; 12]),
            hands: [Hand::Idle; 2],
            helped: false,
            losses: 0,
            has_failed: false,
        };
        for partition in state.partitions {
            state.job_mut(partition.page).place = Place::Ready;
        }
        state
    }

    pub(super) const fn job(&self, page: Page) -> &Job {
        &self.jobs[page.of as usize][page.again as usize][page.at as usize]
    }

    pub(super) const fn job_mut(&mut self, page: Page) -> &mut Job {
        &mut self.jobs[page.of as usize][page.again as usize][page.at as usize]
    }

    /// Pages that somebody holds.
    pub(super) fn held(&self) -> impl Iterator<Item = Page> {
        pages().filter(|page| self.job(*page).place == Place::Held)
    }

    /// What nobody can ask about any more is not kept, or the states would be many more: the fence of a job that no worker
    /// remembers, and a job that is not its partition's page.
    pub(super) fn forget(&mut self) {
        let known =
            |page| self.hands.iter().any(|hand| matches!(hand, Hand::Holds { page: held, .. } if *held == page));
        let mut jobs = self.jobs;
        for page in pages().filter(|page| !known(*page)) {
            let job = &mut jobs[usize::from(page.of)][usize::from(page.again)][usize::from(page.at)];
            job.grants = 0;
            if job.place != Place::Held && self.partitions[usize::from(page.of)].page != page {
                *job = Job { place: Place::Absent, grants: 0, losses: 0 };
            }
        }
        self.jobs = jobs;
    }

    /// The next page of a partition is stored.
    pub(super) fn go_on(&mut self, behind: Page) {
        let page = Page { at: behind.at + 1, ..behind };
        self.partitions[usize::from(page.of)].page = page;
        *self.job_mut(page) = Job { place: Place::Ready, grants: 0, losses: 0 };
    }

    /// Whether everything is there, really.
    pub(super) fn is_whole(&self) -> bool {
        self.run.sealed && self.item == Item::Ended && self.partitions.iter().all(|partition| partition.finished)
    }

    /// Whether all that was said, heard or not, is what the members and the consolidate are.
    pub(super) fn is_told(&self) -> bool {
        let (mut run, mut partitions) = self.hearts();
        self.said.0.iter().flatten().for_each(|said| said.tell(&mut run, &mut partitions));
        let dead = |row: &Row| self.job(row.page).place == Place::Dead;
        let same = self.partitions.iter().zip(&partitions).all(|(row, partition)| match partition.state {
            RunState::Succeeded => row.finished,
            RunState::Failed => dead(row),
            RunState::Queued | RunState::Running => !row.finished && !dead(row),
            RunState::Canceled => false,
        });
        let done = self.partitions.iter().filter(|row| row.finished).count() + usize::from(self.item == Item::Ended);
        let failed = self.partitions.iter().filter(|row| dead(row)).count();
        let total = 2 + usize::from(self.item != Item::Absent);
        let counts = (run.total, run.done, run.failed, run.canceled);
        let fan = match self.consolidate {
            Consolidate::Waiting => Fan::Waiting,
            Consolidate::Canceled => Fan::Skipped,
            Consolidate::Ready => Fan::Open,
            Consolidate::Ended => Fan::Ended(How::Succeeded),
        };
        same && counts == (total as u64, done as u64, failed as u64, 0) && run.fan == fan
    }

    /// What the rules ask for.
    pub(super) fn hearts(&self) -> (Run, [Partition; 2]) {
        let RunRow { state, sealed, fan, counts: [total, done, failed], has_started } = self.run;
        let run = Run {
            state,
            fan,
            total: total.into(),
            done: done.into(),
            failed: failed.into(),
            started_at: has_started.then_some(NOW),
            finished_at: (!state.is_open()).then_some(NOW),
            ..Run::new(sealed)
        };
        let heart =
            |Row { state, page, finished, .. }: Row| Partition { state, finished, ..Partition::new(page.job()) };
        (run, self.partitions.map(heart))
    }

    pub(super) fn save(&mut self, run: &Run, partitions: &[Partition; 2]) {
        self.run = RunRow {
            state: run.state,
            sealed: run.sealed,
            fan: run.fan,
            counts: [run.total, run.done, run.failed].map(|count| count as u8),
            has_started: run.started_at.is_some(),
        };
        self.partitions.iter_mut().zip(partitions).for_each(|(row, partition)| row.state = partition.state);
    }
}

/// Every page there may be.
fn pages() -> impl Iterator<Item = Page> {
    let all = (0..2_u8).flat_map(|of| [false, true].map(|again| (of, again)));
    all.flat_map(|(of, again)| (0..PAGES[usize::from(of)]).map(move |at| Page { of, again, at }))
}

impl Row {
    pub(super) const fn new(of: u8) -> Self {
        let page = Page { of, again: false, at: 0 };
        Self { state: RunState::Queued, page, offset: 0, rows: 0, finished: false }
    }
}

impl Page {
    fn job(self) -> JobId {
        JobId::from_parts(NOW, [self.of * 4 + u8::from(self.again) * 2 + self.at; 10])
    }
}

impl fmt::Display for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let again = if self.again { " (again)" } else { "" };
        write!(f, "p{}:{}{again}", self.of + 1, self.at)
    }
}

impl Said {
    /// The sentence is heard.
    pub(super) fn tell(self, run: &mut Run, partitions: &mut [Partition; 2]) {
        let name = |page: Page| NAMES[usize::from(page.of)].clone();
        let (told, of) = match self {
            Self::Added(members) => (Told::Added(members.into()), None),
            Self::ItemEnded => (Told::Ended(How::Succeeded, 1), None),
            Self::Ended(page, how) => (Told::PageEnded(name(page), page.job(), how), Some(page.of)),
            Self::Requeued(page) => (Told::PageRequeued(name(page), page.job()), Some(page.of)),
            Self::FanEnded(how) => (Told::FanEnded(how), None),
            Self::FanRequeued => (Told::FanRequeued, None),
        };
        run.hear(&RunEvent { at: NOW, told, error: None }, of.map(|of| &mut partitions[usize::from(of)]));
    }
}

impl Queue {
    pub(super) fn len(&self) -> u8 {
        self.0.iter().flatten().count() as u8
    }

    pub(super) fn push(&mut self, said: Said) {
        let end = usize::from(self.len());
        self.0[end] = Some(said);
    }

    /// The first so many, which are there no longer.
    pub(super) fn take(&mut self, portion: u8, keep: bool) -> Vec<Said> {
        let portion = usize::from(portion);
        let heard = self.0[..portion].iter().flatten().copied().collect();
        if !keep {
            self.0[..portion].fill(None);
            self.0.rotate_left(portion);
        }
        heard
    }

    /// Those about who joined.
    pub(super) fn take_added(&mut self) -> Vec<Said> {
        let all: Vec<Said> = self.0.iter().flatten().copied().collect();
        let (added, others): (Vec<Said>, Vec<Said>) = all.iter().partition(|said| matches!(said, Said::Added(_)));
        *self = Self([None; 12]);
        others.into_iter().for_each(|said| self.push(said));
        added
    }
}
