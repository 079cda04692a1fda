//! Each step of the model as one call of the store.

use std::time::Duration;

use tenure_contract::fixture::{cancel, requeue};
use tenure_core::apply::Rules as JobRules;
use tenure_core::{Backoff, How, JobId, Json, LeaseNo, NewJob, QueueName};
use tenure_sim::model::lease::state::{Grip, Request, World};
use tenure_sim::model::lease::{Heard, Jobs, Step};
use tenure_store::StoreError;
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended, Ending, RenewLeases};
use tenure_store::operate::{Canceled, PruneJobs};

use super::{Beside, Process, Told, same};
use crate::stage::{LEASE_TTL, Tx};

impl<const J: usize, const W: usize, const S: usize> Beside<J, W, S> {
    /// The store decides which of the ready jobs it hands out; the model follows.
    pub(super) async fn claim(&mut self, worker: u8, jobs: Jobs, lost: bool) -> Told<Heard> {
        let process = self.workers[usize::from(worker)].clone();
        let request = ClaimJobs::new(process.id, QueueName::default(), jobs.len());
        let claimed = self.stage.fixture.store.claim_jobs(request).await.map_err(said)?;
        let claimed = claimed.ok_or("nothing was claimed")?;
        let granted = self.places(claimed.jobs.iter().map(|job| job.id))?;
        let canceled = self.places(claimed.canceled.iter().copied())?;
        let both = Jobs(granted.0 | canceled.0);
        same("jobs claimed", &both.len(), &jobs.len())?;
        let step = Step::Claim { worker, jobs: both, lost };
        if !self.allows(step) {
            return Err(format!("{step}: the model has not all of them ready"));
        }
        let heard = self.hear(step)?;
        let Heard::Claimed { lease, granted: there, canceled: ended } = heard else { return Ok(heard) };
        same("granted and ended instead", &(granted, canceled), &(there, ended))?;
        for job in &claimed.jobs {
            let known = self.world.jobs[self.place(job.id)?];
            same("attempt and losses", &(job.attempt, job.losses), &(known.attempt.into(), known.losses.into()))?;
        }
        if lease > 0 {
            let highest = self.leases.values().map(|(no, _)| *no).max();
            same("a fence that grows", &highest.is_none_or(|highest| highest < claimed.lease), &true)?;
            self.leases.insert(lease, (claimed.lease, process));
        }
        Ok(heard)
    }

    /// Does on the store what the model has done, and compares what they heard. `before` is the world before the step.
    pub(super) async fn act(&mut self, before: &World<J, W, S>, step: Step, heard: &Heard) -> Told<()> {
        let store = self.stage.fixture.store.clone();
        match step {
            Step::Enqueue { job } => self.enqueue(job.into()).await,
            Step::Claim { .. } => Err("claims are taken by the store first".into()),
            Step::Report { worker, jobs, ending, .. } => self.report(before, worker, jobs, ending, heard).await,
            Step::Repeat { worker, job, .. } => {
                let Grip::Unsure { ending, .. } = before.hands[usize::from(worker)].grips[usize::from(job)] else {
                    return Err("nothing to repeat".into());
                };
                self.report(before, worker, Jobs::one(job.into()), ending, heard).await
            }
            Step::Begin { worker, job } => {
                let (no, lease, process, id) = self.grant(before, worker, job)?;
                let done = self.stage.begin(Tx::Completion(no, job.into()), process.id, lease, id).await?;
                same("a completion in an open transaction", &done, &(*heard == Heard::Done))
            }
            Step::CompleteIn { worker, job, kept } => {
                let (_, lease, process, id) = self.grant(before, worker, job)?;
                let done = self.stage.complete_in(process.id, lease, id, kept).await?;
                same("a completion in a transaction", &done, &(*heard == Heard::Done))
            }
            Step::Commit { worker, job } => self.finish(before, worker, job, "commit").await,
            Step::Rollback { worker, job } => self.finish(before, worker, job, "rollback").await,
            Step::Abort { lease, job } => self.stage.finish(Tx::Completion(lease, job.into()), "rollback").await,
            Step::Look { worker, job } => {
                let (_, lease, process, id) = self.grant(before, worker, job)?;
                let found = store.find_endings(process.id, lease, vec![id]).await.map_err(said)?;
                let Heard::Found(there) = heard else { return Err(format!("a look that hears {heard:?}")) };
                same("what is found", &found, &vec![*there])
            }
            Step::Renew { worker } => self.renew(before, worker).await,
            Step::Drop { worker } => {
                let (lease, process) = self.lease(before.hands[usize::from(worker)].lease)?;
                let gone = store.drop_leases(process.id, vec![lease]).await.map_err(said)?;
                same("leases dropped", &gone, &vec![lease])
            }
            Step::ReleaseUnknown { worker } => {
                let known = self.lease(before.hands[usize::from(worker)].lease).ok().map(|(lease, _)| lease);
                let id = self.workers[usize::from(worker)].id;
                let back = store.release_unknown(id, Vec::from_iter(known), LeaseNo::MAX).await.map_err(said)?;
                same("jobs given back", &Heard::Back(self.places(back)?), heard)
            }
            Step::Crash { worker } => {
                self.started += 1;
                let name = format!("w{}", self.started);
                self.workers[usize::from(worker)] = Process { id: self.stage.fixture.worker(&name).await, name };
                Ok(())
            }
            Step::Expire { .. } => {
                self.since_renewal = LEASE_TTL;
                self.pass(LEASE_TTL + Duration::from_secs(1)).await
            }
            Step::Reclaim | Step::ReaperWrites => {
                let back = store.reclaim_jobs(None, 100).await.map_err(said)?;
                same("jobs taken back", &Heard::Back(self.places(back.iter().map(|lost| lost.job))?), heard)
            }
            Step::Cancel { job, force } => {
                let answer = store.cancel_job(cancel(self.id(job)?, force)).await.map_err(said)?;
                same("cancel", &answer, &if *heard == Heard::Requested { Canceled::Requested } else { Canceled::Now })
            }
            Step::Ask { job } => {
                let answer = self.stage.ask(Tx::Request(job.into()), self.id(job)?).await?;
                same("a request", &answer.as_str(), &"requested")
            }
            Step::CommitAsk { job } => self.stage.finish(Tx::Request(job.into()), "commit").await,
            Step::Requeue { job } => store.requeue_job(requeue(self.id(job)?)).await.map_err(said),
            Step::Prune => {
                let request = PruneJobs { older_than: Duration::ZERO, dead_too: true, limit: 100 };
                let gone = store.prune_jobs(request).await.map_err(said)?;
                let Heard::Back(there) = heard else { return Err(format!("a prune that hears {heard:?}")) };
                same("jobs pruned", &gone, &there.len().into())
            }
            Step::ReaperReads { .. } => Ok(()),
        }
    }

