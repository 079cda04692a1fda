//! Random lives, on the store and in `tenure_core::apply` side by side.

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::backoff::Roll;
use tenure_core::name::{QueueName, WorkerName};
use tenure_core::new_job::Due;
use tenure_core::{Class, Event, Job, JobId, LeaseNo, NewJob, Refused, State, apply};
use tenure_store::AdminStore;
use tenure_store::lease::{ClaimJobs, Ended, Ending};
use tenure_store::operate::{CancelJob, Canceled, OpenJob, RequeueJob};
use tenure_store::record::Sight;
use tenure_store::{JobStore, JournalStore, LeaseStore, StoreError, audit};

use crate::fixture::{Fixture, error, new_job, word};

/// A small linear congruential generator: the same seed is the same life.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides
    }
}

struct World {
    fixture: Fixture,
    dice: Dice,
    jobs: BTreeMap<JobId, Job>,
    /// Every grant ever made, stale ones included.
    grants: Vec<(LeaseNo, JobId)>,
}

#[tokio::test]
async fn the_store_does_what_core_decides() {
    for seed in 0..20 {
        let mut world =
            World { fixture: Fixture::memory().await, dice: Dice(seed), jobs: BTreeMap::new(), grants: Vec::new() };
        for step in 0..300 {
            world.step().await;
            if step % 10 == 9 {
                world.compare(&format!("seed {seed}, step {step}")).await;
            }
        }
        world.fixture.store.seal_journal().await.unwrap();
        let report = audit::verify(&world.fixture.store, None, |_| ()).await.unwrap();
        assert_eq!(report.findings, [], "seed {seed}");
    }
}

impl World {
    async fn step(&mut self) {
        match self.dice.roll(10) {
            0 | 1 => self.enqueue().await,
            2 | 3 => self.claim().await,
            4 | 5 => self.end().await,
            6 => self.operate().await,
            7 => self.reclaim().await,
            _ => {
                let seconds = [1, 10, 61][self.dice.roll(3)];
                self.fixture.clock.advance(Duration::from_secs(seconds));
            }
        }
    }

    async fn enqueue(&mut self) {
        let now = self.fixture.clock.now();
        let mut job = new_job(now);
        job.due = [Due::Now, Due::After(Duration::from_secs(5)), Due::WhenOpened][self.dice.roll(3)];
        job.rules.max_attempts = 1 + self.dice.roll(3) as u16;
        job.rules.max_losses = 1 + self.dice.roll(4) as u16;
        let state = if job.due == Due::WhenOpened { State::Waiting } else { State::Queued };
        let model = Job {
            state,
            attempt: 0,
            losses: 0,
            run_at: job.run_at(now),
            lease: None,
            cancel_requested: false,
            rules: job.rules.clone(),
        };
        self.jobs.insert(job.id, model);
        self.fixture.store.enqueue_jobs(vec![NewJob { ..job }]).await.unwrap();
    }

    async fn claim(&mut self) {
        let now = self.fixture.clock.now();
        let limit = 1 + self.dice.roll(4);
        let mut due: Vec<_> = self
            .jobs
            .iter()
            .filter(|(_, job)| matches!(job.state, State::Queued | State::Retryable) && job.run_at <= now)
            .collect();
        due.sort_by_key(|(id, job)| (job.run_at, **id));
        let due: Vec<JobId> = due.into_iter().take(limit).map(|(id, _)| *id).collect();
        let Some(claimed) = self.fixture.claim(limit as u32).await else { return assert!(due.is_empty()) };
        let handed: Vec<JobId> = claimed.jobs.iter().map(|job| job.id).collect();
        assert_eq!(due.iter().filter(|id| !self.jobs[id].cancel_requested).copied().collect::<Vec<_>>(), handed);
        assert_eq!(
            due.iter().filter(|id| self.jobs[id].cancel_requested).copied().collect::<Vec<_>>(),
            claimed.canceled
        );
        for id in due {
            self.apply(id, &Event::Claim { lease: claimed.lease }).unwrap();
            self.grants.push((claimed.lease, id));
        }
    }

