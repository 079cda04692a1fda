//! Everything that can be set about a worker, checked once.

use std::sync::Arc;
use std::time::Duration;

use tenure_core::Invalid;
use tenure_core::classify::RuleTable;
use tenure_core::name::{QueueName, WorkerName};
use tenure_core::preset::{POLL_EVERY_DEFAULT, Preset, RECLAIM_EVERY_DEFAULT};
use tenure_core::worker_loop::ERROR_WAIT;
use tenure_store::Waker;
use tenure_store::lease::LEASE_JOBS_MAX;
use tenure_store::worker::QUEUES_MAX;

use crate::machine::Machine;
use crate::observe::Observer;

/// Most slots of one queue in one process.
pub const SLOTS_MAX: u32 = 10_000;

/// How a worker works. The defaults are right for most; `Builder` sets them.
#[derive(Clone)]
pub(crate) struct Options {
    /// How people read it; the machine, the process and some random digits unless set.
    pub name: Option<WorkerName>,
    /// The longest wait between two looks when nothing is due. Shorter right after work.
    pub poll_every: Duration,
    /// How long the loop stands still after something unexpected.
    pub error_wait: Duration,
    /// How often expired leases of others are looked for.
    pub reclaim_every: Duration,
    /// How often leases are renewed; a third of their time unless set, and never more than half of it.
    pub renew_every: Option<Duration>,
    /// How long running jobs may go on after the signal to stop.
    pub grace: Duration,
    /// How long a handler that was told to stop (canceled, timed out) may take before it is dropped.
    pub cancel_grace: Duration,
    /// Jobs claimed ahead of free slots, per queue. 0: none waits in memory behind a slow one.
    pub prefetch: u32,
    /// Jobs that share a lease, at most.
    pub lease_jobs: u32,
    /// How long ended jobs are kept; `None` keeps them for ever. Dead letters are kept in any case.
    pub retention: Option<Duration>,
    /// What handlers' errors mean.
    pub rules: RuleTable,
    /// Where the lease keeper runs.
    pub keeper: KeeperPlace,
    /// What the tasks run on, in a simulation.
    pub machine: Option<Arc<dyn Machine>>,
    /// Who may wake it besides the store.
    pub waker: Option<Arc<dyn Waker>>,
    /// Who hears how attempts end.
    pub observer: Option<Arc<dyn Observer>>,
}

/// Where the lease keeper runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum KeeperPlace {
    /// On a thread, a runtime and a connection of its own: busy handlers cannot starve it.
    #[default]
    Thread,
    /// On the worker's own runtime: for simulations, where there is one thread and time is not real.
    Task,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: None,
            poll_every: POLL_EVERY_DEFAULT,
            error_wait: ERROR_WAIT,
            reclaim_every: RECLAIM_EVERY_DEFAULT,
            renew_every: None,
            grace: Duration::from_secs(30),
            cancel_grace: Duration::from_secs(5),
            prefetch: 0,
            lease_jobs: LEASE_JOBS_MAX,
            retention: Some(Duration::from_secs(7 * 86_400)),
            rules: RuleTable::standard(),
            keeper: KeeperPlace::Thread,
            machine: None,
            waker: None,
            observer: None,
        }
    }
}

impl Options {
    /// Takes over what a preset says about the worker (lease times are a queue's own, attempts a job's).
    pub(crate) fn preset(&mut self, preset: &Preset) {
        self.poll_every = preset.poll_every;
        self.reclaim_every = preset.reclaim_every;
        self.renew_every = Some(preset.renew_every);
        self.rules = preset.classification.clone();
    }

    pub(crate) fn check(&self, queues: &[(QueueName, u32)]) -> Result<(), Invalid> {
        check_time("poll_every", self.poll_every)?;
        check_time("error_wait", self.error_wait)?;
        check_time("reclaim_every", self.reclaim_every)?;
        self.renew_every.iter().try_for_each(|every| check_time("renew_every", *every))?;
        check_patience("grace", self.grace)?;
        check_patience("cancel_grace", self.cancel_grace)?;
        if !(1..=LEASE_JOBS_MAX).contains(&self.lease_jobs) {
            return Err(Invalid::new(
                "lease_jobs",
                self.lease_jobs,
                format!("1 to {LEASE_JOBS_MAX} jobs share a lease"),
            ));
        }
        if queues.is_empty() {
            return Err(Invalid::new(
                "queues",
                "none",
                "a worker needs a handler or a queue: call .handle(…) or .queue(…)",
            ));
        }
        if queues.len() > QUEUES_MAX {
            return Err(Invalid::new("queues", queues.len(), format!("a worker serves at most {QUEUES_MAX}")));
        }
        for (queue, slots) in queues {
            if !(1..=SLOTS_MAX).contains(slots) {
                return Err(Invalid::new(
                    "slots",
                    format!("{slots} of {queue}"),
                    format!("a queue has 1 to {SLOTS_MAX}"),
                ));
            }
        }
        Ok(())
    }
}

fn check_time(field: &'static str, time: Duration) -> Result<(), Invalid> {
    if (Duration::from_millis(1)..=Duration::from_secs(86_400)).contains(&time) {
        return Ok(());
    }
    Err(Invalid::new(field, tenure_core::duration::format(time), "it is 1ms to 1d"))
}

/// Times that are added to a moment: no clock can add what `Duration::MAX` says.
pub(crate) fn check_patience(field: &'static str, time: Duration) -> Result<(), Invalid> {
    if time <= Duration::from_secs(365 * 86_400) {
        return Ok(());
    }
    Err(Invalid::new(field, tenure_core::duration::format(time), "it is 365d at most"))
}
