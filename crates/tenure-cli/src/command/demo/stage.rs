//! The stage of the tour: a store, a clock that is moved by hand, and the account of what happened.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tenure_core::apply::{Job, Rules, decide_failure};
use tenure_core::backoff::Roll;
use tenure_core::json::quote;
use tenure_core::name::{KindName, QueueName, WorkerName};
use tenure_core::{Class, How, JobId, Json, NewJob, Priority, State, WorkerId};
use tenure_sqlite::{SqliteOptions, SqliteStore};
use tenure_store::clock::{Clock, ManualClock};
use tenure_store::lease::{ClaimJobs, Claimed, ClaimedJob, EndJob, EndJobs, Ended, Ending};
use tenure_store::record::Sight;
use tenure_store::{AdminStore, JobStore, LeaseStore};

use crate::failure::{Failure, exit};
use crate::moment;

pub(super) struct Stage {
    pub(super) store: SqliteStore,
    pub(super) steps: Vec<Step>,
    pub(super) reclaimed: u64,
    pub(super) stale_refused: u64,
    clock: ManualClock,
    /// Jobs in the order they were stored, and what the account calls them.
    jobs: Vec<(JobId, String)>,
    random: [u8; 10],
}

/// One paragraph of the account.
pub(super) struct Step {
    pub(super) title: String,
    pub(super) notes: Vec<String>,
}

/// How everything ended.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) states: BTreeMap<State, u64>,
    pub(super) jobs: Vec<JobEnd>,
}

/// How one job ended.
pub(super) struct JobEnd {
    pub(super) name: String,
    pub(super) priority: Priority,
    pub(super) state: State,
    pub(super) history: String,
}

impl Stage {
    pub(super) async fn open() -> Result<Self, Failure> {
        let clock = ManualClock::new(moment::now());
        let options = SqliteOptions { clock: Clock::Manual(clock.clone()), ..SqliteOptions::default() };
        let store = SqliteStore::in_memory(options)?;
        store.migrate().await?;
        Ok(Self { store, steps: Vec::new(), reclaimed: 0, stale_refused: 0, clock, jobs: Vec::new(), random: [0; 10] })
    }

    pub(super) fn say(&mut self, title: impl Into<String>) {
        self.steps.push(Step { title: title.into(), notes: Vec::new() });
    }

    pub(super) fn note(&mut self, note: impl Into<String>) {
        if let Some(step) = self.steps.last_mut() {
            step.notes.push(note.into());
        }
    }

    pub(super) fn wait(&self, time: Duration) {
        self.clock.advance(time);
    }

    pub(super) async fn worker(&self, name: &str) -> Result<WorkerId, Failure> {
        Ok(self.store.register_worker(&WorkerName::new(name)?).await?)
    }

    /// A job with the next id. The ids of a tour only have to differ from each other.
    pub(super) fn draft(&mut self, kind: &str, priority: Priority, max_attempts: u16) -> Result<NewJob, Failure> {
        self.random[9] += 1;
        let id = JobId::from_parts(self.clock.now(), self.random);
        let payload = Json::parse("payload", format!("{{\"n\":{}}}", self.random[9]))?;
        let rules = Rules { max_attempts, ..Rules::default() };
        Ok(NewJob { priority, rules, ..NewJob::new(id, KindName::new(kind)?, payload) })
    }

    /// Stores a job under a name for the account.
    pub(super) async fn enqueue(&mut self, name: &str, job: NewJob) -> Result<JobId, Failure> {
        let id = job.id;
        self.store.enqueue_jobs(vec![job]).await?;
        self.jobs.push((id, name.to_owned()));
        Ok(id)
    }

    pub(super) async fn claim(&self, worker: WorkerId, limit: u32) -> Result<Claimed, Failure> {
        let request = ClaimJobs::new(worker, QueueName::default(), limit);
        let nothing = || Failure::new("demo", exit::REFUSED, "the store handed out nothing although jobs are due");
        self.store.claim_jobs(request).await?.ok_or_else(nothing)
    }

    /// Reports one ending as a worker does.
    pub(super) async fn end(
        &self,
        worker: WorkerId,
        claimed: &Claimed,
        job: JobId,
        ending: Ending,
    ) -> Result<Ended, Failure> {
        let report = EndJobs { worker, lease: claimed.lease, jobs: vec![EndJob { job, ending }] };
        let silent = || Failure::new("demo", exit::REFUSED, "the store did not answer a report");
        self.store.end_jobs(report).await?.first().copied().ok_or_else(silent)
    }

    /// Reports that every job of a batch is done.
    pub(super) async fn complete(&self, worker: WorkerId, claimed: &Claimed) -> Result<(), Failure> {
        for job in &claimed.jobs {
            self.end(worker, claimed, job.id, Ending::Succeeded { result: None, usage: None }).await?;
        }
        Ok(())
    }

    /// What the account calls these jobs.
    pub(super) fn names<'a>(&self, jobs: impl IntoIterator<Item = &'a JobId>) -> String {
        let names: HashMap<JobId, &str> = self.jobs.iter().map(|(id, name)| (*id, name.as_str())).collect();
        let name = |job: &JobId| names.get(job).map_or_else(|| job.to_string(), |name| (*name).to_owned());
        jobs.into_iter().map(name).collect::<Vec<_>>().join(", ")
    }

    pub(super) async fn tally(&self) -> Result<Tally, Failure> {
        let mut tally = Tally::default();
        for (id, name) in &self.jobs {
            let job = self.store.show_job(&Sight::All, *id).await?;
            let (state, priority) = (job.summary.state, job.summary.priority);
            let history: Vec<&str> = job.attempts.iter().map(|attempt| attempt.how.as_str()).collect();
            *tally.states.entry(state).or_default() += 1;
            tally.jobs.push(JobEnd { name: name.clone(), priority, state, history: history.join(" → ") });
        }
        Ok(tally)
    }
}

/// What a worker reports after an error: core decides, from the job's own rules.
pub(super) fn failure(job: &ClaimedJob, claimed: &Claimed, class: Class, message: &str) -> Ending {
    let error = Json::from_store(format!("{{\"message\":{}}}", quote(message)));
    let held = Job {
        state: State::Running,
        attempt: job.attempt,
        losses: job.losses,
        run_at: job.run_at,
        lease: Some(claimed.lease),
        cancel_requested: false,
        rules: job.rules.clone(),
    };
    match decide_failure(&held, class, None, Roll(0)) {
        (How::Failed, ..) => Ending::Failed { error },
        (How::Dead, ..) => Ending::Dead { error },
        (_, _, delay) => Ending::Retry { delay, error },
    }
}
