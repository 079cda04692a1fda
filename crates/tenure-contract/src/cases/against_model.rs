//! Stories nobody wrote: random verbs on the store and on the model, whose answers must be the same.
//!
//! Both read the same clock. Lease numbers differ, so each claim enters a pair. After every step emptied leases are
//! dropped on both, since a store may drop them earlier by itself. In half of the stories every job passes a gate.

mod gates;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use tenure_core::name::GateName;
use tenure_core::new_job::Due;
use tenure_core::unique::{Policy, Unique};
use tenure_core::{How, JobId, Json, LeaseNo, NewJob, Priority, Rules, State, WorkerId};
use tenure_store::Store;
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended, Ending, RenewLeases};
use tenure_store::operate::{OpenJob, PruneJobs, Word};
use tenure_store::record::{JobRecord, Sight};

use crate::dice::Dice;
use crate::fixture::{Fixture, cancel, requeue};
use crate::model::ModelStore;

const STORIES: u64 = 4;
const STEPS: usize = 150;

/// Whatever happens in whatever order, the store does what the model does.
pub async fn random_stories_go_as_in_the_model(t: Fixture) {
    for seed in 0..STORIES {
        let mut story = Story::begin(&t, seed).await;
        for _ in 0..STEPS {
            story.step().await;
        }
        story.end().await;
    }
}

struct Story<'a> {
    t: &'a Fixture,
    model: Arc<dyn Store>,
    seed: u64,
    dice: Dice,
    /// Each worker's number here and in the model.
    workers: Vec<(WorkerId, WorkerId)>,
    /// What every job passes.
    gate: Option<GateName>,
    jobs: Vec<JobId>,
    grants: Vec<Grant>,
    /// What was done, for the message of a failure.
    log: Vec<String>,
}

/// A lease in both stores.
#[derive(Clone)]
struct Grant {
    worker: usize,
    here: LeaseNo,
    model: LeaseNo,
    jobs: Vec<JobId>,
    gone: bool,
}

impl<'a> Story<'a> {
    async fn begin(t: &'a Fixture, seed: u64) -> Self {
        let model: Arc<dyn Store> = Arc::new(ModelStore::new(t.clock.clone()));
        let other = Fixture::new("model", model.clone(), t.clock.clone());
        let mut workers = Vec::new();
        for name in ["one", "two", "three"] {
            workers.push((t.worker(name).await, other.worker(name).await));
        }
        let (jobs, grants, log) = (Vec::new(), Vec::new(), vec![format!("seed {seed}")]);
        let gate = gates::gate_of(seed);
        Self { t, model, seed, dice: Dice::new(seed), workers, gate, jobs, grants, log }
    }

    async fn step(&mut self) {
        match self.dice.below(22) {
            0..4 => self.enqueue().await,
            4..8 => self.claim().await,
            8..13 => self.report().await,
            13 => self.cancel().await,
            14 => self.requeue_or_open().await,
            15 => self.renew().await,
            16 => self.reclaim().await,
            17 => self.prune().await,
            18..20 => self.govern().await,
            _ => {
                let by = Duration::from_secs([1, 5, 30, 61, 3_600][self.dice.index(5)]);
                self.log.push(format!("advance {by:?}"));
                self.t.advance(by);
            }
        }
        self.drop_emptied().await;
        self.check_gate().await;
    }

    async fn enqueue(&mut self) {
        let policies = [Policy::WhileActive, Policy::UnlessFailed, Policy::Forever];
        let policy = policies[self.dice.index(3)];
        let unique =
            (self.dice.below(3) == 0).then(|| Unique::new(format!("{}-{}", self.seed, self.dice.below(4)), policy));
        let delay = Duration::from_secs(self.dice.below(3) * 10);
        let job = NewJob {
            priority: Priority::ALL[self.dice.index(4)],
            due: if self.dice.below(6) == 0 { Due::WhenOpened } else { Due::After(delay) },
            rules: Rules { max_attempts: 2, max_losses: 3, backoff: tenure_core::Backoff::None },
            unique,
            gate: self.gate.clone(),
            ..self.t.new_job()
        };
        self.jobs.push(job.id);
        let (here, there) =
            (self.t.store.enqueue_jobs(vec![job.clone()]).await, self.model.enqueue_jobs(vec![job]).await);
        self.compare("enqueue", &here, &there);
    }

