//! Whole processes, as the seed's own tests have them: two that must not meet, and one that is killed.

use std::process::Command;
use std::time::Duration;

use coins::source::{Shape, Source};
use coins::world::{Feed, Listing, morgan};
use kit::testing::{Place, Process};
use kit::{BoxError, until};
use tenure::{Client, How, JobFilter, JobState, row};

use crate::shop::patiently;

kit::on_each_store_for_processes! { coins::TABLES;
    twenty_jobs_and_two_workers_run_each_job_once,
    a_killed_workers_job_is_reclaimed_and_done_by_another,
    a_worker_that_is_heard_of_keeps_its_job,
}

/// How long a first failure waits: longer than any test here.
const BASE: Duration = Duration::from_secs(60);
/// What the workers below have as their lock timeout.
const LOCK: Duration = Duration::from_secs(2);

/// A worker that waits for an answer longer than any test, and takes a silent one's job after [`LOCK`].
fn start(place: &Place, name: &str) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coins"));
    command.args(["worker", "--database", place.url()]).env("WORKER_ID", name);
    command.envs([("CACHE_ENABLED", "false"), ("HTTP_TIMEOUT_MS", "120000")]);
    command.envs([("JOB_LOCK_TIMEOUT_SECONDS", "2"), ("JOB_RECLAIM_SECONDS", "1")]);
    Process::start(command)
}

/// A coin, and a dealer who knows it and answers nobody yet.
async fn dealer(place: &Place) -> (Client, Feed, Source) {
    let (client, coin) = (place.client(), morgan());
    coin.add(&place.database).await.unwrap();
    let feed = Feed::open(Shape::Pricelist, Listing::about(Shape::Pricelist, &[coin])).await.unwrap();
    let source = feed.source("dealer", 60_000);
    source.set(&client, &place.database, Duration::from_secs(300)).await.unwrap();
    feed.valve.close();
    (client, feed, source)
}

async fn all_ended(client: &Client, jobs: usize) -> Result<Option<()>, BoxError> {
    let filter = JobFilter { state: Some(JobState::Succeeded), limit: 1_000, ..JobFilter::default() };
    Ok((client.store().list_jobs(&filter).await?.len() == jobs).then_some(()))
}

/// Shows: S0.08 S0.13 S0.43 S0.44
async fn twenty_jobs_and_two_workers_run_each_job_once(place: Place) {
    let (client, feed, source) = dealer(&place).await;
    coins::scrape::ask_times(&client, "c1", &source, 20, BASE).await.unwrap();
    let _both = ["worker-1", "worker-2"].map(|name| start(&place, name));
    // One job each: two calls at once means that both have claimed, before anybody was answered.
    patiently(feed.traffic.wait_for(Feed::CALLS, |calls| calls.now == 2)).await;
    feed.valve.open();
    until("twenty jobs done", async || all_ended(&client, 20).await).await.unwrap();

    assert_eq!(feed.calls(), 20, "each job was run once");
    let seen = coins::monitor::recent_jobs(&client).await.unwrap();
    let by = |name: &str| seen.iter().filter(|job| job.locked_by.as_deref() == Some(name)).count();
    assert!(by("worker-1") > 0 && by("worker-2") > 0 && by("worker-1") + by("worker-2") == 20, "{seen:?}");
    for job in seen {
        let [attempt] = client.show(job.id).await.unwrap().attempts.try_into().unwrap();
        assert_eq!(attempt.how, How::Succeeded);
    }
    let twice = "select intake_id, source_id, dedupe_key, count(*) as n from coin_price_point \
                 group by intake_id, source_id, dedupe_key having count(*) > 1";
    assert!(place.database.query(twice, row![]).await.unwrap().is_empty());
    assert_eq!(place.count("select count(*) as n from coin_price_point").await, 2);
}

/// Shows: S0.07 S0.12 S0.45 S0.47
async fn a_killed_workers_job_is_reclaimed_and_done_by_another(place: Place) {
    let (client, feed, source) = dealer(&place).await;
    let job = coins::scrape::ask_times(&client, "c1", &source, 1, BASE).await.unwrap()[0].job();
    let mut first = start(&place, "worker-1");
    patiently(feed.traffic.wait_for(Feed::CALLS, |calls| calls.now == 1)).await;
    first.kill();
    let _second = start(&place, "worker-2");
    patiently(feed.traffic.wait_for(Feed::CALLS, |calls| calls.calls == 2)).await;
    feed.valve.open();
    until("the job done", async || all_ended(&client, 1).await).await.unwrap();

    let attempts = client.show(job).await.unwrap().attempts;
    let seen: Vec<(How, Option<&str>)> = attempts.iter().map(|it| (it.how, it.worker.as_deref())).collect();
    assert_eq!(seen, [(How::Lost, Some("worker-1")), (How::Succeeded, Some("worker-2"))]);
    assert_eq!(place.count("select count(*) as n from coin_price_point").await, 2);
}

/// Shows: S0.09 S0.11
async fn a_worker_that_is_heard_of_keeps_its_job(place: Place) {
    let (client, feed, source) = dealer(&place).await;
    let job = coins::scrape::ask_times(&client, "c1", &source, 1, BASE).await.unwrap()[0].job();
    let _both = ["worker-1", "worker-2"].map(|name| start(&place, name));
    patiently(feed.traffic.wait_for(Feed::CALLS, |calls| calls.now == 1)).await;
    // Beyond its lock timeout and the other's next look, by its own heartbeats.
    let started = client.show(job).await.unwrap().heartbeat_at.unwrap();
    until("heartbeats beyond the timeout", async || {
        let heard = client.show(job).await?.heartbeat_at;
        Ok(heard.filter(|at| at.since(started) >= LOCK + Duration::from_secs(1)))
    })
    .await
    .unwrap();
    feed.valve.open();
    until("the job done", async || all_ended(&client, 1).await).await.unwrap();
    let record = client.show(job).await.unwrap();
    assert_eq!((record.attempts.len(), record.losses, feed.calls()), (1, 0, 1));
}
