//! The workers: each place has a machine with a real worker on it, and gets another one when that is gone.

use std::sync::Arc;
use std::time::Duration;

use tenure_sqlite::SqliteStore;
use tenure_worker::machine::Machine;
use tenure_worker::{KeeperPlace, Summary, Worker};
use tokio::sync::oneshot;
use tokio::time::sleep;

use super::finding::Rule;
use super::handlers::{Stage, handle_all};
use super::jobs::QUEUES;
use super::net::Wire;
use super::node::Node;
use super::world::World;

/// How long after its grace period a worker may take to stop (docs: `Worker::run`).
const STOPS_WITHIN: Duration = Duration::from_secs(1);

/// Keeps a machine in its place until the run is closed.
pub(crate) async fn keep_place(world: Arc<World>, store: SqliteStore, at: usize) {
    for start in 1.. {
        // Another name every time: a new process is nobody's heir.
        let node = Node::new(format!("w{}.{start}", at + 1));
        let ended = begin(&world, &store, &node);
        world.place(at, Some(node.clone()));
        match ended.await {
            Ok(Ok(summary)) => stopped(&world, &node, &summary),
            Ok(Err(error)) => world.ledger.find(Rule::WorkerEnded, format!("{}: {error}", node.name())),
            Err(_) => world.trace(node.name(), format_args!("is gone")),
        }
        // A process that has ended takes with it whatever it left running.
        node.destroy();
        world.place(at, None);
        if !world.is_closed() {
            sleep(world.draw(|rng| rng.millis(100, 4_000))).await;
        }
        if world.is_closed() {
            return;
        }
    }
}

/// Starts a worker on this machine; the answer comes when it has ended, or never when the machine is gone.
fn begin(world: &Arc<World>, store: &SqliteStore, node: &Node) -> oneshot::Receiver<std::io::Result<Summary>> {
    let (end, ended) = oneshot::channel();
    let wire = Wire {
        store: store.clone(),
        world: Arc::clone(world),
        caller: node.name().to_owned(),
        node: Some(node.clone()),
    };
    let stage = Stage { world: Arc::clone(world), node: node.clone(), wire: wire.clone() };
    let store: Arc<dyn tenure_store::Store> = Arc::new(wire);
    let plan = &world.plan;
    let mut builder = Worker::builder(store)
        .state(stage)
        .name(node.name())
        .poll_every(plan.poll_every)
        .reclaim_every(plan.reclaim_every)
        .grace(plan.grace)
        .cancel_grace(Duration::from_secs(1))
        .prefetch(plan.prefetch)
        .lease_jobs(plan.lease_jobs)
        .retention(plan.retention)
        .keeper(KeeperPlace::Task)
        .machine(Arc::new(node.clone()));
    for queue in QUEUES {
        builder = builder.queue(queue, plan.slots);
    }
    let worker = handle_all(builder).build();
    let (told, world) = (node.clone(), Arc::clone(world));
    let run = node.host(Box::pin(async move {
        let result = match worker {
            Ok(worker) => worker.run_until(told.told_to_stop()).await,
            Err(invalid) => Err(std::io::Error::other(invalid)),
        };
        world.trace(told.name(), format_args!("has ended"));
        // The keeper of this place is always there.
        let _ = end.send(result);
    }));
    tokio::spawn(run);
    ended
}

fn stopped(world: &World, node: &Node, summary: &Summary) {
    world.trace(node.name(), format_args!("{summary:?}"));
    let Some(told_at) = node.stop_told_at() else { return };
    world.count("restarts");
    let took = told_at.elapsed();
    if took > world.plan.grace + STOPS_WITHIN {
        let text = format!("{} took {took:?}, its grace period is {:?}", node.name(), world.plan.grace);
        world.ledger.find(Rule::StoppedLate, text);
    }
}
