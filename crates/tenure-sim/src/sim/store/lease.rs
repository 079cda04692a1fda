//! Workers' verbs: what is granted, renewed, reported and taken back goes into the books.

use std::time::Duration;

use async_trait::async_trait;
use tenure_core::{How, JobId, LeaseNo, WorkerId};
use tenure_store::lease::{ClaimJobs, Claimed, EndJobs, Ended, Reclaimed, RenewLeases, Renewed};
use tenure_store::{LeaseStore, StoreError};

use super::ok;
use crate::sim::breakage::Breakage;
use crate::sim::finding::Rule;
use crate::sim::ledger::Swept;
use crate::sim::net::{Twice, Verb, Wire};
use crate::sim::world::World;

#[async_trait]
impl LeaseStore for Wire {
    async fn claim_jobs(&self, request: ClaimJobs) -> Result<Option<Claimed>, StoreError> {
        // A second copy would take jobs that nobody hears of: the driver of a database never sends one.
        let verb = Verb("claim", Twice::Never);
        let said = format!("{} up to {}", request.queue, request.limit);
        let tell = |world: &World, claimed: &Option<Claimed>| match claimed {
            None => "nothing".into(),
            Some(it) => format!("L{} {}", it.lease, world.ledger.names_of(it.jobs.iter().map(|job| job.id))),
        };
        let mut claimed = self
            .send(verb, said, tell, move |site| {
                let request = request.clone();
                Box::pin(async move {
                    let claimed = site.store.claim_jobs(request).await?;
                    if let Some(claimed) = &claimed {
                        site.world.ledger.granted(claimed, &site.world.clock, site.given_up);
                    }
                    Ok(claimed)
                })
            })
            .await?;
        if let Some(claimed) = &mut claimed {
            self.world.ledger.heard(claimed.lease);
            if self.world.is_broken(Breakage::LongLeases) {
                claimed.ttl *= 4;
            }
        }
        Ok(claimed)
    }

    async fn renew_leases(&self, request: RenewLeases) -> Result<Renewed, StoreError> {
        let said = request.leases.iter().map(|no| format!("L{no}")).collect::<Vec<_>>().join(" ");
        let tell = |_: &World, renewed: &Renewed| format!("{} renewed", renewed.leases.len());
        let asked = request.leases.clone();
        let renewed = self
            .send(Verb("renew", Twice::Later), said, tell, move |site| {
                let request = request.clone();
                Box::pin(async move {
                    let renewed = site.store.renew_leases(request).await?;
                    site.world.ledger.renewed(&renewed.leases, &site.world.clock);
                    Ok(renewed)
                })
            })
            .await;
        match renewed {
            Err(_) if self.world.is_broken(Breakage::ForgedRenewals) => {
                Ok(Renewed { leases: asked, cancel_requested: Vec::new() })
            }
            renewed => renewed,
        }
    }

    async fn end_jobs(&self, request: EndJobs) -> Result<Vec<Ended>, StoreError> {
        let (lease, reported) = (request.lease, request.jobs.clone());
        let said = reported.iter().map(|end| {
            let how = end.ending.how().as_str();
            format!("{} {how}", self.world.ledger.name_of(end.job))
        });
        let said = format!("L{lease} {}", said.collect::<Vec<_>>().join(" "));
        let tell = |_: &World, ended: &Vec<Ended>| format!("{ended:?}");
        let node = self.node.clone();
        let mut ended = self
            .send(Verb("end", Twice::Later), said, tell, move |site| {
                let (request, node) = (request.clone(), node.clone());
                Box::pin(async move {
                    let ended = site.store.end_jobs(request).await?;
                    let refused = ended.iter().filter(|ended| matches!(ended, Ended::LeaseLost { .. })).count();
                    site.world.add("stale_refused", refused);
                    let is_thawed = node.is_some_and(|node| node.was_frozen());
                    site.world.add("thawed_and_stale", if is_thawed { refused } else { 0 });
                    Ok(ended)
                })
            })
            .await?;
        for (end, answer) in reported.iter().zip(&mut ended) {
            if self.world.is_broken(Breakage::StaleAccepted) && matches!(answer, Ended::LeaseLost { .. }) {
                *answer = Ended::Now(end.ending.how());
            }
            if let Ended::Now(how) | Ended::Before(how) = answer {
                self.world.ledger.accepted(end.job, lease, *how);
            }
        }
        Ok(ended)
    }

