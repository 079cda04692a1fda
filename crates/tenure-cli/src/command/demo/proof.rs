//! What was promised and what was seen: read from the store and its journal when everything is over.

use std::collections::BTreeMap;

use tenure_core::journal::{JournalEvent, JournalRow};
use tenure_core::{How, JobId, RunState, State, TenantName, WorkerId};
use tenure_sqlite::SqliteStore;
use tenure_store::Store;
use tenure_store::audit::{self, verify};
use tenure_store::enqueue::Enqueued;
use tenure_store::record::{JobFilter, JobRecord, Sight};

use super::catalogue::Catalogue;
use super::crash::Killed;
use super::kinds::{self, PRICES};
use super::orders::REVIEW_DELAY;
use super::outlet;
use super::stale::Frozen;
use super::story::Done;
use crate::command::audit::seal;
use crate::command::audit::seen::Seen;
use crate::failure::Failure;

/// Jobs listed at once.
const PAGE: u32 = 1_000;

/// Everything that can be said about a demo that is over.
pub(super) struct Proof {
    pub(super) states: BTreeMap<State, u64>,
    /// Jobs taken back from leases that were over, by the journal.
    pub(super) reclaimed: u64,
    /// Reports refused, by the journal.
    pub(super) stale_refused: u64,
    pub(super) audit: audit::Report,
    pub(super) violations: usize,
    pub(super) killed: Option<Killed>,
    pub(super) frozen: Option<Frozen>,
    pub(super) promises: Vec<Promise>,
}

/// One thing the demo promises to show.
pub(super) struct Promise {
    pub(super) name: &'static str,
    pub(super) seen: bool,
    pub(super) text: String,
}

impl Proof {
    /// Seals the journal and checks everything. Nobody writes any more.
    pub(super) async fn read(store: &dyn Store, file: &SqliteStore, done: Done) -> Result<Self, Failure> {
        seal(store).await?;
        let audit = verify(store, None, |_| ()).await?;
        let outlets = outlets_worker(store).await?;
        let mut seen = Seen::nothing();
        let mut rows = Vec::new();
        loop {
            let news = seen.look(store).await?;
            match seen.take(news) {
                more if more.is_empty() => break,
                more => rows.extend(more.into_iter().filter(|row| row.worker != Some(outlets) || is_chore(row.event))),
            }
        }
        let violations = store.find_violations(10).await?.len();
        let mut proof = Self {
            states: states(store).await?,
            reclaimed: count(&rows, JournalEvent::Ended(How::Lost)),
            stale_refused: count(&rows, JournalEvent::Refused),
            audit,
            violations,
            killed: done.killed,
            frozen: done.frozen,
            promises: Vec::new(),
        };
        let story = Read { store, rows: &rows };
        proof.promises = [
            story.crash(&proof).await?,
            story.stale(&proof).await?,
            story.source(&done.asked).await?,
            story.run(done.catalogue.as_ref(), file).await?,
            story.everyday(&done.cast).await?,
            story.endings(&done.cast).await?,
            vec![proof.audited()],
        ]
        .into_iter()
        .flatten()
        .collect();
        Ok(proof)
    }

    pub(super) fn is_kept(&self) -> bool {
        self.promises.iter().all(|promise| promise.seen)
    }

    pub(super) fn verified(&self) -> bool {
        self.audit.findings.is_empty() && self.audit.seals > 0
    }

    fn audited(&self) -> Promise {
        let (rows, seals) = (self.audit.rows, self.audit.seals);
        let text = format!("{rows} rows under {seals} seals: every hash fits, every step is legal");
        Promise { name: "audit", seen: self.verified() && self.violations == 0, text }
    }
}

/// What promises are read from.
struct Read<'s> {
    store: &'s dyn Store,
    rows: &'s [JournalRow],
}

