//! What is known of the shop, told by the store's own journal: jobs and their states, who holds what, what happened.
//!
//! The story and the producer write what only they know (names, sentences); everything else comes from journal rows.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::{How, JobId, LeaseNo, State, WorkerId};

use tenure_store::record::JobSummary;

use super::outlet;
use crate::paint::Paint;

/// Lines that are kept for the view.
const LINES_MAX: usize = 40;

/// Shared by everybody in the demo's process; cheap to clone.
#[derive(Clone)]
pub(super) struct Board(Arc<Mutex<Known>>);

/// Everything that is known.
pub(super) struct Known {
    pub(super) began: Instant,
    pub(super) headline: Headline,
    pub(super) dashboard: Option<String>,
    pub(super) workers: Vec<Member>,
    pub(super) counts: BTreeMap<State, u64>,
    pub(super) lines: VecDeque<Line>,
    /// Lines for those who read no screen, until they are taken.
    news: Vec<Line>,
    jobs: HashMap<JobId, Job>,
    names: HashMap<JobId, String>,
    workers_by_id: HashMap<WorkerId, String>,
    holders: HashMap<LeaseNo, WorkerId>,
    /// Jobs of the outlet next door.
    foreign: HashSet<JobId>,
    lost: HashSet<(LeaseNo, JobId)>,
    refused: HashSet<(LeaseNo, JobId)>,
}

/// One job.
struct Job {
    state: State,
    /// The row that said so: rows may be read out of order, and an older one says nothing new.
    row: i64,
    lease: Option<LeaseNo>,
}

/// What is happening right now, in plain words.
#[derive(Debug, Clone, Default)]
pub(super) struct Headline {
    pub(super) text: String,
    /// When the lease ends that everybody waits for.
    pub(super) lease_ends: Option<Instant>,
}

/// One worker process.
#[derive(Debug, Clone)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) pid: u32,
    pub(super) mood: Mood,
    pub(super) note: String,
    pub(super) running: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mood {
    Running,
    Killed,
    Frozen,
    Refused,
    Stopped,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) at: Duration,
    pub(super) who: String,
    pub(super) word: &'static str,
    pub(super) paint: Paint,
    pub(super) text: String,
}

impl Board {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Known {
            began: Instant::now(),
            headline: Headline::default(),
            dashboard: None,
            workers: Vec::new(),
            counts: BTreeMap::new(),
            lines: VecDeque::new(),
            news: Vec::new(),
            jobs: HashMap::new(),
            names: HashMap::new(),
            workers_by_id: HashMap::new(),
            holders: HashMap::new(),
            foreign: HashSet::new(),
            lost: HashSet::new(),
            refused: HashSet::new(),
        })))
    }

    pub(super) fn look(&self) -> MutexGuard<'_, Known> {
        // Nothing in here panics half-way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is happening now; also a line for those who read no screen.
    pub(super) fn say(&self, text: impl Into<String>) {
        self.say_until(text, None);
    }

    /// The same, while a lease runs out.
    pub(super) fn say_until(&self, text: impl Into<String>, lease_ends: Option<Instant>) {
        let text = text.into();
        let mut known = self.look();
        let line =
            Line { at: known.began.elapsed(), who: String::new(), word: "", paint: Paint::Bold, text: text.clone() };
        known.news.push(line);
        known.headline = Headline { text, lease_ends };
    }

    pub(super) fn hire(&self, name: &'static str, pid: u32, note: impl Into<String>) {
        self.look().workers.push(Member { name, pid, mood: Mood::Running, note: note.into(), running: 0 });
    }

    pub(super) fn set_mood(&self, name: &str, mood: Mood, note: impl Into<String>) {
        if let Some(member) = self.look().workers.iter_mut().find(|member| member.name == name) {
            member.mood = mood;
            member.note = note.into();
        }
    }

    /// How a job is called; said before it is stored, since its first row may come before the answer.
    pub(super) fn name_job(&self, job: JobId, name: String) {
        self.look().names.insert(job, name);
    }

    /// A job was stored.
    pub(super) fn stored(&self, job: JobId) {
        let mut known = self.look();
        if !known.jobs.contains_key(&job) {
            known.set(job, State::Queued, 0, None);
        }
    }

    /// Where all of it can be seen in a browser.
    pub(super) fn open_dashboard(&self, url: Option<&str>) {
        match url {
            Some(url) => self.say(format!("The dashboard is open: {url}")),
            None => self.say("There is no free port for the dashboard: this is told without it"),
        }
        self.look().dashboard = url.map(str::to_owned);
    }

    /// Workers by the numbers that rows name them with.
    pub(super) fn know_workers(&self, workers: impl IntoIterator<Item = (WorkerId, String)>) {
        self.look().workers_by_id.extend(workers);
    }

    /// Takes the lines for those who read no screen.
    pub(super) fn take_news(&self) -> Vec<Line> {
        std::mem::take(&mut self.look().news)
    }

    /// Whether the journal says that this lease lost this job.
    pub(super) fn is_lost(&self, lease: LeaseNo, job: JobId) -> bool {
        self.look().lost.contains(&(lease, job))
    }

    /// Whether the journal says that a report under this lease about this job was refused.
    pub(super) fn is_refused(&self, lease: LeaseNo, job: JobId) -> bool {
        self.look().refused.contains(&(lease, job))
    }

    /// Jobs that have not ended.
    pub(super) fn unfinished(&self) -> u64 {
        self.look().counts.iter().filter(|(state, _)| !state.is_terminal()).map(|(_, count)| count).sum()
    }
}

