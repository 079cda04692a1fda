//! `drain_pinned`: the same drain while somebody holds a snapshot, so that nothing deleted can be cleaned away.

use anyhow::Result;

use super::Size;
use super::drain::{self, FLOOR_IS, with_wal};
use crate::arena::Arena;
use crate::crew::Crew;
use crate::line::Round;
use crate::load::{Due, fill};

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    (jobs(size), format!("{}; a snapshot is held from before the jobs are stored", Crew::BEST.settings()), FLOOR_IS)
}

fn jobs(size: Size) -> u32 {
    size.pick(500_000, 50_000)
}

pub(super) async fn round(arena: &Arena, size: Size, floor_first: bool) -> Result<Round> {
    let jobs = jobs(size);
    let free = drain::round(arena, size, floor_first).await?;
    let field = arena.field().await?;
    let pinned = field.pin().await?;
    fill(&field.store, jobs, Due::Now).await?;
    field.settle().await?;
    let (ours, wal_per_job) = with_wal(&field, jobs, Crew::BEST.run(&field.store, jobs)).await?;
    drop(pinned);
    let rate = f64::from(jobs) / ours.as_secs_f64();
    Ok(Round { rate: Some(rate), wal_per_job, floor: free.floor, drain: free.rate, ..Round::default() })
}
