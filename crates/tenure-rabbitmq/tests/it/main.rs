//! The waker on a real broker, on one that comes and goes, and on what only looks like one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod lines;
mod nobody;
mod outages;
mod raw;
mod tls;
mod wakes;

use std::fs;
use std::time::Duration;

use tenure_core::{JobId, Timestamp};
use tenure_rabbitmq::Broker;
use tokio::time::{Instant, sleep, timeout};

/// Longer than anything should take on a busy machine.
const AMPLE: Duration = Duration::from_secs(40);
/// A wake-up that would come has come by then.
const QUIET: Duration = Duration::from_millis(60);

/// Waits until it is so.
async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < AMPLE, "not within {AMPLE:?}: {what}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until it is connected, and takes the wake-up that this is.
async fn connected(broker: &Broker) {
    eventually("connected", || broker.is_up()).await;
    woken(broker).await;
    still(broker).await;
}

async fn woken(broker: &Broker) {
    timeout(AMPLE, broker.woken()).await.expect("woken");
}

async fn still(broker: &Broker) {
    assert!(timeout(QUIET, broker.woken()).await.is_err(), "woken for nothing: {broker:?}");
}

fn job(number: u8) -> JobId {
    JobId::from_parts(Timestamp::from_micros(1_763_197_200_000_000), [number; 10])
}

/// Threads of the driver in this process.
fn driver_threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let name = |task: &fs::DirEntry| fs::read_to_string(task.path().join("comm")).unwrap_or_default();
    tasks.filter(|task| name(task).starts_with("lapin-io")).count()
}
