//! The record is whole, and a hole in it is noticed.

use std::sync::Arc;
use std::time::Duration;

use kit::testing::Place;
use tasks::audit;
use tasks::audit::Finding;
use tasks::task::Status;
use tenure::core::How;
use tenure::core::journal::JournalEvent;
use tenure::store::journal::JOB_ROWS_MAX;
use tenure::store::lease::{EndJob, EndJobs, Ending};
use tenure::{JobId, Sight, row};

use crate::recovery::dies_with_a_task;
use crate::scene::Scene;

kit::on_each_store! {
    tasks::TABLES;
    every_change_has_its_entry_and_the_entries_lead_to_where_tasks_stand,
    an_entry_is_written_once,
    a_hole_in_the_record_is_noticed_whatever_is_missing,
    an_entry_that_was_rewritten_is_noticed,
}

/// Tasks that went every way there is: done, failed, lost and done, dead, revived, canceled, running, pending.
struct Lives {
    done: JobId,
    failed: JobId,
    lost: JobId,
    dead: JobId,
    running: JobId,
}

async fn live(scene: &Scene) -> Lives {
    let store = Arc::clone(scene.client().store());
    let dead = scene.fetch("words-1").await;
    for _ in 0..3 {
        dies_with_a_task(&store, "dead").await;
        scene.place.advance(Duration::from_secs(61));
        store.reclaim_jobs(None, 10).await.unwrap();
        scene.place.advance(Duration::from_secs(2));
    }
    let lost = scene.fetch("words-2").await;
    dies_with_a_task(&store, "dead").await;
    scene.place.advance(Duration::from_secs(61));
    store.reclaim_jobs(None, 10).await.unwrap();
    let (done, failed) = (scene.fetch("words-3").await, scene.fetch("missing").await);
    let (revived, canceled) = (scene.fetch("gone").await, scene.fetch("words-4").await);
    scene.client().cancel(canceled).await.unwrap();
    scene.run().await;
    scene.world.library.put("gone", "here");
    scene.client().requeue(revived).await.unwrap();
    scene.run().await;
    let running = scene.fetch("words-5").await;
    dies_with_a_task(&store, "holder").await;
    let pending = scene.fetch("words-6").await;
    for (task, status) in [
        (dead, Status::Error),
        (lost, Status::Done),
        (done, Status::Done),
        (failed, Status::Error),
        (revived, Status::Done),
        (canceled, Status::Canceled),
        (running, Status::Running),
        (pending, Status::Pending),
    ] {
        assert_eq!(scene.status(task).await, status);
    }
    Lives { done, failed, lost, dead, running }
}

/// Shows: S3.50 S3.51 S3.52
async fn every_change_has_its_entry_and_the_entries_lead_to_where_tasks_stand(place: Place) {
    let scene = Scene::new(place).await;
    let lives = live(&scene).await;
    let store = Arc::clone(scene.client().store());
    let found = audit(&*store).await.unwrap();
    assert!(found.is_whole(), "{found:#?}");
    // dead: 3 × (running, end); lost: 2 × 2; done, failed: 2 each; revived: 2 × 2; canceled: 1; running: 1; pending: none.
    assert_eq!((found.tasks, found.entries), (8, 6 + 4 + 2 + 2 + 4 + 1 + 1));
    let entries = async |task: JobId| {
        let rows = store.list_job_rows(&Sight::All, task).await.unwrap();
        rows.iter().map(|row| row.event).collect::<Vec<_>>()
    };
    let (running, ended) = (JournalEvent::Claimed, JournalEvent::Ended);
    assert_eq!(entries(lives.done).await, [running, ended(How::Succeeded)]);
    assert_eq!(entries(lives.failed).await, [running, ended(How::Failed)]);
    assert_eq!(entries(lives.lost).await, [running, ended(How::Lost), running, ended(How::Succeeded)]);
    assert_eq!(entries(lives.dead).await.last(), Some(&ended(How::Dead)));
    assert_eq!(entries(lives.running).await, [running]);
    store.seal_journal().await.unwrap();
    let sealed = audit(&*store).await.unwrap();
    assert!(sealed.is_whole() && sealed.sealed == sealed.rows && sealed.rows > 0, "{sealed:?}");
}