impl Known {
    /// Whether a row names a worker that is not known by name.
    pub(super) fn is_stranger(&self, row: &JournalRow) -> bool {
        row.worker.is_some_and(|worker| !self.workers_by_id.contains_key(&worker))
    }

    /// Jobs of a row that nobody has named yet.
    pub(super) fn unnamed(&self, row: &JournalRow) -> Vec<JobId> {
        let is_unnamed = |job: &&JobId| !self.names.contains_key(*job) && !self.foreign.contains(*job);
        row.jobs.iter().filter(is_unnamed).copied().collect()
    }

    /// A job that nobody has named: a later page of a shelf, or one of the outlet's.
    pub(super) fn meet(&mut self, job: &JobSummary) {
        match job.tenant.as_str() {
            outlet::TENANT => _ = self.foreign.insert(job.id),
            _ => _ = self.names.insert(job.id, job.kind.to_string()),
        }
    }

    /// What a row says. `error`: what went wrong, where something did.
    pub(super) fn row(&mut self, row: &JournalRow, error: Option<&str>) {
        let jobs: Vec<JobId> = row.jobs.iter().filter(|job| !self.foreign.contains(*job)).copied().collect();
        // By its jobs, not by its worker: any worker may take back a lease that is over.
        if jobs.is_empty() && !row.jobs.is_empty() {
            return;
        }
        if let (JournalEvent::Claimed, Some(lease), Some(worker)) = (row.event, row.lease, row.worker) {
            self.holders.insert(lease, worker);
        }
        for job in &jobs {
            match (row.event, row.lease) {
                (JournalEvent::Ended(How::Lost), Some(lease)) => _ = self.lost.insert((lease, *job)),
                (JournalEvent::Refused, Some(lease)) => _ = self.refused.insert((lease, *job)),
                _ => {}
            }
            if let Some(state) = state_after(row.event) {
                self.set(*job, state, row.id, row.lease.filter(|_| state == State::Running));
            }
        }
        self.count_running();
        if let Some(line) = self.line(row, error) {
            if is_news(row.event) {
                self.news.push(line.clone());
            }
            self.lines.push_back(line);
            while self.lines.len() > LINES_MAX {
                self.lines.pop_front();
            }
        }
    }

    fn set(&mut self, job: JobId, state: State, row: i64, lease: Option<LeaseNo>) {
        let known = self.jobs.get(&job);
        if known.is_some_and(|known| known.row > row) {
            return;
        }
        if let Some(count) = known.and_then(|known| self.counts.get_mut(&known.state)) {
            *count -= 1;
        }
        *self.counts.entry(state).or_default() += 1;
        self.jobs.insert(job, Job { state, row, lease });
    }

    fn count_running(&mut self) {
        let mut running: HashMap<&str, usize> = HashMap::new();
        for job in self.jobs.values().filter(|job| job.state == State::Running) {
            let holder = job.lease.and_then(|lease| self.holders.get(&lease));
            if let Some(name) = holder.and_then(|worker| self.workers_by_id.get(worker)) {
                *running.entry(name).or_default() += 1;
            }
        }
        for member in &mut self.workers {
            member.running = running.get(member.name).copied().unwrap_or(0);
        }
    }

    fn line(&self, row: &JournalRow, error: Option<&str>) -> Option<Line> {
        let what = match row.jobs.as_slice() {
            [] => return None,
            [job] => self.name(job),
            [first, rest @ ..] => format!("{} and {} more", self.name(first), rest.len()),
        };
        let holder = row.lease.and_then(|lease| self.holders.get(&lease)).and_then(|w| self.workers_by_id.get(w));
        let text = match (row.event, row.lease, error) {
            (JournalEvent::Claimed, Some(lease), _) => format!("{what}, lease {lease}"),
            (JournalEvent::Ended(How::Lost), Some(lease), _) => {
                format!("{what}: lease {lease} of {} is over", holder.map_or("somebody", String::as_str))
            }
            (JournalEvent::Refused, Some(lease), _) => format!("{what}: lease {lease} no longer holds it"),
            (_, _, Some(error)) => format!("{what}: {error}"),
            _ => what,
        };
        let who = row.actor.clone().or_else(|| row.worker.and_then(|w| self.workers_by_id.get(&w).cloned()));
        let (word, paint) = match row.event {
            JournalEvent::CancelRequested => ("cancel?", Paint::Yellow),
            // The point of it all: it should be seen.
            JournalEvent::Refused => ("refused", Paint::Red),
            event => (event.as_str(), Paint::of_event(event)),
        };
        Some(Line { at: self.began.elapsed(), who: who.unwrap_or_default(), word, paint, text })
    }

    fn name(&self, job: &JobId) -> String {
        self.names.get(job).cloned().unwrap_or_else(|| job.to_string())
    }
}

/// Where a job stands after a row about it; `None` where it stays where it was.
fn state_after(event: JournalEvent) -> Option<State> {
    Some(match event {
        JournalEvent::Claimed => State::Running,
        JournalEvent::Ended(how) => how.leads_to(),
        JournalEvent::Requeued | JournalEvent::Opened => State::Queued,
        _ => return None,
    })
}

/// What is told to those who read no screen: whatever is not everyday life.
fn is_news(event: JournalEvent) -> bool {
    !matches!(event, JournalEvent::Claimed | JournalEvent::Ended(How::Succeeded))
}
