//! Whole processes: killed, frozen, told to stop, and left without their database.

use std::sync::Arc;
use std::time::Duration;

use kit::testing::{Place, Process};
use tasks::task::{Fetch, Status, client};
use tasks::{World, audit};
use tenure::core::How;
use tenure::core::journal::JournalEvent;
use tenure::rusqlite::Connection;
use tenure::webhooks::Secret;
use tenure::{JobId, JobState, Sight, row};

use crate::outage::Outage;
use crate::scene::{Scene, program, until_ok};

kit::on_each_store_for_processes! {
    tasks::TABLES;
    a_killed_workers_task_is_done_by_another,
    a_frozen_worker_that_wakes_is_refused,
    a_worker_that_is_told_to_stop_drains,
}

/// With a lease of two seconds instead of the seed's minute.
async fn scene(place: Place) -> Scene {
    let mut scene = Scene::new(place).await;
    scene.settings.lease = Duration::from_secs(2);
    scene
}

async fn hows(scene: &Scene, task: JobId) -> Vec<(How, String)> {
    let attempts = scene.show(task).await.attempts;
    attempts.into_iter().map(|attempt| (attempt.how, attempt.worker.unwrap_or_default())).collect()
}

/// Shows: S3.13 S3.43
async fn a_killed_workers_task_is_done_by_another(place: Place) {
    let scene = scene(place).await;
    let held = scene.world.library.hold("words-70");
    let task = scene.fetch("words-70").await;
    let mut victim = scene.process("victim");
    scene.until_asked("words-70", 1).await;
    let fence = scene.show(task).await.lease.unwrap();
    victim.kill();
    held.open();
    let _heir = scene.process("heir");
    let record = scene.until(task, Status::Done).await;
    assert_eq!(hows(&scene, task).await, [(How::Lost, "victim".into()), (How::Succeeded, "heir".into())]);
    assert!(record.attempts[1].lease > fence);
    let results = scene.place.database.query("select fence from task_result", row![]).await.unwrap();
    assert_eq!((results.len(), results[0].get::<i64>("fence").unwrap()), (1, record.attempts[1].lease.0));
    // The API hears of it once, from the one who did it.
    let told = scene.until_told().await;
    assert_eq!(
        (told.event_type.as_str(), told.task, told.fence),
        ("job.succeeded", task.to_string(), record.attempts[1].lease.0)
    );
    assert!(audit(&**scene.client().store()).await.unwrap().is_whole());
}

/// On one store: that the rule holds on both is shown by a moved clock, in `recovery`.
///
/// Shows: S3.44
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_is_lost_three_times_is_dead() {
    let scene = scene(Place::sqlite_file(tasks::TABLES).await).await;
    let _held = scene.world.library.hold("poison");
    let task = scene.fetch("poison").await;
    for (asked, name) in [(1, "first"), (2, "second"), (3, "third")] {
        let mut victim = scene.process(name);
        scene.until_asked("poison", asked).await;
        victim.kill();
    }
    let _survivor = scene.process("survivor");
    scene.until(task, Status::Error).await;
    let expected = [(How::Lost, "first"), (How::Lost, "second"), (How::Dead, "third")];
    assert_eq!(hows(&scene, task).await, expected.map(|(how, name)| (how, name.to_owned())));
    assert_eq!(scene.world.library.traffic().of("poison").calls, 3, "nobody asks a fourth time");
    let told = scene.until_told().await;
    assert_eq!((told.event_type.as_str(), told.task), ("job.dead", task.to_string()));
}

/// Shows: S3.45
async fn a_frozen_worker_that_wakes_is_refused(place: Place) {
    let scene = scene(place).await;
    let held = scene.world.library.hold("words-70");
    let task = scene.fetch("words-70").await;
    let frozen = scene.process("frozen");
    scene.until_asked("words-70", 1).await;
    let stale = scene.show(task).await.lease.unwrap();
    freeze_between_writes(&scene, &frozen);
    // The answer waits for it when it wakes.
    held.open();
    let _heir = scene.process("heir");
    let done = scene.until(task, Status::Done).await;
    frozen.thaw();
    let store = Arc::clone(scene.client().store());
    let refusal = async || {
        let rows = store.list_job_rows(&Sight::All, task).await?;
        let is_it = rows.iter().any(|row| row.event == JournalEvent::Refused && row.lease == Some(stale));
        Ok(is_it.then_some(()))
    };
    kit::until("a refusal", refusal).await.unwrap();
    assert_eq!(scene.show(task).await, done, "nothing has changed");
    assert_eq!(hows(&scene, task).await, [(How::Lost, "frozen".into()), (How::Succeeded, "heir".into())]);
    let results = scene.place.database.query("select fence from task_result", row![]).await.unwrap();
    assert_eq!((results.len(), results[0].get::<i64>("fence").unwrap()), (1, done.attempts[1].lease.0));
    assert!(audit(&*store).await.unwrap().is_whole());
}

/// A file has one writer: whoever stands still in the middle of a write keeps everybody from it, and nobody could take over.
fn freeze_between_writes(scene: &Scene, process: &Process) {
    loop {
        process.freeze();
        if scene.place.database.is_postgres() {
            return;
        }
        let file = Connection::open(scene.place.url()).unwrap();
        file.busy_timeout(Duration::from_millis(50)).unwrap();
        if file.execute_batch("begin immediate; rollback").is_ok() {
            return;
        }
        process.thaw();
    }
}

/// Not the seed's, whose worker ends only when it is killed: a signal drains it, and nothing is lost or charged.
///
/// Shows: S3.41
async fn a_worker_that_is_told_to_stop_drains(place: Place) {
    let scene = scene(place).await;
    let _held = scene.world.library.hold("held");
    let task = scene.fetch("held").await;
    let mut command = program(scene.place.url(), &["worker"]);
    command.env("TASKS_GRACE_SECONDS", "0");
    let mut worker = Process::start(command);
    scene.until_asked("held", 1).await;
    worker.terminate();
    assert!(worker.ended().await.success());
    let record = scene.show(task).await;
    assert_eq!((record.summary.state, record.summary.attempt, record.losses), (JobState::Queued, 0, 0));
    assert_eq!(record.attempts[0].how, How::Released);
}

/// Shows: S3.41 S3.42
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_never_exits_by_itself_though_its_database_does() {
    let mut outage = Outage::postgres().await;
    let world = World::open(&Secret::generate()).await.unwrap();
    let database = outage.open().await;
    let client = client(&database);
    outage.begin();
    let mut worker = Process::start(program(&outage.url(), &["worker", "--states"]));
    worker.until_logged(&["the database is not there"]).await;
    outage.end();
    let fetched = async |name: &str| {
        let fetch = || client.enqueue(Fetch { url: world.document(name) }).into_future();
        let task = until_ok("a task is added", fetch).await.job();
        let done = async || Ok(client.show(task).await.ok().filter(|task| task.summary.state == JobState::Succeeded));
        kit::until("the task is done", done).await.unwrap();
    };
    fetched("words-7").await;
    outage.begin();
    worker.until_said(&["-> ErrorWait"]).await;
    assert!(worker.is_there());
    outage.end();
    fetched("words-8").await;
    assert!(worker.is_there() && worker.until_logged(&["the store answers again"]).await.contains("INFO"));
}
