//! What the store shows of each job, held against the model.

use tenure_core::{How, LeaseNo, State as Stands};
use tenure_sim::model::lease::state::Request;
use tenure_store::StoreError;
use tenure_store::record::{JobRecord, Sight};
use tokio::task::JoinSet;

use super::act::said;
use super::{Beside, Told, same};

/// What both can tell of a job.
#[derive(Debug, PartialEq)]
struct Seen {
    state: Stands,
    attempt: u16,
    /// Of a job that is not over: leases lost, and whether its end was asked for.
    open: Option<(u16, bool)>,
    /// Of a running one: the fence, the holder, and whether it is overdue.
    held: Option<(LeaseNo, Option<String>, bool)>,
    /// Of every lease that anybody still knows: how the attempt under it ended.
    attempts: Vec<(LeaseNo, Option<How>)>,
}

impl<const J: usize, const W: usize, const S: usize> Beside<J, W, S> {
    /// Every job stands where the model says.
    pub(crate) async fn compare(&self) -> Told<()> {
        // All at once: these looks are most of what a walk does.
        let mut looks = JoinSet::new();
        for (at, id) in self.jobs.iter().enumerate().filter_map(|(at, id)| Some((at, (*id)?))) {
            let store = self.stage.fixture.store.clone();
            looks.spawn(async move { (at, id, store.show_job(&Sight::All, id).await) });
        }
        for (at, id, record) in looks.join_all().await {
            let what = format!("J{} ({id})", at + 1);
            match (record, self.world.jobs[at].there) {
                (Ok(record), true) => same(&what, &self.shown(at, &record), &self.modelled(at)?)?,
                (Err(StoreError::NotFound(_)), false) => {}
                (Ok(record), false) => return Err(format!("{what} was pruned and is {:?}", record.summary.state)),
                (Err(error), _) => return Err(format!("{what}: {}", said(error))),
            }
        }
        Ok(())
    }

    fn shown(&self, at: usize, record: &JobRecord) -> Seen {
        let (job, now) = (&record.summary, self.stage.fixture.clock.now());
        let overdue = record.lease_expires_at.is_some_and(|expires| expires < now);
        let ended = |lease: LeaseNo| record.attempts.iter().find(|attempt| attempt.lease == lease).map(|a| a.how);
        Seen {
            state: job.state,
            attempt: job.attempt,
            open: (!job.state.is_terminal()).then_some((record.losses, record.cancel_requested)),
            held: record.lease.filter(|_| job.state == Stands::Running).map(|no| (no, job.locked_by.clone(), overdue)),
            attempts: self.known(at).into_iter().map(|(no, _)| (no, ended(no))).collect(),
        }
    }

    fn modelled(&self, at: usize) -> Told<Seen> {
        let job = &self.world.jobs[at];
        let holder = self.world.holder(at).map(|place| &self.world.leases[place]);
        let held = match holder {
            None => None,
            Some(lease) => {
                let (no, process) = self.lease(lease.no)?;
                Some((no, Some(process.name), lease.expired))
            }
        };
        let state = match (job.ready, job.ended) {
            (Some(ready), _) => ready,
            (None, Some(how)) => how.leads_to(),
            (None, None) => Stands::Running,
        };
        Ok(Seen {
            state,
            attempt: job.attempt.into(),
            open: (!state.is_terminal()).then_some((job.losses.into(), job.request == Request::Asked)),
            held,
            attempts: self.known(at),
        })
    }

    /// The leases that list a job, as far as anybody knows them, and how it ended under each.
    fn known(&self, at: usize) -> Vec<(LeaseNo, Option<How>)> {
        let listing = self.world.leases.iter().filter_map(|lease| Some((lease.no, lease.grants[at]?)));
        listing.filter_map(|(no, grant)| Some((self.leases.get(&no)?.0, grant.ended))).collect()
    }
}
