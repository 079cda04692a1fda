//! `drain`: one process empties a queue of jobs that do nothing.

use std::time::Duration;

use anyhow::Result;

use super::Size;
use crate::arena::{Arena, Field};
use crate::crew::Crew;
use crate::line::Round;
use crate::load::{Due, fill};

/// The floor's connections, and the jobs that one of its turns takes: where it is fastest on two cores.
pub(super) const FLOOR_CLIENTS: u32 = 4;
pub(super) const FLOOR_BATCH: u32 = 200;
pub(super) const FLOOR_IS: &str = "raw SQL, 4 connections, 200 jobs a turn, end and claim in one transaction";

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    (jobs(size), Crew::BEST.settings(), FLOOR_IS)
}

pub(super) fn jobs(size: Size) -> u32 {
    size.pick(200_000, 30_000)
}

pub(super) async fn round(arena: &Arena, size: Size, floor_first: bool) -> Result<Round> {
    let jobs = jobs(size);
    let field = arena.field().await?;
    fill(&field.store, jobs, Due::Now).await?;
    drained(&field, jobs, floor_first, Crew::BEST, (FLOOR_BATCH, FLOOR_CLIENTS)).await
}

/// Empties the field and its floor, which have `jobs` due jobs each, and tells both.
pub(super) async fn drained(
    field: &Field,
    jobs: u32,
    floor_first: bool,
    crew: Crew,
    (batch, clients): (u32, u32),
) -> Result<Round> {
    field.floor.fill(jobs).await?;
    let ours = with_wal(field, jobs, crew.run(&field.store, jobs));
    let floor = field.floor.drain(jobs, batch, clients);
    let ((ours, wal_per_job), floor) = beside(field, floor_first, ours, floor).await?;
    Ok(Round { wal_per_job, ..Round::rates(jobs, ours, floor) })
}

/// Runs both, one after the other, in the order that this round has: each begins with everything written out.
pub(super) async fn beside<T>(
    field: &Field,
    floor_first: bool,
    ours: impl Future<Output = Result<T>>,
    floor: impl Future<Output = Result<Duration>>,
) -> Result<(T, Duration)> {
    field.settle().await?;
    if floor_first {
        let floor = floor.await?;
        field.settle().await?;
        return Ok((ours.await?, floor));
    }
    let ours = ours.await?;
    field.settle().await?;
    Ok((ours, floor.await?))
}

/// Does the work and tells how long it took and what it wrote.
pub(super) async fn with_wal(
    field: &Field,
    jobs: u32,
    work: impl Future<Output = Result<Duration>>,
) -> Result<(Duration, Option<f64>)> {
    let before = field.wal().await?;
    let took = work.await?;
    let after = field.wal().await?;
    let wal = before.zip(after).map(|(before, after)| (after - before) as f64 / f64::from(jobs));
    Ok((took, wal))
}
