//! `drain_gated`: the same drain, every job through one of ten gates that count, rate and watch it and never close.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tenure_core::gate::{Breaker, GateRule, Rate};
use tenure_store::Store;
use tenure_worker::Client;

use super::Size;
use super::drain::{self, FLOOR_IS, with_wal};
use crate::arena::Arena;
use crate::crew::Crew;
use crate::line::Round;
use crate::load::{Due, fill};

/// Gates that have work.
pub(super) const ACTIVE: u32 = 10;

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    (jobs(size), format!("{}; {ACTIVE} gates with rate, concurrency and breaker", Crew::BEST.settings()), FLOOR_IS)
}

fn jobs(size: Size) -> u32 {
    size.pick(200_000, 20_000)
}

pub(super) async fn round(arena: &Arena, size: Size, floor_first: bool) -> Result<Round> {
    let jobs = jobs(size);
    let free = drain::round(arena, size, floor_first).await?;
    let field = arena.field().await?;
    set_rule(&field.store).await?;
    fill(&field.store, jobs, Due::Through(ACTIVE)).await?;
    field.settle().await?;
    let (ours, wal_per_job) = with_wal(&field, jobs, Crew::BEST.run(&field.store, jobs)).await?;
    let rate = f64::from(jobs) / ours.as_secs_f64();
    Ok(Round { rate: Some(rate), wal_per_job, floor: free.floor, drain: free.rate, ..Round::default() })
}

/// A rule that has everything and never closes.
pub(super) async fn set_rule(store: &Arc<dyn Store>) -> Result<()> {
    let rate = Rate { burst: 1_000_000, ..Rate::new(1_000_000, Duration::from_secs(1)) };
    let breaker = Breaker { failures: 5, cooldown: Duration::from_secs(300) };
    let rule = GateRule { rate: Some(rate), concurrency: Some(100_000), breaker: Some(breaker), weight: 1 };
    Ok(Client::new(store).set_gate("g:*", rule).await?)
}
