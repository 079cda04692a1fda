//! Producers: they ask for jobs, and ask again when nobody answers. An answer is a promise that the books keep.

use std::sync::Arc;
use std::time::Duration;

use tenure_contract::fixture::START;
use tenure_core::unique::Policy;
use tenure_core::{JobId, Priority, Unique};
use tenure_store::StoreError;
use tenure_store::enqueue::Enqueued;
use tenure_worker::{Client, Job};
use tokio::time::{Instant, sleep};

use super::breakage::Breakage;
use super::gate;
use super::jobs::{Fan, Limited, Pay, Poison, Work};
use super::world::World;

/// How long a request is repeated: less than ended jobs are kept, or a late repetition would be a new job.
const REPEATED_FOR: Duration = Duration::from_secs(20);

/// Asks for jobs `from`, `from + by`, … of the plan's, then is done.
pub(crate) async fn run(world: Arc<World>, client: Client, from: u64, by: usize) {
    for n in (from..world.plan.jobs).step_by(by) {
        // Spread over the time of the faults, in bursts.
        let gap = world.plan.chaos.as_millis() as u64 * 2 * by as u64 / (world.plan.jobs + 1);
        let gap = world.draw(|rng| if rng.chance(400) { Duration::ZERO } else { rng.millis(0, gap) });
        if !world.is_healed() {
            sleep(gap).await;
        }
        request(&world, &client, n).await;
    }
}

/// How a producer makes sure that a repeated request is one job.
#[derive(Clone, Copy)]
enum Sure {
    /// The same id again.
    Id,
    /// A name for the request, and a new id every time.
    Idempotency,
    /// A key that other requests may hold as well.
    Unique,
}

async fn request(world: &World, client: &Client, n: u64) {
    let sure = world.draw(|rng| rng.pick(&[Sure::Id, Sure::Id, Sure::Idempotency, Sure::Unique]));
    let kind = world.draw(|rng| rng.index(20));
    let (delay, priority) = world.draw(|rng| {
        let delay = if rng.chance(250) { rng.millis(0, 5_000) } else { Duration::ZERO };
        (delay, rng.pick(&Priority::ALL))
    });
    let fresh_ids = world.is_broken(Breakage::FreshIds);
    let (began, mut ids, mut tries) = (Instant::now(), Vec::new(), 0);
    loop {
        let is_new = tries == 0 || fresh_ids || matches!(sure, Sure::Idempotency);
        if is_new {
            ids.push(new_id(world, n, tries));
        }
        let Some(id) = ids.last().copied() else { return };
        tries += 1;
        let said = Said { id, delay, priority, sure: (!fresh_ids).then_some(sure), n };
        let answer = match kind {
            0 => send(client, Poison { n }, said).await,
            1..=4 => send(client, Fan { n }, said).await,
            5..=8 => send(client, Limited { n }, said).await,
            9..=13 => send(client, Pay { n }, said).await,
            _ => send(client, Work { n }, said).await,
        };
        match answer {
            Ok(stored) => {
                if tries > 1 && matches!(stored, Enqueued::Found { .. }) && ids.contains(&stored.job()) {
                    world.count("enqueue_repeated");
                }
                world.ledger.acknowledged(stored.job());
                break;
            }
            // It may be there or not; whoever gives up has no answer and no claim.
            Err(_) if began.elapsed() > REPEATED_FOR => break,
            Err(_) => sleep(world.draw(|rng| rng.millis(50, 1_000))).await,
        }
    }
    if !matches!(sure, Sure::Unique) {
        world.ledger.requested(ids);
    }
}

struct Said {
    id: JobId,
    delay: Duration,
    priority: Priority,
    sure: Option<Sure>,
    n: u64,
}

async fn send<J: Job>(client: &Client, job: J, said: Said) -> Result<Enqueued, StoreError> {
    let mut enqueue = client.enqueue(job).id(said.id).delay(said.delay).priority(said.priority);
    if gate::is_passed_by(said.n) {
        enqueue = enqueue.gate(gate::GATE);
    }
    match said.sure {
        Some(Sure::Idempotency) => enqueue.idempotency_key(format!("request {}", said.n)).await,
        Some(Sure::Unique) => enqueue.unique_by(Unique::new(format!("key {}", said.n % 7), Policy::WhileActive)).await,
        Some(Sure::Id) | None => enqueue.await,
    }
}

/// An id for the n-th request's t-th try: the same in every run of the seed.
fn new_id(world: &World, n: u64, t: u64) -> JobId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&(n * 1_000 + t).to_be_bytes());
    let id = JobId::from_parts(START, random);
    world.ledger.name(id, if t == 0 { format!("J{n}") } else { format!("J{n}/{t}") });
    id
}

/// The id of the job that the n-th one enqueues.
pub(crate) fn child_of(world: &World, n: u64) -> JobId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&(n * 1_000 + 999).to_be_bytes());
    let id = JobId::from_parts(START, random);
    world.ledger.name(id, format!("J{n}/child"));
    id
}