    async fn enqueue(&mut self, at: usize) -> Told<()> {
        let (max_attempts, max_losses) = (self.model.rules.max_attempts.into(), self.model.rules.max_losses.into());
        let rules = JobRules { max_attempts, max_losses, backoff: Backoff::None };
        let job = NewJob { rules, ..self.stage.fixture.new_job() };
        self.jobs[at] = Some(job.id);
        self.stage.fixture.store.enqueue_jobs(vec![job]).await.map(|_| ()).map_err(said)
    }

    pub(super) async fn report(
        &self,
        before: &World<J, W, S>,
        worker: u8,
        jobs: Jobs,
        ending: How,
        heard: &Heard,
    ) -> Told<()> {
        let Heard::Ended(there) = heard else { return Err(format!("a report that hears {heard:?}")) };
        let (lease, process) = self.lease(before.hands[usize::from(worker)].lease)?;
        let ends = jobs.each().map(|at| Ok(EndJob::new(self.id(at as u8)?, reported(ending))));
        let request = EndJobs { worker: process.id, lease, jobs: ends.collect::<Told<_>>()? };
        let here: Vec<Ended> = self.stage.fixture.store.end_jobs(request).await.map_err(said)?;
        same("a report", &here, &jobs.each().filter_map(|at| there[at]).collect())
    }

    async fn renew(&self, before: &World<J, W, S>, worker: u8) -> Told<()> {
        let no = before.hands[usize::from(worker)].lease;
        let (lease, process) = self.lease(no)?;
        let request = RenewLeases { worker: process.id, leases: vec![lease] };
        let renewed = self.stage.fixture.store.renew_leases(request).await.map_err(said)?;
        same("leases renewed", &renewed.leases, &vec![lease])?;
        let held = before.find(no).map(|at| before.leases[at]).ok_or("a lease that the model forgot")?;
        let asked = |job: &usize| held.holds(*job) && before.jobs[*job].request == Request::Asked;
        same("cancels told", &self.places(renewed.cancel_requested)?, &(0..J).filter(asked).collect())
    }

    async fn finish(&mut self, before: &World<J, W, S>, worker: u8, job: u8, how: &str) -> Told<()> {
        self.stage.finish(Tx::Completion(before.hands[usize::from(worker)].lease, job.into()), how).await
    }

    /// A worker's grant: the lease in the model and here, the process that claimed it, the job.
    fn grant(&self, before: &World<J, W, S>, worker: u8, job: u8) -> Told<(u16, LeaseNo, Process, JobId)> {
        let no = before.hands[usize::from(worker)].lease;
        let (lease, process) = self.lease(no)?;
        Ok((no, lease, process, self.id(job)?))
    }

    pub(super) fn lease(&self, no: u16) -> Told<(LeaseNo, Process)> {
        self.leases.get(&no).cloned().ok_or(format!("lease {no} was never claimed"))
    }

    pub(super) fn id(&self, job: u8) -> Told<JobId> {
        self.jobs[usize::from(job)].ok_or(format!("job {job} was never enqueued"))
    }

    fn place(&self, id: JobId) -> Told<usize> {
        self.jobs.iter().position(|job| *job == Some(id)).ok_or(format!("job {id} is not ours"))
    }

    pub(super) fn places(&self, ids: impl IntoIterator<Item = JobId>) -> Told<Jobs> {
        ids.into_iter().map(|id| self.place(id)).collect()
    }
}

/// What a worker says.
pub(super) fn reported(how: How) -> Ending {
    let (delay, error) = (Duration::ZERO, Json::null());
    match how {
        How::Succeeded | How::Lost => Ending::Succeeded { result: None, usage: None },
        How::Retry => Ending::Retry { delay, error },
        How::Failed => Ending::Failed { error },
        How::Dead => Ending::Dead { error },
        How::Canceled => Ending::Canceled { error: None },
        How::Snoozed => Ending::Snoozed { delay },
        How::Released => Ending::Released { delay },
    }
}

#[expect(clippy::needless_pass_by_value, reason = "made for `map_err`")]
pub(super) fn said(error: StoreError) -> String {
    format!("{error:?}")
}