    async fn claim(&mut self) {
        let at = self.dice.index(self.workers.len());
        let limit = 1 + u32::try_from(self.dice.below(4)).expect("small");
        let ask = |worker| ClaimJobs::new(worker, tenure_core::QueueName::default(), limit);
        let here = self.t.store.claim_jobs(ask(self.workers[at].0)).await.expect("claim");
        let there = self.model.claim_jobs(ask(self.workers[at].1)).await.expect("claim");
        let shown =
            [&here, &there].map(|claimed| claimed.as_ref().map(|c| (c.jobs.clone(), sorted(c.canceled.clone()))));
        self.compare("claim", &shown[0], &shown[1]);
        if let (Some(here), Some(there)) = (here, there) {
            let jobs = here.jobs.iter().map(|job| job.id).collect();
            self.grants.push(Grant { worker: at, here: here.lease, model: there.lease, jobs, gone: false });
        }
    }

    /// About any lease that ever was: most of these reports are stale or repeated.
    async fn report(&mut self) {
        let Some(grant) = self.dice.pick(&self.grants) else { return };
        let Some(job) = self.dice.pick(&grant.jobs) else { return };
        let (delay, error) = (Duration::from_secs(self.dice.below(2) * 7), Json::null());
        let ending = match self.dice.below(8) {
            0..3 => Ending::Succeeded { result: None, usage: None },
            3 => Ending::Retry { delay, error },
            4 => Ending::Failed { error },
            5 => Ending::Dead { error },
            6 => Ending::Snoozed { delay },
            _ => Ending::Released { delay },
        };
        let end = EndJob { gate: self.gate_word(), ..EndJob::new(job, ending.clone()) };
        let ask = |worker, lease| EndJobs { worker, lease, jobs: vec![end.clone()] };
        let (here, there) = self.workers[grant.worker];
        let here: Vec<Ended> = self.t.store.end_jobs(ask(here, grant.here)).await.expect("end");
        let there = self.model.end_jobs(ask(there, grant.model)).await.expect("end");
        self.compare(&format!("{ending:?} {job} {}", grant.here), &here, &there);
    }

    async fn cancel(&mut self) {
        let Some(job) = self.dice.pick(&self.jobs) else { return };
        let force = self.dice.below(2) == 0;
        let (here, there) =
            (self.t.store.cancel_job(cancel(job, force)).await, self.model.cancel_job(cancel(job, force)).await);
        self.compare(&format!("cancel {job} {force}"), &here, &there);
    }

    async fn requeue_or_open(&mut self) {
        let Some(job) = self.dice.pick(&self.jobs) else { return };
        let (here, there) = (self.t.store.requeue_job(requeue(job)).await, self.model.requeue_job(requeue(job)).await);
        self.compare(&format!("requeue {job}"), &here, &there);
        let open = || OpenJob { sight: Sight::All, job, word: Word::default() };
        let (here, there) = (self.t.store.open_job(open()).await, self.model.open_job(open()).await);
        self.compare(&format!("open {job}"), &here, &there);
    }

    async fn renew(&mut self) {
        let Some(grant) = self.dice.pick(&self.grants) else { return };
        let (here, there) = self.workers[grant.worker];
        let here = RenewLeases { worker: here, leases: vec![grant.here] };
        let there = RenewLeases { worker: there, leases: vec![grant.model] };
        let here = self.t.store.renew_leases(here).await.expect("renew");
        let there = self.model.renew_leases(there).await.expect("renew");
        let shown = [here, there].map(|renewed| (renewed.leases.len(), sorted(renewed.cancel_requested)));
        self.compare(&format!("renew {}", grant.here), &shown[0], &shown[1]);
    }