    async fn find_endings(
        &self,
        worker: WorkerId,
        lease: LeaseNo,
        jobs: Vec<JobId>,
    ) -> Result<Vec<Option<How>>, StoreError> {
        let said = format!("L{lease} {}", self.world.ledger.names_of(jobs.iter().copied()));
        let tell = |_: &World, hows: &Vec<Option<How>>| format!("{hows:?}");
        self.send(Verb("find_endings", Twice::AtOnce), said, tell, move |site| {
            let jobs = jobs.clone();
            Box::pin(async move { site.store.find_endings(worker, lease, jobs).await })
        })
        .await
    }

    async fn find_cancel_requests(&self, jobs: Vec<JobId>) -> Result<Vec<JobId>, StoreError> {
        let said = self.world.ledger.names_of(jobs.iter().copied());
        let tell = |world: &World, asked: &Vec<JobId>| world.ledger.names_of(asked.iter().copied());
        self.send(Verb("find_cancels", Twice::AtOnce), said, tell, move |site| {
            let jobs = jobs.clone();
            Box::pin(async move { site.store.find_cancel_requests(jobs).await })
        })
        .await
    }

    async fn drop_leases(&self, worker: WorkerId, leases: Vec<LeaseNo>) -> Result<Vec<LeaseNo>, StoreError> {
        let said = leases.iter().map(|no| format!("L{no}")).collect::<Vec<_>>().join(" ");
        self.send(Verb("drop_leases", Twice::Later), said, ok, move |site| {
            let leases = leases.clone();
            Box::pin(async move { site.store.drop_leases(worker, leases).await })
        })
        .await
    }

    async fn find_leases(
        &self,
        worker: WorkerId,
        leases: Vec<LeaseNo>,
    ) -> Result<Vec<(LeaseNo, Duration)>, StoreError> {
        self.store.find_leases(worker, leases).await
    }

    async fn newest_lease(&self) -> Result<LeaseNo, StoreError> {
        let tell = |_: &World, newest: &LeaseNo| format!("L{newest}");
        self.send(Verb("newest_lease", Twice::AtOnce), String::new(), tell, move |site| {
            Box::pin(async move { site.store.newest_lease().await })
        })
        .await
    }

    async fn release_unknown(
        &self,
        worker: WorkerId,
        known: Vec<LeaseNo>,
        newest: LeaseNo,
    ) -> Result<Vec<JobId>, StoreError> {
        let said = format!("but {}", known.iter().map(|no| format!("L{no}")).collect::<Vec<_>>().join(" "));
        let tell = |world: &World, jobs: &Vec<JobId>| world.ledger.names_of(jobs.iter().copied());
        let node = self.node.clone();
        self.send(Verb("release_unknown", Twice::Later), said, tell, move |site| {
            let (known, node) = (known.clone(), node.clone());
            Box::pin(async move {
                let released = site.store.release_unknown(worker, known, newest).await?;
                for job in &released {
                    let swept = site.world.ledger.swept(*job);
                    site.world.add("swept_unheard", usize::from(matches!(swept, Swept::Unheard | Swept::Late)));
                    site.world.add("swept_late_commit", usize::from(swept == Swept::Late));
                    let keeps = node.as_ref().filter(|node| node.is_up() && !node.is_told_to_stop());
                    if let Some(node) = keeps.filter(|_| swept == Swept::Running) {
                        let text = format!("{} from {}", site.world.ledger.name_of(*job), node.name());
                        site.world.ledger.find(Rule::GivenAway, text);
                    }
                }
                Ok(released)
            })
        })
        .await
    }

    async fn reclaim_jobs(&self, by: Option<WorkerId>, leases_max: u32) -> Result<Vec<Reclaimed>, StoreError> {
        if self.world.is_broken(Breakage::NoReclaimer) {
            return Ok(Vec::new());
        }
        let tell = |world: &World, taken: &Vec<Reclaimed>| {
            let one = |it: &Reclaimed| format!("L{} {} {}", it.lease, world.ledger.name_of(it.job), it.how.as_str());
            taken.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        self.send(Verb("reclaim", Twice::Later), String::new(), tell, move |site| {
            Box::pin(async move {
                let taken = site.store.reclaim_jobs(by, leases_max).await?;
                site.world.add("reclaimed", taken.len());
                site.world.add("dead_by_loss", taken.iter().filter(|job| job.how == How::Dead).count());
                Ok(taken)
            })
        })
        .await
    }
}
