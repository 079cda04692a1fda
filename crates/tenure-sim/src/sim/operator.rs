//! The operator: cancels, revives, pauses, looks. It takes an answer as it comes and never asks twice.

use std::sync::Arc;

use tenure_core::name::QueueName;
use tenure_core::{JobId, State};
use tenure_store::operate::{CancelJob, PauseQueue, RequeueJob, Word};
use tenure_store::record::{JobFilter, Sight};
use tenure_store::{AdminStore, JobStore, StoreError};
use tokio::time::sleep;

use super::jobs::QUEUES;
use super::net::Wire;
use super::world::World;

/// Works until the faults are over.
pub(crate) async fn run(world: Arc<World>, wire: Wire) {
    while !world.is_healed() {
        sleep(world.draw(|rng| rng.millis(100, 3_000))).await;
        let Some((job, state)) = some_job(&world, &wire).await else { continue };
        let word = Word { actor: Some("operator".into()), reason: None };
        let sight = Sight::All;
        // What comes back is in the trace; an operator who hears nothing looks at the screen and decides anew.
        match state {
            State::Failed | State::Dead | State::Canceled if world.draw(|rng| rng.chance(700)) => {
                let _ = wire.requeue_job(RequeueJob { sight, job, word }).await;
            }
            _ => match world.draw(|rng| rng.index(10)) {
                0..=4 => {
                    let force = world.draw(|rng| rng.chance(300));
                    let _ = wire.cancel_job(CancelJob { sight, job, force, word }).await;
                }
                5..=6 => {
                    let _ = wire.requeue_job(RequeueJob { sight, job, word }).await;
                }
                7 => {
                    let paused = world.draw(|rng| rng.chance(400));
                    let Ok(queue) = QueueName::new(QUEUES[1]) else { continue };
                    let _ = wire.pause_queue(PauseQueue { queue, paused, word }).await;
                }
                _ => {
                    let _ = wire.show_job(&sight, job).await;
                }
            },
        }
    }
}

/// Resumes a queue.
pub(crate) async fn resume(wire: &Wire, queue: QueueName) -> Result<(), StoreError> {
    wire.pause_queue(PauseQueue { queue, paused: false, word: Word::default() }).await
}

/// A job to do something with: one that runs, if there is any and chance will have it.
async fn some_job(world: &World, wire: &Wire) -> Option<(JobId, State)> {
    world.clock.sync();
    let state = world.draw(|rng| rng.pick(&[None, Some(State::Running), Some(State::Dead), Some(State::Failed)]));
    // The operator's own list is not part of the trial: it is read past the network.
    let jobs = wire.store.list_jobs(&JobFilter { state, limit: 100, ..JobFilter::default() }).await.ok()?;
    let chosen = jobs.get(world.draw(|rng| rng.index(jobs.len())))?;
    Some((chosen.id, chosen.state))
}
