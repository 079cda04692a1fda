//! `drain_10`: ten jobs at a time, none claimed ahead, as most worker processes are set up.

use anyhow::Result;

use super::Size;
use super::drain::drained;
use crate::arena::Arena;
use crate::crew::Crew;
use crate::line::Round;
use crate::load::{Due, fill};

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    (jobs(size), Crew::TEN.settings(), "raw SQL, 1 connection, 10 jobs a turn, end and claim in one transaction")
}

fn jobs(size: Size) -> u32 {
    size.pick(40_000, 8_000)
}

pub(super) async fn round(arena: &Arena, size: Size, floor_first: bool) -> Result<Round> {
    let field = arena.field().await?;
    fill(&field.store, jobs(size), Due::Now).await?;
    drained(&field, jobs(size), floor_first, Crew::TEN, (10, 1)).await
}
