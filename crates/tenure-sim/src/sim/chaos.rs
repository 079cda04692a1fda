//! What befalls machines and the store's clock, one after the other, until the time of the faults is over.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::node::{Cut, Node};
use super::plan::Trouble;
use super::world::World;

/// The store's clock is never off by more than this in all, in milliseconds; less where ended jobs are soon deleted.
const OFFSET_MAX_MS: i64 = 60_000;
const OFFSET_MAX_PRUNED_MS: i64 = 15_000;

pub(crate) async fn run(world: Arc<World>) {
    let ends = Instant::now() + world.plan.chaos;
    while Instant::now() < ends {
        let gap = world.draw(|rng| rng.millis(0, world.plan.trouble_every_ms * 2));
        sleep(gap.min(ends - Instant::now())).await;
        let troubles = &world.plan.troubles;
        if !troubles.is_empty() {
            let trouble = world.draw(|rng| rng.pick(troubles));
            strike(&world, trouble);
        }
    }
}

fn strike(world: &Arc<World>, trouble: Trouble) {
    match trouble {
        Trouble::Jump => return jump(world),
        Trouble::Outage => {
            let lasting = longer_than_a_lease(world);
            world.count("outages");
            world.trace("world", format_args!("the store is away for {lasting:?}"));
            return world.set_outage(lasting);
        }
        _ => {}
    }
    let mut up: Vec<Node> = world.nodes().into_iter().filter(Node::is_up).collect();
    if up.is_empty() {
        return;
    }
    let node = up.swap_remove(world.draw(|rng| rng.index(up.len())));
    let cut = |what: Cut| {
        let lasting = longer_than_a_lease(world);
        world.count("cuts");
        world.trace(node.name(), format_args!("is cut off, {what:?}, for {lasting:?}"));
        node.cut_off(what, Instant::now() + lasting);
    };
    match trouble {
        Trouble::Crash => {
            world.count("crashes");
            world.trace(node.name(), format_args!("crashes"));
            node.destroy();
        }
        Trouble::Freeze => freeze(world, node),
        Trouble::Cut => cut(if world.draw(|rng| rng.chance(500)) { Cut::Calls } else { Cut::Replies }),
        Trouble::CutRenewals => cut(Cut::Renewals),
        Trouble::Restart => {
            world.trace(node.name(), format_args!("is told to stop"));
            node.tell_to_stop();
        }
        Trouble::Outage | Trouble::Jump => {}
    }
}

fn freeze(world: &Arc<World>, node: Node) {
    let lasting = longer_than_a_lease(world);
    world.count("freezes");
    world.trace(node.name(), format_args!("freezes for {lasting:?}"));
    node.freeze();
    let world = Arc::clone(world);
    tokio::spawn(async move {
        sleep(lasting).await;
        if !node.is_up() {
            world.trace(node.name(), format_args!("thaws"));
            world.thaw(&node);
        }
    });
}

/// From a moment to two leases, and mostly longer than one.
fn longer_than_a_lease(world: &World) -> Duration {
    let ttl_ms = world.plan.lease_ttl.as_millis() as u64;
    world.draw(|rng| if rng.chance(300) { rng.millis(100, ttl_ms) } else { rng.millis(ttl_ms, ttl_ms * 2) })
}

fn jump(world: &World) {
    let most = if world.plan.retention.is_some() { OFFSET_MAX_PRUNED_MS } else { OFFSET_MAX_MS };
    let by = world.draw(|rng| {
        let far = if rng.chance(500) { 3_000 } else { most as u64 };
        let by = rng.between(100, far) as i64;
        if rng.chance(500) { by } else { -by }
    });
    let to = (world.clock.offset_ms() + by).clamp(-most, most);
    let by = to - world.clock.offset_ms();
    if by != 0 {
        world.count(if by > 0 { "clock_set_forward" } else { "clock_set_back" });
        world.trace("world", format_args!("the store's clock is set by {by} ms"));
        world.clock.jump(by);
    }
}
