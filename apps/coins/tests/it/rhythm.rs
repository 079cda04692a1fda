//! How often a worker is heard of and looks for the jobs of dead ones, by the seed's own numbers: minutes of a clock that
//! runs on whenever nothing else is to be done. The store is in memory, so nothing happens beside the test's thread.

use std::time::Duration;

use coins::worker;
use kit::testing::Place;
use tenure::store::lease::ClaimJobs;
use tenure::{JobId, JobRecord, KeeperPlace};

use crate::shop::Shop;

const SECOND: Duration = Duration::from_secs(1);

/// A shop whose sources answer nobody, and a worker at work in it by the paused clock.
struct Rhythm {
    shop: Shop,
    _working: kit::Running,
}

impl Rhythm {
    /// The job is asked for, `before` happens to it, and the worker begins.
    async fn begin(before: impl AsyncFnOnce(&Shop, JobId)) -> (Self, JobId) {
        let shop = Shop::with(Place::sqlite(coins::TABLES).await, &[("HTTP_TIMEOUT_MS", "600000")], 60_000).await;
        shop.world.auction.valve.close();
        let job = shop.ask_one("hammer").await;
        before(&shop, job).await;
        tokio::time::pause();
        let worker = worker::worker(shop.place.worker(), shop.coins.clone(), &shop.settings);
        let worker = worker.keeper(KeeperPlace::Task).build().unwrap();
        (Self { shop, _working: kit::Running::start(worker) }, job)
    }

    /// One second of everybody's.
    async fn tick(&self, job: JobId) -> JobRecord {
        tokio::time::sleep(SECOND).await;
        self.shop.place.advance(SECOND);
        self.shop.show(job).await
    }
}

/// Almost twice the lock timeout, and nobody takes the job away.
///
/// Shows: S0.09 S0.11
#[tokio::test]
async fn a_running_job_is_heard_of_each_twenty_seconds_and_stays_its_workers() {
    let (rhythm, job) = Rhythm::begin(async |_, _| {}).await;
    let mut heard = Vec::new();
    for _second in 0..590 {
        let record = rhythm.tick(job).await;
        assert_eq!(record.losses, 0);
        if let Some(at) = record.heartbeat_at.filter(|at| heard.last() != Some(at)) {
            heard.push(at);
        }
    }
    assert!(heard.len() >= 28, "{heard:?}");
    let gaps: Vec<u64> = heard.windows(2).map(|pair| pair[1].since(pair[0]).as_secs()).collect();
    // The clock of the store moves by whole seconds.
    assert!(gaps.iter().all(|gap| (19..=21).contains(gap)), "{gaps:?}");
}

/// Shows: S0.07 S0.10 S0.47
#[tokio::test]
async fn a_dead_workers_job_is_pending_within_a_minute_of_its_lock_timeout() {
    let dies = async |shop: &Shop, job| {
        let store = shop.client.store();
        let dead = store.register_worker(&"worker-1".parse().unwrap()).await.unwrap();
        let claimed = store.claim_jobs(ClaimJobs::new(dead, coins::QUEUE.parse().unwrap(), 1)).await.unwrap().unwrap();
        assert_eq!(claimed.jobs[0].id, job);
    };
    let (rhythm, job) = Rhythm::begin(dies).await;
    let mut lost_after = 0;
    while rhythm.tick(job).await.losses == 0 {
        lost_after += 1;
        assert!(lost_after <= 400);
    }
    // A scan's rest is jittered by a tenth.
    assert!((300..=366).contains(&lost_after), "{lost_after}");
}
