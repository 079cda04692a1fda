//! The measures, one file each. Every one runs its floor in the same round, in turn before and after.

mod claim_many_gates;
mod dashboard_pages;
mod drain;
mod drain_10;
mod drain_backlog;
mod drain_gated;
mod drain_mixed;
mod drain_pinned;
mod drain_two;
mod enqueue_bulk;
mod enqueue_http;
mod enqueue_single;
mod latency;

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Result};

use crate::arena::Arena;
use crate::line::{Line, Round};

pub use drain_two::{PART, PART_STORE, run_part};

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// Ten producers, one job a call.
    EnqueueSingle,
    /// Two producers, a thousand jobs a transaction.
    EnqueueBulk,
    /// Two hundred clients of the server, one job a request.
    EnqueueHttp,
    /// One process at its best setting.
    Drain,
    /// Ten at a time, none claimed ahead.
    Drain10,
    /// Handlers of 0 to 20 ms, two hundred at a time.
    DrainMixed,
    /// From an enqueue to its handler, on an idle worker.
    Latency,
    /// As `Drain`, beside jobs for later, jobs of lower priority, and history.
    DrainBacklog,
    /// As `Drain`, while somebody holds a snapshot.
    DrainPinned,
    /// As `Drain`, by two processes.
    DrainTwo,
    /// As `Drain`, every job through a gate.
    DrainGated,
    /// Claims through few gates, beside very many.
    ClaimManyGates,
    /// Every page of the dashboard, beside a long history.
    DashboardPages,
}

/// All of them, in the order they are run.
pub const MEASURES: [Measure; 13] = [
    Measure::EnqueueSingle,
    Measure::EnqueueBulk,
    Measure::EnqueueHttp,
    Measure::Drain,
    Measure::Drain10,
    Measure::DrainMixed,
    Measure::Latency,
    Measure::DrainTwo,
    Measure::DrainPinned,
    Measure::DrainBacklog,
    Measure::DrainGated,
    Measure::ClaimManyGates,
    Measure::DashboardPages,
];

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Enough for a number to keep.
    Full,
    /// All measures in less than a minute.
    Quick,
}

impl Size {
    fn pick(self, full: u32, quick: u32) -> u32 {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

impl Measure {
    /// Its name, as in a line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::EnqueueSingle => "enqueue_single",
            Self::EnqueueBulk => "enqueue_bulk",
            Self::EnqueueHttp => "enqueue_http",
            Self::Drain => "drain",
            Self::Drain10 => "drain_10",
            Self::DrainMixed => "drain_mixed",
            Self::Latency => "latency",
            Self::DrainBacklog => "drain_backlog",
            Self::DrainPinned => "drain_pinned",
            Self::DrainTwo => "drain_two",
            Self::DrainGated => "drain_gated",
            Self::ClaimManyGates => "claim_many_gates",
            Self::DashboardPages => "dashboard_pages",
        }
    }

    /// What it is, for people.
    pub const fn about(self) -> &'static str {
        match self {
            Self::EnqueueSingle => "10 producers in one process, one job a call; those that meet share a transaction",
            Self::EnqueueBulk => "2 producers, 1,000 jobs a transaction",
            Self::EnqueueHttp => "200 clients of the server, one job a request; those that meet share a transaction",
            Self::Drain => "one process at its best setting, jobs that do nothing",
            Self::Drain10 => "10 at a time, none claimed ahead",
            Self::DrainMixed => "handlers of 0 to 20 ms, 200 at a time",
            Self::Latency => "from an enqueue to its handler, idle worker",
            Self::DrainBacklog => "drain beside scheduled jobs, lower priorities and history",
            Self::DrainPinned => "drain while a snapshot is held open",
            Self::DrainTwo => "drain by two processes",
            Self::DrainGated => "drain through ten gates that never close",
            Self::ClaimManyGates => "claims through ten gates, beside 100,000 idle ones",
            Self::DashboardPages => "every page of the dashboard, beside 10,000,000 ended jobs",
        }
    }

    /// Runs so many rounds; `tell` hears of each one that begins.
    pub async fn run(self, arena: &Arena, size: Size, rounds: u32, mut tell: impl FnMut(u32)) -> Result<Line> {
        let mut done = Vec::new();
        for number in 1..=rounds {
            tell(number);
            let round = self.round(arena, size, number % 2 == 1).await;
            done.push(round.with_context(|| format!("{self}, round {number}"))?);
        }
        let (jobs, settings, floor_is) = self.made(size);
        // One file has one writer: its floor has one connection whatever the measure.
        let floor_is = match (self, arena.name()) {
            (Self::DrainMixed | Self::ClaimManyGates | Self::DashboardPages, _) | (_, "postgres") => floor_is,
            _ => "raw SQL on one connection, as many jobs a transaction as on Postgres",
        };
        Ok(Line::new(self.name(), arena.name(), done, (jobs, settings, floor_is)))
    }

    async fn round(self, arena: &Arena, size: Size, floor_first: bool) -> Result<Round> {
        match self {
            Self::EnqueueSingle => enqueue_single::round(arena, size, floor_first).await,
            Self::EnqueueBulk => enqueue_bulk::round(arena, size, floor_first).await,
            Self::EnqueueHttp => enqueue_http::round(arena, size, floor_first).await,
            Self::Drain => drain::round(arena, size, floor_first).await,
            Self::Drain10 => drain_10::round(arena, size, floor_first).await,
            Self::DrainMixed => drain_mixed::round(arena, size).await,
            Self::Latency => latency::round(arena, size).await,
            Self::DrainBacklog => drain_backlog::round(arena, size, floor_first).await,
            Self::DrainPinned => drain_pinned::round(arena, size, floor_first).await,
            Self::DrainTwo => drain_two::round(arena, size, floor_first).await,
            Self::DrainGated => drain_gated::round(arena, size, floor_first).await,
            Self::ClaimManyGates => claim_many_gates::round(arena, size, floor_first).await,
            Self::DashboardPages => dashboard_pages::round(arena, size).await,
        }
    }

    /// Jobs of a round, the settings, and what the floor is.
    fn made(self, size: Size) -> (u32, String, &'static str) {
        match self {
            Self::EnqueueSingle => enqueue_single::made(size),
            Self::EnqueueBulk => enqueue_bulk::made(size),
            Self::EnqueueHttp => enqueue_http::made(size),
            Self::Drain => drain::made(size),
            Self::Drain10 => drain_10::made(size),
            Self::DrainMixed => drain_mixed::made(size),
            Self::Latency => latency::made(size),
            Self::DrainBacklog => drain_backlog::made(size),
            Self::DrainPinned => drain_pinned::made(size),
            Self::DrainTwo => drain_two::made(size),
            Self::DrainGated => drain_gated::made(size),
            Self::ClaimManyGates => claim_many_gates::made(size),
            Self::DashboardPages => dashboard_pages::made(size),
        }
    }
}

impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Measure {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        MEASURES.into_iter().find(|measure| measure.name() == text).ok_or_else(|| {
            let names: Vec<&str> = MEASURES.iter().map(|measure| measure.name()).collect();
            format!("`{text}` is no measure; there are {}", names.join(", "))
        })
    }
}
