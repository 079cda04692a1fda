//! `claim_many_gates`: claims through ten gates that have work, beside a hundred thousand that have none. What it is held
//! against is the same without those.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tenure_core::name::{QueueName, WorkerName};
use tenure_store::lease::{ClaimJobs, EndJob, EndJobs, Ending};

use super::Size;
use super::drain_gated::{ACTIVE, set_rule};
use crate::arena::{Arena, Field};
use crate::line::Round;
use crate::load::{Due, fill};

/// Jobs that one claim asks for.
const CLAIM: u32 = 50;

pub(super) fn made(size: Size) -> (u32, String, &'static str) {
    let settings = format!("{ACTIVE} gates with work, {} without; one connection, {CLAIM} jobs a claim", idle(size));
    (jobs(size), settings, "the same with the gates that have work only")
}

fn jobs(size: Size) -> u32 {
    size.pick(20_000, 4_000)
}

fn idle(size: Size) -> u32 {
    size.pick(100_000, 5_000)
}

pub(super) async fn round(arena: &Arena, size: Size, floor_first: bool) -> Result<Round> {
    let mut took = [Duration::ZERO; 2];
    // A field is gone when the next one is made: one after the other.
    for many in [!floor_first, floor_first] {
        let field = arena.field().await?;
        set_rule(&field.store).await?;
        fill(&field.store, jobs(size), Due::Through(ACTIVE)).await?;
        if many {
            field.add_idle_gates(idle(size)).await?;
        }
        field.settle().await?;
        took[usize::from(many)] = drain(&field, jobs(size)).await?;
    }
    Ok(Round::rates(jobs(size), took[1], took[0]))
}

/// Claims and completes until all is done; answers the time of the claims alone.
async fn drain(field: &Field, jobs: u32) -> Result<Duration> {
    let worker = field.store.register_worker(&WorkerName::new("bench")?).await?;
    let (mut done, mut claims) = (0, Duration::ZERO);
    loop {
        let began = Instant::now();
        let claimed = field.store.claim_jobs(ClaimJobs::new(worker, QueueName::default(), CLAIM)).await?;
        claims += began.elapsed();
        let Some(claimed) = claimed else { break };
        done += u32::try_from(claimed.jobs.len())?;
        let success = || Ending::Succeeded { result: None, usage: None };
        let jobs = claimed.jobs.iter().map(|job| EndJob::new(job.id, success())).collect();
        field.store.end_jobs(EndJobs { worker, lease: claimed.lease, jobs }).await?;
    }
    ensure!(done == jobs, "{done} of {jobs} jobs were claimed");
    Ok(claims)
}
