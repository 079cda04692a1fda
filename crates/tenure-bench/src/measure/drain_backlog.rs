//! `drain_backlog`: the same drain in a table that has a past, a future and a long queue of less urgent jobs.

use anyhow::Result;

use super::drain::FLOOR_IS;
use super::{Size, drain};
use crate::arena::Arena;
use crate::crew::Crew;
use crate::line::Round;
use crate::load::{Due, fill};

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    let pile = pile(size);
    let settings =
        format!("{}; {pile} scheduled, {pile} waiting at lower priority, {pile} finished", Crew::BEST.settings());
    (drain::jobs(size), settings, FLOOR_IS)
}

fn pile(size: Size) -> u32 {
    size.pick(1_000_000, 30_000)
}

pub(super) async fn round(arena: &Arena, size: Size, floor_first: bool) -> Result<Round> {
    let (jobs, pile) = (drain::jobs(size), pile(size));
    let empty = drain::round(arena, size, floor_first).await?;
    let field = arena.field().await?;
    fill(&field.store, pile, Due::Now).await?;
    Crew::BEST.run(&field.store, pile).await?;
    fill(&field.store, pile, Due::Later).await?;
    fill(&field.store, pile, Due::Last).await?;
    fill(&field.store, jobs, Due::Now).await?;
    field.settle().await?;
    // Every eighth claim begins at the lowest priority, so some of these are others: all that was done counts.
    let before = field.wal().await?;
    let (done, took) = Crew::BEST.run_until(&field.store, jobs, std::future::pending()).await?;
    let after = field.wal().await?;
    let (done, wal) = (done as f64, before.zip(after).map(|(before, after)| (after - before) as f64));
    let rate = Some(done / took.as_secs_f64());
    let wal_per_job = wal.map(|wal| wal / done);
    Ok(Round { rate, wal_per_job, floor: empty.floor, drain: empty.rate, ..Round::default() })
}