impl Read<'_> {
    async fn crash(&self, proof: &Proof) -> Result<Vec<Promise>, Failure> {
        let Some(Killed { name, pid, held }) = &proof.killed else { return Ok(Vec::new()) };
        let mut seen = held.len() >= 3;
        for (lease, job) in held {
            let lost = self.has(JournalEvent::Ended(How::Lost), *job, |row| row.lease == Some(*lease));
            let job = self.show(*job).await?;
            let others = job.attempts.last().is_some_and(|last| last.worker.as_deref() != Some(name));
            seen &= lost && others && job.summary.state.is_terminal();
        }
        let count = held.len();
        let text = format!("{name} (pid {pid}), killed with -9, left {count} jobs: others ran them");
        Ok(vec![Promise { name: "crash", seen, text }])
    }

    async fn stale(&self, proof: &Proof) -> Result<Vec<Promise>, Failure> {
        let Some(Frozen { name, pid, held: (lease, job) }) = &proof.frozen else {
            return Ok(Vec::new());
        };
        let refused = self.has(JournalEvent::Refused, *job, |row| row.lease == Some(*lease));
        let job = self.show(*job).await?;
        let done = job.attempts.iter().any(|a| a.lease > *lease && a.how == How::Succeeded);
        let text = format!("{name} (pid {pid}) slept past its lease: its report was refused");
        Ok(vec![Promise { name: "stale", seen: refused && done, text }])
    }

    /// A breaker that opened and was closed by a probe.
    async fn source(&self, asked: &[JobId]) -> Result<Vec<Promise>, Failure> {
        let happened = |event: JournalEvent| self.rows.iter().filter(|row| row.event == event).count();
        let (tripped, healed) = (happened(JournalEvent::GateTripped), happened(JournalEvent::GateHealed));
        let mut seen = tripped > 0 && healed == 1 && !asked.is_empty();
        for job in asked {
            seen &= self.show(*job).await?.summary.state == State::Succeeded;
        }
        let text = format!("{PRICES} tripped {tripped} times while it was down, one probe healed it");
        Ok(vec![Promise { name: "breaker", seen, text }])
    }

    /// A run whose last job waited for all the others.
    async fn run(&self, catalogue: Option<&Catalogue>, file: &SqliteStore) -> Result<Vec<Promise>, Failure> {
        let Some(Catalogue { run, items }) = catalogue else { return Ok(Vec::new()) };
        let record = self.store.show_run(&Sight::All, *run).await?;
        let opened = |job: &JobId| {
            self.rows.iter().filter(|row| row.event == JournalEvent::Opened && row.jobs.contains(job)).count()
        };
        let once = record.consolidate.is_some_and(|job| opened(&job) == 1);
        let published = kinds::publications(file).await?;
        let seen = record.run.state == RunState::Succeeded && once && published == [*items];
        let text = format!("{items} items came in page by page, and were published once, when all were there");
        Ok(vec![Promise { name: "run", seen, text }])
    }

    /// Priorities, unique keys, delays, snoozes, retries.
    async fn everyday(&self, cast: &super::orders::Cast) -> Result<Vec<Promise>, Failure> {
        let first = self.rows.iter().filter(|row| row.event == JournalEvent::Claimed).find_map(|row| {
            let known = |job: &&JobId| **job == cast.alert || cast.before_alert.contains(*job);
            row.jobs.iter().find(known)
        });
        let found = matches!(cast.unique.1, Enqueued::Found { job, .. } if job == cast.unique.0);
        let delayed = self.show(cast.delayed).await?;
        let waited = delayed.attempts.iter().filter_map(|attempt| attempt.started_at).min();
        let waited = waited.map(|started| started.since(delayed.summary.created_at));
        let snoozed = self.ended(cast.snoozed, &[How::Snoozed, How::Succeeded]).await?;
        let retried = self.jobs(JournalEvent::Ended(How::Retry));
        let mut recovered = 0;
        for job in &retried {
            recovered += u64::from(self.show(*job).await?.summary.state == State::Succeeded);
        }
        let wait = waited.unwrap_or_default().as_secs_f64();
        Ok(vec![
            Promise {
                name: "retries",
                seen: recovered > 0,
                text: format!("{} jobs failed and were tried again; {recovered} of them succeeded", retried.len()),
            },
            Promise {
                name: "priority",
                seen: first == Some(&cast.alert),
                text: "a critical job enqueued last ran first".into(),
            },
            Promise {
                name: "unique",
                seen: found,
                text: "a second cart.sync with the same key found the first one".into(),
            },
            Promise {
                name: "delay",
                seen: waited.is_some_and(|waited| waited >= REVIEW_DELAY),
                text: format!("a job due in {} s started after {wait:.1} s", REVIEW_DELAY.as_secs()),
            },
            Promise { name: "snooze", seen: snoozed, text: "a snoozed job ran again later, no attempt charged".into() },
        ])
    }

    /// The ways not to succeed.
    async fn endings(&self, cast: &super::orders::Cast) -> Result<Vec<Promise>, Failure> {
        let failed = self.show(cast.no_mailbox).await?;
        let down = self.show(cast.always_down).await?;
        let buried = self.show(cast.no_picture).await?;
        let (waited, ran) = (self.show(cast.queued_newsletter).await?, self.show(cast.running_newsletter).await?);
        let worker = |job: &JobRecord| job.attempts.last().is_some_and(|attempt| attempt.worker.is_some());
        let canceled = |job: &JobRecord| job.summary.state == State::Canceled;
        Ok(vec![
            Promise {
                name: "failed",
                seen: failed.summary.state == State::Failed,
                text: "a permanent error ended a job at once as failed".into(),
            },
            Promise {
                name: "dead",
                seen: (down.summary.state, buried.summary.state) == (State::Dead, State::Dead),
                text: format!(
                    "two dead letters: one after {} attempts, one by its handler's word",
                    down.summary.attempt
                ),
            },
            Promise {
                name: "canceled",
                seen: canceled(&waited) && canceled(&ran) && worker(&ran),
                text: "a waiting job canceled at once, a running one stopped when asked".into(),
            },
        ])
    }

    async fn show(&self, job: JobId) -> Result<JobRecord, Failure> {
        Ok(self.store.show_job(&Sight::All, job).await?)
    }

    /// Whether a job has ended in these ways, among others, and the last one last.
    async fn ended(&self, job: JobId, hows: &[How]) -> Result<bool, Failure> {
        let ended: Vec<How> = self.show(job).await?.attempts.iter().map(|attempt| attempt.how).collect();
        Ok(hows.iter().all(|how| ended.contains(how)) && ended.last() == hows.last())
    }

    fn has(&self, event: JournalEvent, job: JobId, also: impl Fn(&JournalRow) -> bool) -> bool {
        self.rows.iter().any(|row| row.event == event && row.jobs.contains(&job) && also(row))
    }

    /// The jobs that this happened to, each once.
    fn jobs(&self, event: JournalEvent) -> Vec<JobId> {
        let mut jobs: Vec<JobId> =
            self.rows.iter().filter(|row| row.event == event).flat_map(|row| row.jobs.iter().copied()).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }
}

