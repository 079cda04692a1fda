//! The model beside a real store: one step on both, then every answer and every row compared.
//!
//! Lease numbers differ, so each claim enters a pair. A lease expires when the clock is moved past all of them and the
//! others are renewed. Nothing is normalised in this model: what it knows, the store must show.

mod act;
mod look;
mod refuse;

use std::collections::BTreeMap;
use std::time::Duration;

use tenure_core::{JobId, LeaseNo, WorkerId};
use tenure_sim::model::lease::state::World;
use tenure_sim::model::lease::{Heard, Leases, Rules, Step};
use tenure_sim::model::search::Machine;
use tenure_store::audit;
use tenure_store::lease::RenewLeases;

use crate::stage::{LEASE_TTL, Stage};

/// What went wrong, for people.
pub(crate) type Told<T> = Result<T, String>;

pub(crate) struct Beside<const J: usize, const W: usize, const S: usize> {
    pub(crate) model: Leases<J, W, S>,
    pub(crate) world: World<J, W, S>,
    stage: Stage,
    /// The real job at each place of the model.
    jobs: [Option<JobId>; J],
    /// The process at each place; a crash puts another one there.
    workers: [Process; W],
    /// Each lease by its number in the model.
    leases: BTreeMap<u16, (LeaseNo, Process)>,
    started: usize,
    since_renewal: Duration,
}

/// A worker process in the registry.
#[derive(Clone)]
struct Process {
    id: WorkerId,
    name: String,
}

impl<const J: usize, const W: usize, const S: usize> Beside<J, W, S> {
    pub(crate) async fn open(stage: Stage, rules: Rules) -> Self {
        let model = Leases { rules };
        let mut workers = Vec::new();
        for at in 0..W {
            let name = format!("w{at}");
            workers.push(Process { id: stage.fixture.worker(&name).await, name });
        }
        let Ok(workers) = workers.try_into() else { unreachable!("as many as asked for") };
        let (jobs, leases) = ([None; J], BTreeMap::new());
        let (world, since_renewal) = (model.start(), Duration::ZERO);
        Self { model, world, stage, jobs, workers, leases, started: W, since_renewal }
    }

    /// Whether the model allows this step now.
    pub(crate) fn allows(&self, step: Step) -> bool {
        self.steps().contains(&step)
    }

    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        self.model.steps(&self.world, &mut steps);
        steps
    }

    /// Takes a step that the model allows on both; answers what was heard.
    pub(crate) async fn take(&mut self, step: Step) -> Told<Heard> {
        let heard = match step {
            Step::Claim { worker, jobs, lost } => self.claim(worker, jobs, lost).await?,
            step => {
                let before = self.world;
                let heard = self.hear(step)?;
                self.act(&before, step, &heard).await?;
                heard
            }
        };
        self.pass(Duration::from_secs(2)).await?;
        self.compare().await?;
        Ok(heard)
    }

    fn hear(&mut self, step: Step) -> Told<Heard> {
        self.model.hear(&mut self.world, step).map_err(|broken| format!("the model breaks {broken} at {step}"))
    }

    /// Time passes, so that what waits for its time is due; what is alive stays alive.
    async fn pass(&mut self, time: Duration) -> Told<()> {
        self.stage.fixture.advance(time);
        self.since_renewal += time;
        if self.since_renewal < LEASE_TTL / 2 {
            return Ok(());
        }
        self.since_renewal = Duration::ZERO;
        for lease in self.world.leases.iter().filter(|lease| lease.row && !lease.expired) {
            let (no, holder) = &self.leases[&lease.no];
            let request = RenewLeases { worker: holder.id, leases: vec![*no] };
            let renewed = self.stage.fixture.store.renew_leases(request).await.map_err(|error| error.to_string())?;
            same("renewal of what is alive", &renewed.leases, &vec![*no])?;
        }
        Ok(())
    }

    /// No invariant of the store is broken, and its journal replays through the lifecycle.
    pub(crate) async fn check_store(&self) -> Told<()> {
        let store = &self.stage.fixture.store;
        let violations = store.find_violations(10).await.map_err(|error| error.to_string())?;
        same("invariants", &violations, &Vec::new())?;
        while store.seal_journal().await.map_err(|error| error.to_string())?.is_some() {}
        let report = audit::verify(&**store, None, |_| {}).await.map_err(|error| error.to_string())?;
        same("findings in the journal", &report.findings.len(), &0).map_err(|why| format!("{why}: {report:#?}"))
    }
}

/// The store says what the model says.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, here: &T, there: &T) -> Told<()> {
    if here == there { Ok(()) } else { Err(format!("{what}: the store says {here:?}, the model {there:?}")) }
}
