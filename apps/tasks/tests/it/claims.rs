//! Leases: one holder at a time, an end that lies in the future, and what an ending leaves behind.

use std::sync::Arc;
use std::time::Duration;

use kit::testing::Place;
use tasks::task::Status;
use tenure::core::How;
use tenure::core::journal::JournalEvent;
use tenure::core::name::WorkerName;
use tenure::store::lease::ClaimJobs;
use tenure::{JobFilter, QueueName, Sight};

use crate::scene::Scene;

kit::on_each_store! {
    tasks::TABLES;
    a_claim_is_a_state_a_holder_and_a_lease_in_one,
    who_runs_has_a_lease_that_ends_in_the_future,
    of_two_claims_at_once_one_gets_the_task,
    a_task_is_processed_by_one_worker_at_a_time,
    an_ending_is_the_last_update,
}

/// Shows: S3.09 S3.48
async fn a_claim_is_a_state_a_holder_and_a_lease_in_one(place: Place) {
    let scene = Scene::new(place).await;
    let task = scene.fetch("held").await;
    let before = scene.show(task).await;
    assert_eq!((before.summary.state.as_str(), before.summary.attempt, before.lease), ("queued", 0, None));
    let held = scene.world.library.hold("held");
    let worker = scene.start("holder");
    scene.until_asked("held", 1).await;
    let record = scene.show(task).await;
    assert_eq!((Status::from(record.summary.state), record.summary.attempt), (Status::Running, 1));
    assert_eq!(record.summary.locked_by.as_deref(), Some("holder"));
    assert!(record.lease.is_some_and(|lease| lease.0 > 0));
    let minute = scene.place.clock.now().plus(Duration::from_secs(60));
    assert_eq!(record.lease_expires_at, Some(minute), "sixty seconds, as the preset says");
    held.open();
    worker.stop().await.unwrap();
}

/// Renewed again and again, longer than any of its leases lasts.
///
/// Shows: S3.47
async fn who_runs_has_a_lease_that_ends_in_the_future(place: Place) {
    let mut scene = Scene::new(place).await;
    scene.settings.renew = Duration::from_millis(100); // of the machine's clock; the lease is by the moved one
    let held = scene.world.library.hold("words-7");
    let task = scene.fetch("words-7").await;
    let worker = scene.start("holder");
    scene.until_asked("words-7", 1).await;
    for _ in 0..4 {
        scene.place.advance(Duration::from_secs(40));
        let now = scene.place.clock.now();
        let renewed = kit::until("a renewal", async || {
            let record = scene.show(task).await;
            assert_eq!(Status::from(record.summary.state), Status::Running);
            assert!(record.lease_expires_at.unwrap() > now, "{record:?}");
            Ok((record.heartbeat_at == Some(now)).then_some(record))
        });
        let renewed = renewed.await.unwrap();
        assert_eq!(renewed.lease_expires_at, Some(now.plus(Duration::from_secs(60))));
    }
    held.open();
    let record = scene.until(task, Status::Done).await;
    assert_eq!((record.losses, record.attempts.len()), (0, 1));
    worker.stop().await.unwrap();
}

/// Shows: S3.46
async fn of_two_claims_at_once_one_gets_the_task(place: Place) {
    let scene = Scene::new(place).await;
    let store = Arc::clone(scene.client().store());
    let worker = store.register_worker(&WorkerName::new("racer").unwrap()).await.unwrap();
    for round in 0..10 {
        let task = scene.fetch(&format!("race-{round}")).await;
        let claim = || {
            let (store, queue) = (Arc::clone(&store), QueueName::new("tasks").unwrap());
            tokio::spawn(async move { store.claim_jobs(ClaimJobs::new(worker, queue, 1)).await.unwrap() })
        };
        let answers = [claim(), claim(), claim(), claim()];
        let mut got = Vec::new();
        for answer in answers {
            got.extend(answer.await.unwrap().into_iter().flat_map(|claimed| claimed.jobs));
        }
        assert_eq!(got.iter().map(|job| job.id).collect::<Vec<_>>(), [task]);
    }
}

/// Forty tasks, four workers: the library sees whether two ever hold the same one.
///
/// Shows: S3.45
async fn a_task_is_processed_by_one_worker_at_a_time(place: Place) {
    let mut scene = Scene::new(place).await;
    scene.settings.slots = 2;
    let mut tasks = Vec::new();
    for number in 0..40 {
        tasks.push(scene.fetch(&format!("words-{number}")).await);
    }
    let workers = ["a", "b", "c", "d"].map(|name| scene.start(name));
    for task in &tasks {
        scene.until(*task, Status::Done).await;
    }
    for worker in workers {
        worker.stop().await.unwrap();
    }
    let counts = scene.world.library.traffic().all();
    assert_eq!(counts.len(), tasks.len());
    assert!(counts.values().all(|count| (count.calls, count.most) == (1, 1)), "{counts:?}");
    assert_eq!(scene.place.count("select count(*) as n from task_result").await, 40);
    let store = Arc::clone(scene.client().store());
    for task in tasks {
        let rows = store.list_job_rows(&Sight::All, task).await.unwrap();
        let said: Vec<JournalEvent> = rows.iter().map(|row| row.event).collect();
        assert_eq!(said, [JournalEvent::Claimed, JournalEvent::Ended(How::Succeeded)]);
    }
    assert_eq!(store.find_violations(10).await.unwrap(), []);
    let running = JobFilter { state: Some(tenure::JobState::Running), ..JobFilter::default() };
    assert_eq!(store.list_jobs(&running).await.unwrap(), []);
}

/// Shows: S3.49
async fn an_ending_is_the_last_update(place: Place) {
    let scene = Scene::new(place).await;
    scene.world.library.fail("bad", 500);
    for (name, status) in [("words-7", Status::Done), ("bad", Status::Error)] {
        let held = scene.world.library.hold(name);
        let task = scene.fetch(name).await;
        let claimed_at = scene.place.clock.now();
        let worker = scene.start("holder");
        scene.until_asked(name, 1).await;
        assert_eq!(scene.show(task).await.summary.finished_at, None);
        scene.place.advance(Duration::from_secs(7));
        held.open();
        let record = scene.until(task, status).await;
        let attempt = &record.attempts[0];
        assert_eq!((attempt.started_at, record.summary.finished_at), (Some(claimed_at), Some(attempt.ended_at)));
        assert_eq!(attempt.ended_at, claimed_at.plus(Duration::from_secs(7)), "the clock was moved, and nothing else");
        worker.stop().await.unwrap();
    }
}
