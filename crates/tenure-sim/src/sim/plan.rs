//! What a seed decides before anything runs: how many machines, how long leases last, how bad the network is.
//!
//! Seeds differ on purpose: some have a calm network and dying machines, some a terrible network and nothing else, so that
//! each kind of trouble is also met alone.

use std::time::Duration;

use super::rng::Rng;

/// One run's settings.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Worker machines.
    pub(crate) nodes: usize,
    /// Slots per queue, and jobs claimed ahead of them.
    pub(crate) slots: u32,
    pub(crate) prefetch: u32,
    pub(crate) lease_jobs: u32,
    pub(crate) lease_ttl: Duration,
    pub(crate) poll_every: Duration,
    pub(crate) reclaim_every: Duration,
    pub(crate) grace: Duration,
    /// How long ended jobs are kept; a short time makes the pruner bite.
    pub(crate) retention: Option<Duration>,
    /// Jobs that producers ask for.
    pub(crate) jobs: u64,
    /// How long faults go on.
    pub(crate) chaos: Duration,
    /// How much faster the store's clock runs than the machines', in millionths.
    pub(crate) drift_ppm: i64,
    pub(crate) net: NetPlan,
    /// What befalls machines and the store's clock.
    pub(crate) troubles: Vec<Trouble>,
    /// The mean time between two of them, in milliseconds.
    pub(crate) trouble_every_ms: u64,
}

/// The network's faults, each in thousandths of all calls.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NetPlan {
    pub(crate) lost_before: u64,
    pub(crate) reply_lost: u64,
    pub(crate) slow: u64,
    pub(crate) duplicated: u64,
    /// An ordinary way takes at most this long, in milliseconds.
    pub(crate) latency_ms: u64,
}

/// What befalls a machine, or the store's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The machine is gone; another one comes.
    Crash,
    /// It makes no progress for longer than a lease.
    Freeze,
    /// None of its calls gets through, or no reply comes back.
    Cut,
    /// Only its renewals do not get through.
    CutRenewals,
    /// The store answers nobody.
    Outage,
    /// The worker is told to stop, and started again.
    Restart,
    /// The store's clock is set forward or back.
    Jump,
}

const ALL: [Trouble; 7] = [
    Trouble::Crash,
    Trouble::Freeze,
    Trouble::Cut,
    Trouble::CutRenewals,
    Trouble::Outage,
    Trouble::Restart,
    Trouble::Jump,
];

impl Plan {
    /// What this seed decides.
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let net = match rng.index(4) {
            0 => NetPlan { latency_ms: 1, ..NetPlan::default() },
            1 => NetPlan { lost_before: 10, reply_lost: 20, slow: 5, duplicated: 20, latency_ms: 5 },
            2 => NetPlan { lost_before: 30, reply_lost: 60, slow: 20, duplicated: 50, latency_ms: 20 },
            _ => NetPlan { lost_before: 80, reply_lost: 120, slow: 60, duplicated: 100, latency_ms: 80 },
        };
        // A calm network alone would be no trial.
        let calm = net.reply_lost == 0;
        let troubles = ALL.into_iter().filter(|_| rng.chance(if calm { 850 } else { 600 })).collect();
        let retention = rng.chance(300).then(|| Duration::from_secs(45));
        Self {
            nodes: rng.between(3, 5) as usize,
            slots: rng.between(1, 4) as u32,
            prefetch: if rng.chance(250) { 3 } else { 0 },
            // Small ones are claimed several at a time.
            lease_jobs: if rng.chance(500) { rng.between(1, 2) as u32 } else { 256 },
            lease_ttl: rng.millis(3_000, 10_000),
            poll_every: rng.millis(500, 2_000),
            reclaim_every: rng.millis(500, 2_000),
            grace: rng.pick(&[Duration::ZERO, Duration::from_secs(2), Duration::from_secs(5)]),
            retention,
            jobs: rng.between(25, 60),
            // A pruner looks once a minute.
            chaos: if retention.is_some() { Duration::from_secs(75) } else { rng.millis(20_000, 45_000) },
            drift_ppm: rng.between(0, 20_000) as i64 - 10_000,
            net,
            troubles,
            trouble_every_ms: rng.between(1_500, 8_000),
        }
    }
}
