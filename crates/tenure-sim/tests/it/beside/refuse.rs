//! Steps that the model does not allow, tried on the store all the same.

use std::time::Duration;

use tenure_core::{How, QueueName};
use tenure_sim::model::lease::Step;
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ended};
use tenure_store::operate::PruneJobs;

use super::act::{reported, said};
use super::{Beside, Told, same};

impl<const J: usize, const W: usize, const S: usize> Beside<J, W, S> {
    /// Tries it: the store does nothing, says so where it can, and every job stays where it is.
    pub(crate) async fn refuse(&mut self, step: Step) -> Told<()> {
        let store = self.stage.fixture.store.clone();
        match step {
            Step::Claim { worker, jobs, .. } => {
                // Whatever is ready may be had; these are not.
                let id = self.workers[usize::from(worker)].id;
                let ready = (0..J).filter(|job| self.world.jobs[*job].ready.is_some() && jobs.has(*job)).count();
                same("ready after all", &ready, &0)?;
                if self.world.jobs.iter().all(|job| job.ready.is_none()) {
                    let request = ClaimJobs::new(id, QueueName::default(), jobs.len());
                    same("a claim", &store.claim_jobs(request).await.map_err(said)?, &None)?;
                }
            }
            Step::Drop { worker } => {
                let (lease, process) = self.lease(self.world.hands[usize::from(worker)].lease)?;
                let gone = store.drop_leases(process.id, vec![lease]).await.map_err(said)?;
                same("leases dropped", &gone, &Vec::new())?;
            }
            Step::Reclaim | Step::ReaperWrites => {
                let back = store.reclaim_jobs(None, 100).await.map_err(said)?;
                same("jobs taken back", &back, &Vec::new())?;
            }
            Step::Prune => {
                let request = PruneJobs { older_than: Duration::ZERO, dead_too: true, limit: 100 };
                same("jobs pruned", &store.prune_jobs(request).await.map_err(said)?, &0)?;
            }
            Step::ReaperReads { .. } => {}
            step => return Err(format!("the model does not allow that {step}, and nobody knows how to try")),
        }
        self.compare().await
    }

    /// What a worker says about a job under the lease it believes in, without the model; answers what it hears.
    pub(crate) async fn say(&self, worker: u8, job: usize, ending: How) -> Told<Ended> {
        let (lease, process) = self.lease(self.world.hands[usize::from(worker)].lease)?;
        let jobs = vec![EndJob::new(self.id(job as u8)?, reported(ending))];
        let request = EndJobs { worker: process.id, lease, jobs };
        let answers = self.stage.fixture.store.end_jobs(request).await.map_err(said)?;
        answers.first().copied().ok_or("a report without an answer".into())
    }
}