/// Jobs named by rows of this event.
fn count(rows: &[JournalRow], event: JournalEvent) -> u64 {
    rows.iter().filter(|row| row.event == event).map(|row| row.jobs.len() as u64).sum()
}

/// The worker next door: what it wrote about its own jobs is not the story's.
async fn outlets_worker(store: &dyn Store) -> Result<WorkerId, Failure> {
    let workers = store.list_workers(PAGE).await?;
    let outlets = workers.iter().find(|worker| worker.name.as_str() == outlet::WORKER);
    Ok(outlets.map_or(WorkerId(0), |worker| worker.id))
}

/// What any worker does for all of them: taking back leases that are over, opening what waited.
fn is_chore(event: JournalEvent) -> bool {
    matches!(event, JournalEvent::Ended(How::Lost) | JournalEvent::Opened)
}

/// Jobs by state, all of the shop's.
async fn states(store: &dyn Store) -> Result<BTreeMap<State, u64>, Failure> {
    let mut states = BTreeMap::new();
    let sight = Sight::Tenant(TenantName::default());
    let mut filter = JobFilter { sight, limit: PAGE, ..JobFilter::default() };
    loop {
        let jobs = store.list_jobs(&filter).await?;
        for job in &jobs {
            *states.entry(job.state).or_default() += 1;
        }
        match jobs.last() {
            Some(last) if jobs.len() == PAGE as usize => filter.before = Some(last.id),
            _ => return Ok(states),
        }
    }
}