    async fn end(&mut self) {
        if self.grants.is_empty() {
            return;
        }
        let (lease, id) = self.grants[self.dice.roll(self.grants.len())];
        let delay = Duration::from_secs(7);
        let fail = |class| Event::Fail { lease, class, retry_in: Some(delay), roll: Roll(0) };
        let (ending, event) = match self.dice.roll(7) {
            0 => (Ending::Succeeded { result: None, usage: None }, Event::Complete { lease }),
            1 | 2 => (Ending::Retry { delay, error: error() }, fail(Class::Transient)),
            3 => (Ending::Failed { error: error() }, fail(Class::Permanent)),
            4 => (Ending::Dead { error: error() }, fail(Class::Dead)),
            5 => (Ending::Snoozed { delay }, Event::Snooze { lease, delay }),
            _ => (Ending::Released { delay }, Event::Release { lease, delay }),
        };
        let ended = self.fixture.end(lease, id, ending.clone()).await;
        match (self.apply(id, &event), ended) {
            (Ok(()), Ended::Now(how)) => assert_eq!(how.leads_to(), self.jobs[&id].state),
            (Err(Refused::LeaseLost), Ended::Before(how)) => assert!(ending.is_answered_by(how)),
            (Err(Refused::LeaseLost), Ended::LeaseLost { .. }) => {}
            (model, ended) => panic!("core says {model:?}, the store {ended:?} to {ending:?}"),
        }
    }

    async fn operate(&mut self) {
        let Some(id) = self.jobs.keys().nth(self.dice.roll(self.jobs.len().max(1))).copied() else { return };
        let (store, sight, was) = (&self.fixture.store, Sight::All, self.jobs[&id].state);
        let (answer, event) = match self.dice.roll(4) {
            0 => (store.open_job(OpenJob { sight, job: id, word: word() }).await, Event::Open),
            1 => (store.requeue_job(RequeueJob { sight, job: id, word: word() }).await, Event::Requeue),
            roll => {
                let force = roll == 2;
                let answer = store.cancel_job(CancelJob { sight, job: id, force, word: word() }).await;
                if was == State::Canceled {
                    return assert_eq!(answer.unwrap(), Canceled::Before);
                }
                let requested = was == State::Running && !force;
                let answer = answer.map(|canceled| assert_eq!(canceled == Canceled::Requested, requested));
                (answer, Event::Cancel { force })
            }
        };
        match (self.apply(id, &event), answer) {
            (Ok(()), Ok(())) | (Err(_), Err(StoreError::Conflict(_))) => {}
            (model, answer) => panic!("core says {model:?}, the store {answer:?} to a {was:?} job"),
        }
    }

    async fn reclaim(&mut self) {
        // Some claims' replies were lost: what they hold is released, uncharged.
        if self.dice.roll(4) == 0 {
            let other = self.fixture.store.register_worker(&WorkerName::new("w2").unwrap()).await.unwrap();
            let request = ClaimJobs::new(other, QueueName::default(), 2);
            let claimed = self.fixture.store.claim_jobs(request).await.unwrap();
            let Some(claimed) = claimed else { return };
            for id in claimed.jobs.iter().map(|job| job.id).chain(claimed.canceled.clone()) {
                self.apply(id, &Event::Claim { lease: claimed.lease }).unwrap();
            }
            let known = vec![LeaseNo(claimed.lease.0 + 1)];
            let released = self.fixture.store.release_unknown(other, known, LeaseNo::MAX).await.unwrap();
            assert_eq!(released, claimed.jobs.iter().map(|job| job.id).collect::<Vec<_>>());
            for id in released {
                self.apply(id, &Event::Release { lease: claimed.lease, delay: Duration::ZERO }).unwrap();
            }
            return;
        }
        for lost in self.fixture.store.reclaim_jobs(Some(self.fixture.worker), 2).await.unwrap() {
            self.apply(lost.job, &Event::Lose { lease: lost.lease }).unwrap();
            assert_eq!(lost.how.leads_to(), self.jobs[&lost.job].state);
        }
    }

    fn apply(&mut self, id: JobId, event: &Event) -> Result<(), Refused> {
        let job = self.jobs.get_mut(&id).unwrap();
        *job = apply(job, event, self.fixture.clock.now())?.job;
        Ok(())
    }

    async fn compare(&self, at: &str) {
        for (id, job) in &self.jobs {
            let shown = self.fixture.store.show_job(&Sight::All, *id).await.unwrap();
            let stored =
                (shown.summary.state, shown.summary.attempt, shown.losses, shown.lease, shown.cancel_requested);
            assert_eq!(stored, (job.state, job.attempt, job.losses, job.lease, job.cancel_requested), "{at}, job {id}");
            if matches!(job.state, State::Queued | State::Retryable) {
                assert_eq!(shown.summary.run_at, job.run_at, "{at}, job {id}");
            }
        }
        assert_eq!(self.fixture.store.find_violations(5).await.unwrap(), [], "{at}");
    }
}