/// Shows: S3.53
async fn an_entry_is_written_once(place: Place) {
    let scene = Scene::new(place).await;
    scene.fetch("words-7").await;
    scene.run().await;
    let [update, delete] = match scene.place.database.is_postgres() {
        true => ["update tenure.journal set reason = 'another'", "delete from tenure.journal"],
        false => ["update journal set reason = 'another'", "delete from journal"],
    };
    for statement in [update, delete] {
        assert!(scene.place.database.execute(statement, row![]).await.is_err(), "{statement}");
    }
    assert!(audit(&**scene.client().store()).await.unwrap().is_whole());
}

/// Somebody who may switch the triggers off takes one entry of each of four tasks away.
///
/// Shows: S3.50 S3.51 S3.52
async fn a_hole_in_the_record_is_noticed_whatever_is_missing(place: Place) {
    let scene = Scene::new(place).await;
    let lives = live(&scene).await;
    let store = Arc::clone(scene.client().store());
    break_in(&scene.place).await;
    let mut missing = Vec::new();
    for (task, event) in [
        (lives.running, JournalEvent::Claimed),
        (lives.done, JournalEvent::Ended(How::Succeeded)),
        (lives.failed, JournalEvent::Ended(How::Failed)),
        (lives.dead, JournalEvent::Ended(How::Dead)),
    ] {
        let rows = store.list_job_rows(&Sight::All, task).await.unwrap();
        let entry = rows.iter().find(|row| row.event == event).unwrap();
        let delete = match scene.place.database.is_postgres() {
            true => "delete from tenure.journal where id = $1",
            false => "delete from journal where id = $1",
        };
        assert_eq!(scene.place.database.execute(delete, row![entry.id]).await.unwrap(), 1);
        missing.push(Finding::Missing { task, event: event.as_str(), fence: entry.lease.unwrap().0 });
        let found = audit(&*store).await.unwrap();
        let noticed = found.findings.iter().filter(|finding| matches!(finding, Finding::Missing { .. }));
        assert_eq!(noticed.filter(|finding| missing.contains(finding)).count(), missing.len(), "{found:#?}");
        // And what is left of them leads elsewhere.
        let elsewhere =
            found.findings.iter().any(|finding| matches!(finding, Finding::Elsewhere { task: of, .. } if *of == task));
        assert!(elsewhere, "{found:#?}");
    }
}

/// Shows: S3.53
async fn an_entry_that_was_rewritten_is_noticed(place: Place) {
    let scene = Scene::new(place).await;
    scene.fetch("words-7").await;
    scene.run().await;
    let store = Arc::clone(scene.client().store());
    store.seal_journal().await.unwrap();
    break_in(&scene.place).await;
    let rewrite = match scene.place.database.is_postgres() {
        true => "update tenure.journal set reason = 'another' where event = 11",
        false => "update journal set reason = 'another' where event = 11",
    };
    assert_eq!(scene.place.database.execute(rewrite, row![]).await.unwrap(), 1);
    let found = audit(&*store).await.unwrap();
    assert!(
        matches!(found.findings.as_slice(), [Finding::Record(what)] if what.contains("does not fit its rows")),
        "{found:#?}"
    );
}

/// More often than the library tells of one task: it is judged by its newest entries, and says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_with_more_entries_than_are_told_is_not_taken_for_one_with_holes() {
    let scene = Scene::new(Place::sqlite(tasks::TABLES).await).await;
    let store = Arc::clone(scene.client().store());
    let task = scene.fetch("words-7").await;
    for _ in 0..=JOB_ROWS_MAX / 2 {
        let (worker, claimed) = dies_with_a_task(&store, "fickle").await;
        let ending = Ending::Released { delay: Duration::ZERO };
        let jobs = vec![EndJob::new(task, ending)];
        store.end_jobs(EndJobs { worker, lease: claimed.lease, jobs }).await.unwrap();
    }
    scene.run().await;
    let found = audit(&*store).await.unwrap();
    assert!(found.is_whole(), "{found:#?}");
    assert_eq!((found.tasks, found.cut, found.entries), (1, 1, u64::from(JOB_ROWS_MAX)));
    assert!(found.to_string().contains("1 with more entries than are told of one"), "{found}");
}

/// Switches off what keeps the record as it was written.
async fn break_in(place: &Place) {
    let open = match place.database.is_postgres() {
        true => "alter table tenure.journal disable trigger all",
        false => "drop trigger journal_is_fixed; drop trigger journal_is_kept",
    };
    place.database.make_tables(open).await.unwrap();
}
