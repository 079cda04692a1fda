//! `drain_mixed`: handlers that take 0 to 20 ms, so that endings come one by one.

use anyhow::Result;

use super::Size;
use super::drain::with_wal;
use crate::arena::Arena;
use crate::crew::Crew;
use crate::line::Round;
use crate::load::{Due, fill};

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    (jobs(size), Crew::MIXED.settings(), "what the handlers' time allows: 200 at a time, 10 ms each")
}

fn jobs(size: Size) -> u32 {
    size.pick(100_000, 15_000)
}

pub(super) async fn round(arena: &Arena, size: Size) -> Result<Round> {
    let (jobs, crew) = (jobs(size), Crew::MIXED);
    let field = arena.field().await?;
    fill(&field.store, jobs, Due::Now).await?;
    field.settle().await?;
    let (took, wal_per_job) = with_wal(&field, jobs, crew.run(&field.store, jobs)).await?;
    let rate = f64::from(jobs) / took.as_secs_f64();
    let floor = f64::from(crew.slots) / (crew.work.as_secs_f64() / 2.0);
    Ok(Round { rate: Some(rate), floor: Some(floor), wal_per_job, ..Round::default() })
}
