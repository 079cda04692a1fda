//! `enqueue_bulk`: jobs by the thousand, each thousand in one transaction.

use std::time::Instant;

use anyhow::Result;

use super::Size;
use super::drain::{beside, with_wal};
use crate::arena::Arena;
use crate::line::Round;
use crate::load::{BULK, Due, fill};

const PRODUCERS: u32 = 2;

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    let floor_is = "raw SQL, 2 connections, 1,000 jobs a statement, made on the server";
    (jobs(size), format!("{PRODUCERS} producers, {BULK} jobs a call"), floor_is)
}

fn jobs(size: Size) -> u32 {
    size.pick(400_000, 40_000)
}

pub(super) async fn round(arena: &Arena, size: Size, floor_first: bool) -> Result<Round> {
    let (jobs, field) = (jobs(size), arena.field().await?);
    let produce = async {
        let began = Instant::now();
        fill(&field.store, jobs, Due::Now).await?;
        Ok(began.elapsed())
    };
    let floor = field.floor.enqueue_bulk(jobs, BULK, PRODUCERS);
    let ((ours, wal_per_job), floor) = beside(&field, floor_first, with_wal(&field, jobs, produce), floor).await?;
    Ok(Round { wal_per_job, ..Round::rates(jobs, ours, floor) })
}
