//! Recovery: tasks of workers that are gone, by the seed's own numbers and a moved clock.

use std::sync::Arc;
use std::time::Duration;

use kit::testing::Place;
use tasks::state::State;
use tasks::task::Status;
use tasks::trace::{Heard, Of};
use tenure::core::name::WorkerName;
use tenure::core::{How, WorkerId};
use tenure::store::lease::{ClaimJobs, Claimed, EndJob, EndJobs, Ended, Ending};
use tenure::{QueueName, Store};

use crate::scene::Scene;

kit::on_each_store! {
    tasks::TABLES;
    what_a_dead_worker_held_is_reset_and_run_again,
    after_three_tries_a_task_is_an_error,
    a_lease_that_has_not_expired_is_nobody_elses,
    recovery_waits_for_its_interval,
    whoever_comes_back_too_late_is_refused,
}

const MINUTE: Duration = Duration::from_secs(61);

/// A worker that claims one task and is never heard of again.
pub(crate) async fn dies_with_a_task(store: &Arc<dyn Store>, name: &str) -> (WorkerId, Claimed) {
    let worker = store.register_worker(&WorkerName::new(name).unwrap()).await.unwrap();
    let claim = ClaimJobs::new(worker, QueueName::new("tasks").unwrap(), 1);
    (worker, store.claim_jobs(claim).await.unwrap().expect("a task is due"))
}

/// Shows: S3.05 S3.43
async fn what_a_dead_worker_held_is_reset_and_run_again(place: Place) {
    let scene = Scene::new(place).await;
    let store = Arc::clone(scene.client().store());
    let task = scene.fetch("words-7").await;
    let (_, claimed) = dies_with_a_task(&store, "dead").await;
    scene.place.advance(MINUTE);
    let worker = scene.start("heir");
    let record = scene.until(task, Status::Done).await;
    worker.stop().await.unwrap();
    let hows: Vec<(How, Option<&str>)> = record.attempts.iter().map(|a| (a.how, a.worker.as_deref())).collect();
    assert_eq!(hows, [(How::Lost, Some("dead")), (How::Succeeded, Some("heir"))]);
    assert!(record.attempts[1].lease > claimed.lease, "the fence only grows");
    assert_eq!(record.losses, 1);
}

/// Shows: S3.44
async fn after_three_tries_a_task_is_an_error(place: Place) {
    let scene = Scene::new(place).await;
    let store = Arc::clone(scene.client().store());
    let task = scene.fetch("words-7").await;
    for (tries, how) in [(1, How::Lost), (2, How::Lost), (3, How::Dead)] {
        dies_with_a_task(&store, "dead").await;
        let record = scene.show(task).await;
        // A lost lease is no attempt of the task's own: the two are counted apart, and together they are its tries.
        assert_eq!(record.summary.attempt + record.losses, tries);
        scene.place.advance(MINUTE);
        let taken = store.reclaim_jobs(None, 10).await.unwrap();
        assert_eq!((taken.len(), taken[0].job, taken[0].how), (1, task, how));
        assert_eq!(taken[0].worker.as_ref().unwrap().as_str(), "dead", "its last holder is named");
        // From the second loss on it waits a second longer each time.
        scene.place.advance(Duration::from_secs(2));
    }
    assert_eq!((scene.status(task).await, scene.run().await.claimed), (Status::Error, 0));
    scene.client().requeue(task).await.unwrap();
    assert_eq!(scene.run().await.succeeded, 1, "by hand it has its tries again");
}

/// Shows: S3.47
async fn a_lease_that_has_not_expired_is_nobody_elses(place: Place) {
    let scene = Scene::new(place).await;
    let store = Arc::clone(scene.client().store());
    scene.fetch("words-7").await;
    dies_with_a_task(&store, "slow").await;
    scene.place.advance(Duration::from_secs(59));
    assert_eq!(store.reclaim_jobs(None, 10).await.unwrap(), []);
    scene.place.advance(Duration::from_secs(2));
    assert_eq!(store.reclaim_jobs(None, 10).await.unwrap().len(), 1);
}

/// Shows: S3.20
async fn recovery_waits_for_its_interval(place: Place) {
    let mut scene = Scene::new(place).await;
    scene.settings.recovery = Duration::from_secs(3_600);
    scene.settings.lease = Duration::from_secs(10);
    tasks::worker::set_lease(&scene.place.database, &scene.settings).await.unwrap();
    let store = Arc::clone(scene.client().store());
    let task = scene.fetch("words-7").await;
    dies_with_a_task(&store, "dead").await;
    // Its first pass finds nothing that has expired, and then there is an hour until it looks again.
    let patient = scene.trace("patient");
    let mut seen = 0;
    // In small steps: whoever looks would take a leap for a clock that was set, and hold back.
    for _ in 0..4 {
        patient.steps().until("two passes through Recovery", |heard| passes(heard) > seen + 1).await.unwrap();
        seen = passes(&patient.steps().heard());
        scene.place.advance(Duration::from_secs(4));
    }
    patient.steps().until("passes after the lease's end", |heard| passes(heard) > seen + 1).await.unwrap();
    assert_eq!(scene.status(task).await, Status::Running, "it passed Recovery and skipped it");
    scene.settings.recovery = Duration::from_millis(10);
    let other = scene.start("other");
    assert_eq!(scene.until(task, Status::Done).await.losses, 1);
    patient.stop().await.unwrap();
    other.stop().await.unwrap();
}

/// How often the loop has gone through Recovery.
fn passes(heard: &[Heard]) -> usize {
    heard.iter().filter(|heard| matches!(heard.of, Of::Loop { from: State::Recovery, .. })).count()
}

/// Shows: S3.45
async fn whoever_comes_back_too_late_is_refused(place: Place) {
    let scene = Scene::new(place).await;
    let store = Arc::clone(scene.client().store());
    let task = scene.fetch("words-7").await;
    let (worker, claimed) = dies_with_a_task(&store, "sleeper").await;
    scene.place.advance(MINUTE);
    store.reclaim_jobs(None, 10).await.unwrap();
    scene.run().await;
    let before = scene.show(task).await;
    let ending = Ending::Succeeded { result: None, usage: None };
    let report = EndJobs { worker, lease: claimed.lease, jobs: vec![EndJob::new(task, ending)] };
    let answers = store.end_jobs(report).await.unwrap();
    assert_eq!(answers, [Ended::LeaseLost { how: Some(How::Lost) }]);
    assert_eq!(scene.show(task).await, before, "nothing has changed");
}