    async fn reclaim(&mut self) {
        let here = self.t.store.reclaim_jobs(None, 100).await.expect("reclaim");
        let there = self.model.reclaim_jobs(None, 100).await.expect("reclaim");
        let shown = [here, there].map(|lost| {
            let mut lost: Vec<(JobId, How)> = lost.into_iter().map(|lost| (lost.job, lost.how)).collect();
            lost.sort_unstable();
            lost
        });
        self.compare("reclaim", &shown[0], &shown[1]);
    }

    async fn prune(&mut self) {
        let request =
            PruneJobs { older_than: Duration::from_secs(60), dead_too: self.dice.below(2) == 0, limit: 1_000 };
        let (here, there) = (self.t.store.prune_jobs(request.clone()).await, self.model.prune_jobs(request).await);
        self.compare("prune", &here, &there);
    }

    async fn drop_emptied(&mut self) {
        for at in 0..self.grants.len() {
            let grant = self.grants[at].clone();
            if grant.gone {
                continue;
            }
            let (here, there) = self.workers[grant.worker];
            let here = self.t.store.drop_leases(here, vec![grant.here]).await.expect("drop").len();
            let there = self.model.drop_leases(there, vec![grant.model]).await.expect("drop").len();
            self.compare(&format!("drop {}", grant.here), &here, &there);
            self.grants[at].gone = here == 1;
        }
    }

    /// Every job stands where the model says; then all is put away so that the next story begins with nothing.
    async fn end(mut self) {
        for job in self.jobs.clone() {
            let here = self.t.store.show_job(&Sight::All, job).await;
            let there = self.model.show_job(&Sight::All, job).await;
            let (here, there) = (here.map(|record| seen(&record)), there.map(|record| seen(&record)));
            self.compare(&format!("show {job}"), &here, &there);
            let _ = self.t.store.cancel_job(cancel(job, true)).await;
        }
        self.end_gate().await;
        for grant in &self.grants {
            let worker = self.workers[grant.worker].0;
            self.t.store.drop_leases(worker, vec![grant.here]).await.expect("drop");
        }
        self.t.advance(Duration::from_secs(3_600));
        let request = PruneJobs { older_than: Duration::from_secs(60), dead_too: true, limit: 1_000 };
        self.t.store.prune_jobs(request).await.expect("prune");
    }

    fn compare(&mut self, what: &str, here: &impl Debug, there: &impl Debug) {
        let (here, there) = (text(here), text(there));
        self.log.push(format!("{what}: {there}"));
        assert!(here == there, "the store says {here}, the model {there}, after\n{}", self.log.join("\n"));
    }
}

/// An answer as text. Errors are alike when they are of one kind.
fn text(answer: &impl Debug) -> String {
    let text = format!("{answer:?}");
    let error = ["Err(Conflict", "Err(NotFound", "Err(Invalid"].into_iter().find(|kind| text.starts_with(kind));
    error.map_or(text.clone(), Into::into)
}

/// What is the same in every store.
fn seen(record: &JobRecord) -> String {
    let job = &record.summary;
    let active = !job.state.is_terminal();
    let waits = matches!(job.state, State::Queued | State::Retryable);
    let attempts: Vec<(How, u16)> = record.attempts.iter().map(|attempt| (attempt.how, attempt.attempt)).collect();
    let due = waits.then_some(job.run_at);
    let asked = active.then_some((record.losses, record.cancel_requested));
    let times = (due, record.lease_expires_at, job.finished_at);
    format!("{:?} {} {times:?} {asked:?} {attempts:?}", job.state, job.attempt)
}

fn sorted(mut jobs: Vec<JobId>) -> Vec<JobId> {
    jobs.sort_unstable();
    jobs
}
