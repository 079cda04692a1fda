//! The three questions of whoever operates it.

use std::time::Duration;

use coins::monitor::{recent_jobs, source_health, stuck_jobs};
use coins::world::Fault;
use kit::testing::Place;
use tenure::JobState;
use tenure::core::gate::Why;
use tenure::store::lease::ClaimJobs;

use crate::shop::Shop;

kit::on_each_store! { coins::TABLES;
    the_last_twenty_jobs_come_newest_first,
    a_job_says_who_ran_it_when_and_what_went_wrong,
    every_source_says_how_it_does,
    a_source_that_is_left_alone_says_until_when,
    a_job_that_was_not_heard_of_for_five_minutes_is_stuck,
}

/// Shows: S0.40
async fn the_last_twenty_jobs_come_newest_first(place: Place) {
    let shop = Shop::open(place).await;
    for _ in 0..21 {
        shop.ask_times("c1", "hammer", 1).await;
        shop.advance(1);
    }
    let jobs = recent_jobs(&shop.client).await.unwrap();
    assert_eq!(jobs.len(), 20);
    assert!(jobs.windows(2).all(|pair| pair[0].created_at > pair[1].created_at));
}

/// Shows: S0.40
async fn a_job_says_who_ran_it_when_and_what_went_wrong(place: Place) {
    let shop = Shop::open(place).await;
    shop.world.auction.shelf.fail_next([Fault::Nonsense]);
    let created = shop.place.clock.now();
    let job = shop.ask_one("hammer").await;
    shop.advance(5);
    shop.run().await;
    let [seen] = recent_jobs(&shop.client).await.unwrap().try_into().unwrap();
    assert_eq!((seen.id, seen.status, seen.attempt), (job, JobState::Failed, 1));
    assert_eq!((seen.created_at, seen.completed_at), (created, Some(shop.place.clock.now())));
    assert!(seen.locked_by.is_some_and(|by| !by.is_empty()), "who ran it is known though it has ended");
    assert!(seen.error_message.unwrap().starts_with("the auction makes no sense"));
    assert_eq!(seen.heartbeat_at, None);
}

/// Shows: S0.41
async fn every_source_says_how_it_does(place: Place) {
    let shop = Shop::open(place).await;
    shop.world.auction.shelf.fail_next([Fault::Status(500)]);
    shop.ask().await;
    shop.run().await;
    let now = shop.place.clock.now();
    let health = source_health(&shop.client, &shop.place.database).await.unwrap();
    let names: Vec<&str> = health.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["bazaar", "dealer", "hammer"]);
    let (bazaar, hammer) = (&health[0], &health[2]);
    assert_eq!((bazaar.failure_streak, bazaar.last_success_at, bazaar.last_failure_at), (0, Some(now), None));
    assert_eq!((hammer.failure_streak, hammer.last_success_at, hammer.last_failure_at), (1, None, Some(now)));
    assert!(health.iter().all(|source| source.enabled && source.paused_until.is_none() && source.closed.is_none()));
}

/// Shows: S0.36 S0.38 S0.41
async fn a_source_that_is_left_alone_says_until_when(place: Place) {
    let shop = Shop::open(place).await;
    shop.world.auction.shelf.fail_next([Fault::Status(500); 5]);
    shop.ask_times("c1", "hammer", 5).await;
    shop.run().await;
    shop.source("dealer").set_enabled(&shop.client, &shop.place.database, false).await.unwrap();
    let look = async || {
        let health = source_health(&shop.client, &shop.place.database).await.unwrap();
        health.into_iter().map(|it| (it.enabled, it.paused_until, it.closed)).collect::<Vec<_>>()
    };
    let until = shop.place.clock.now().plus(Duration::from_secs(300));
    let [bazaar, dealer, hammer] = look().await.try_into().unwrap();
    assert_eq!(bazaar, (true, None, None));
    assert_eq!(dealer, (false, None, Some(Why::Paused)), "until somebody enables it");
    assert_eq!(hammer, (true, Some(until), Some(Why::Open)));
    shop.advance(300);
    assert_eq!(look().await[2], (true, None, None), "it may be tried");
}

/// What a claim sets, and what becomes of it when its worker dies. A claim does not look for stuck jobs itself, as the
/// seed's does: the scans of all workers make them pending (see `rhythm.rs` for how soon).
///
/// Shows: S0.10 S0.11 S0.12 S0.42 S0.46 S0.47
async fn a_job_that_was_not_heard_of_for_five_minutes_is_stuck(place: Place) {
    let shop = Shop::open(place).await;
    let job = shop.ask_one("hammer").await;
    let store = shop.client.store();
    let dead = store.register_worker(&"worker-1".parse().unwrap()).await.unwrap();
    let claimed = store.claim_jobs(ClaimJobs::new(dead, coins::QUEUE.parse().unwrap(), 1)).await.unwrap().unwrap();
    assert_eq!(claimed.jobs[0].id, job);
    let locked_at = shop.place.clock.now();
    let record = shop.show(job).await;
    assert_eq!((record.summary.state, record.heartbeat_at), (JobState::Running, Some(locked_at)));
    assert_eq!(record.summary.locked_by.as_deref(), Some("worker-1"));
    shop.advance(299);
    assert!(stuck_jobs(&shop.client).await.unwrap().is_empty());
    assert!(store.reclaim_jobs(None, 10).await.unwrap().is_empty(), "its lock is its own for five minutes");
    shop.advance(1);
    let [stuck] = stuck_jobs(&shop.client).await.unwrap().try_into().unwrap();
    assert_eq!((stuck.id, stuck.locked_by.as_deref()), (job, Some("worker-1")));
    assert_eq!((stuck.heartbeat_at, stuck.silent_for), (Some(locked_at), Some(Duration::from_secs(300))));

    shop.advance(1);
    assert_eq!(shop.run().await.claimed, 0, "nobody has looked for stuck jobs yet");
    let reclaimed = store.reclaim_jobs(None, 10).await.unwrap();
    assert_eq!(reclaimed[0].job, job);
    let record = shop.show(job).await;
    assert_eq!((record.summary.state, record.losses), (JobState::Queued, 1));
    let lost = &record.attempts[0];
    assert_eq!(
        (lost.worker.as_deref(), lost.started_at),
        (Some("worker-1"), Some(locked_at)),
        "who had it, since when"
    );
    assert!(stuck_jobs(&shop.client).await.unwrap().is_empty());
    shop.run().await;
    assert_eq!(shop.show(job).await.summary.state, JobState::Succeeded);
}
